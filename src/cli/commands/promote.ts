import { Command } from 'commander'
import { type CommandDefinition, collect } from '../command-definition.ts'
import type { PromoteFlags } from '../promote-session.ts'

export const promoteCommand: CommandDefinition = (contextOf) =>
  new Command('promote')
    .description('make a version of an extractor the one that works, or go back to the one before; without one, the promoted ones')
    .argument('[name:version]', 'of several versions that are configured; none: which ones are promoted, and since when')
    .option('--extractor <file>', 'extractor file; may be repeated', collect, [])
    .option('--force <reason>', 'although it gives less than the one before on the same pages')
    .addHelpText('after', '\nExample:\n  millrace promote book:2')
    .action(async (what: string | undefined, flags: PromoteFlags, running: Command) => {
      const { listPromoted, promoteVersion } = await import('../promote-session.ts')
      if (what === undefined) await listPromoted(contextOf(running), flags)
      else await promoteVersion(contextOf(running), what, flags)
    })
