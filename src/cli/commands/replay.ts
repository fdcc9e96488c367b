import { Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'
import type { ReplayFlags } from '../replay-scope.ts'
import type { PreviewFlags, ReplayRunFlags } from '../replay-session.ts'

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
    .option('--sample <n>', 'pages that are read, from all parts of the range (default: 200)')
    .option('--all', 'all pages of the range')
    .option('--against <name|file>', 'compare with this extractor, run on the same pages; else with the records of the log')
    .addHelpText('after', '\nExample:\n  millrace replay preview --extractor book.yaml --domain books.example')
    .action(async (flags: PreviewFlags, running: Command) => {
      const { replayPreview } = await import('../replay-session.ts')
      await replayPreview(contextOf(running), flags)
    })
  scoped(command.command('run').description('do it: in place on a stopped group, or beside live work in a shadow'))
    .option('--in-place', 'rewind the group itself; it does the work when it starts again')
    .option('--shadow', 'a group of its own, records to a topic of their own; does the work now')
    .option('--out <topic>', 'topic for the records of a shadow replay')
    .option('--rate <n>', 'pages per second of a shadow replay')
    .option('--expect <hash>', 'replay just what a preview with this hash looked at, or refuse')
    .option('--id <id>', 'name of the replay; one that was cut short goes on under its name')
    .option('--drain-timeout <duration>', 'how long the first Ctrl-C may take', '30s')
    .addHelpText('after', '\nExample:\n  millrace replay run --extractor book.yaml --shadow')
    .action(async (flags: ReplayRunFlags, running: Command) => {
      const { replayRun } = await import('../replay-session.ts')
      await replayRun(contextOf(running), flags)
    })
  return command
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
    .option('--crawl <id>', 'pages of this crawl alone')
    .option('--fetched-from <time>', 'pages fetched at or after a time alone')
    .option('--fetched-until <time>', 'pages fetched before a time alone')
    .option('--group <name>', 'extract group by its name in extract.groups')
}
