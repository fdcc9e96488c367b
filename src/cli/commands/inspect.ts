import { Command } from 'commander'
import { MillraceError } from '../../kernel/errors.ts'
import { type CommandDefinition, crawlOption } from '../command-definition.ts'

/** Commands that look and change nothing. */
export const statusCommand: CommandDefinition = (contextOf) =>
  new Command('status')
    .description('where every group stands: lag in messages and seconds, members, workers')
    .option('--watch', 'again every two seconds, until Ctrl-C')
    .option('--fields', 'instead: nulls and types of each field in the newest records, by extractor version')
    .addHelpText('after', '\nExample:\n  millrace status --watch')
    .action(async (flags: { watch?: boolean; fields?: boolean }, running: Command) => {
      if (flags.fields === true && flags.watch === true)
        throw new MillraceError('USAGE', '--fields and --watch: say one, fields are counted once over many records')
      if (flags.fields === true) {
        const { showFields } = await import('../fields-session.ts')
        await showFields(contextOf(running))
        return
      }
      const { showStatus } = await import('../ledger-session.ts')
      await showStatus(contextOf(running), flags.watch === true)
    })

export const explainCommand: CommandDefinition = (contextOf) =>
  new Command('explain')
    .description('where a URL is, what it waits for and until when, and what happened to it')
    .argument('<url>', 'the URL, in any spelling of it')
    .addHelpText('after', '\nExample:\n  millrace explain https://books.example/1')
    .action(async (url: string, _: object, running: Command) => {
      const { explainUrl } = await import('../explain-session.ts')
      await explainUrl(contextOf(running), url)
    })

export const lineageCommand: CommandDefinition = (contextOf) =>
  new Command('lineage')
    .description('where a record came from: page, task, outcome, and when each step was')
    .argument('<record-id|url>', 'recordId of a record, or a URL whose last page is meant')
    .addHelpText('after', '\nExample:\n  millrace lineage e174e5f2ab25216b64c48b6783d14a3f')
    .action(async (what: string, _: object, running: Command) => {
      const { showLineage } = await import('../lineage-session.ts')
      await showLineage(contextOf(running), what)
    })

export const auditCommand: CommandDefinition = (contextOf) =>
  new Command('audit')
    .description('the ledger: every URL against its outcome; ends with 1 when they differ')
    .option('--crawl <id>', 'of this crawl alone', crawlOption)
    .addHelpText('after', '\nExample:\n  millrace audit --crawl spring')
    .action(async (flags: { crawl?: string }, running: Command) => {
      const { showAudit } = await import('../ledger-session.ts')
      await showAudit(contextOf(running), flags.crawl)
    })
