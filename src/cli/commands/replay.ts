import { Command } from 'commander'
import { formatDuration } from '../../config/units.ts'
import { DRAIN_TIMEOUT_MS, SAMPLE_PAGES } from '../../control/defaults.ts'
import { nearestName } from '../../kernel/nearest.ts'
import { type CommandDefinition, crawlOption, timeForms } from '../command-definition.ts'
import type { ReplayRunFlags } from '../replay-run-session.ts'
import type { ReplayFlags } from '../replay-scope.ts'
import type { PreviewFlags } from '../replay-session.ts'

export const replayCommand: CommandDefinition = (contextOf) => {
  const command = new Command('replay').description('run an extractor again over stored pages; never asks a site')
  scoped(command.command('plan', { isDefault: true }).description('show the range and change nothing'))
    .option('--export', 'write topic,partition,offset lines, as --from-file and Kafka’s own tool read them')
    .addHelpText('after', '\nExample:\n  millrace replay plan --extractor book.yaml --by-duration 14d')
    .action(async (flags: ReplayFlags & { export?: boolean }, running: Command) => {
      const { replayPlan } = await import('../replay-session.ts')
      await replayPlan(contextOf(running), flags, flags.export === true)
    })
  scoped(command.command('preview').description('run the extractor over stored pages and show what would change; writes nothing'))
    .option('--sample <n>', `pages that are read, from all parts of the range (default: ${SAMPLE_PAGES})`)
    .option('--all', 'all pages of the range')
    .option('--against <name|file>', 'compare with this extractor, run on the same pages; else with the records of the log')
    .addHelpText('after', '\nExample:\n  millrace replay preview --extractor book.yaml --domain books.example')
    .action(async (flags: PreviewFlags, running: Command) => {
      const { replayPreview } = await import('../replay-session.ts')
      await replayPreview(contextOf(running), flags)
    })
  scoped(command.command('run').description('do it: in place, or beside live work in a shadow'))
    .option(
      '--in-place',
      'rewind the group itself: live members do it at once (new pages have a turn every 3 s), a stopped group when it starts',
    )
    .option('--shadow', 'a group of its own, records to a topic of their own; does the work now')
    .option('--out <topic>', 'topic for the records of a shadow replay')
    .option('--rate <n>', 'most pages per second that are replayed')
    .option('--wait', 'in place: until the replay is done; of a stopped group: until somebody has started it and it is done')
    .option('--tombstones', 'with --wait: delete the keys of records that nothing gives any more')
    .option('--force <reason>', 'with --in-place: although the version gives less than the one before')
    .option('--expect <hash>', 'replay just the range that a preview with this hash looked at, or refuse')
    .option('--id <id>', 'name of the replay; one that was cut short goes on under its name')
    .option(
      '--drain-timeout <duration>',
      `with --shadow: how long the first Ctrl-C may take (default: ${formatDuration(DRAIN_TIMEOUT_MS)})`,
    )
    .addHelpText('after', '\nExample:\n  millrace replay run --extractor book.yaml --shadow')
    .action(async (flags: ReplayRunFlags, running: Command) => {
      const { replayRun } = await import('../replay-run-session.ts')
      await replayRun(contextOf(running), flags)
    })
  command
    .command('status')
    .description('how far a replay is, in place or in a shadow; all of them where none is named')
    .argument('[id]', 'name of the replay')
    .addHelpText('after', '\nExample:\n  millrace replay status')
    .action(async (id: string | undefined, _: object, running: Command) => {
      const { showReplays } = await import('../replay-run-session.ts')
      await showReplays(contextOf(running), id)
    })
  command
    .command('cancel')
    .description('call a replay off: owners go back to live work, a shadow ends; what was written stays')
    .argument('<id>', 'name of the replay')
    .addHelpText('after', '\nExample:\n  millrace replay cancel 20261128t053246355z')
    .action(async (id: string, _: object, running: Command) => {
      const { replayCancel } = await import('../replay-run-session.ts')
      await replayCancel(contextOf(running), id)
    })
  command
    .command('tombstones')
    .description('keys that a replay in place has left without a record; shows them until --execute')
    .argument('<id>', 'name of the replay')
    .option('--execute', 'write a tombstone for each')
    .addHelpText('after', '\nExample:\n  millrace replay tombstones 20261128t053246355z --execute')
    .action(async (id: string, flags: { execute?: boolean }, running: Command) => {
      const { replayTombstones } = await import('../replay-run-session.ts')
      await replayTombstones(contextOf(running), id, flags.execute === true)
    })
  command
    .command('forget')
    .description('remove what a shadow replay has left: the topic of its records, its group, its line in `replay status`')
    .argument('<id>', 'name of the replay')
    .addHelpText('after', '\nExample:\n  millrace replay forget 20261128t053239658z')
    .action(async (id: string, _: object, running: Command) => {
      const { replayForget } = await import('../replay-run-session.ts')
      await replayForget(contextOf(running), id)
    })
  return command.hook('preSubcommand', refuseMisspelt)
}

/** A bare `replay` is `replay plan`, so a verb that is misspelt would go there as an argument too many. */
function refuseMisspelt(command: Command, called: Command): void {
  const [verb] = command.args
  if (verb === undefined || verb.startsWith('-') || verb === called.name()) return
  const near = nearestName(
    verb,
    command.commands.map((each) => each.name()),
  )
  command.error(`error: unknown command '${verb}'${near === undefined ? '' : `\n(Did you mean ${near}?)`}`)
}

function scoped(command: Command): Command {
  return command
    .requiredOption('--extractor <name|file>', 'name of a configured extractor, or a file')
    .option('--to-earliest', 'from the first page that is stored (default)')
    .option('--to-datetime <time>', 'from pages stored at or after a time')
    .option('--by-duration <duration>', 'from pages stored that long ago or later')
    .option('--to-offset <n>', 'from an offset of each partition')
    .option('--shift-by <n>', 'from the committed offset plus n; negative goes back')
    .option('--from-file <csv>', 'from the offsets of a file: topic,partition,offset')
    .option('--until <time>', 'up to pages stored before a time')
    .option('--topic <topic:p,p>', 'these partitions alone')
    .option('--domain <domain>', 'pages of this registrable domain or host alone')
    .option('--crawl <id>', 'pages of this crawl alone', crawlOption)
    .option('--fetched-from <time>', 'pages fetched at or after a time alone')
    .option('--fetched-until <time>', 'pages fetched before a time alone')
    .option('--group <name>', 'extract group by its name in extract.groups; the one that has the extractor where not given')
    .addHelpText('after', timeForms('that long ago'))
}
