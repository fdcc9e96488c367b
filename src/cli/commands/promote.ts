import { Command } from 'commander'
import { type CommandDefinition, collect } from '../command-definition.ts'
import type { PromoteFlags } from '../promote-session.ts'

export const promoteCommand: CommandDefinition = (contextOf) =>
  new Command('promote')
    .description('make a version of an extractor the one that works, or go back to the one before')
    .argument('<name:version>', 'of several versions that are configured')
    .option('--extractor <file>', 'extractor file; may be repeated', collect, [])
    .option('--force <reason>', 'although it gives less than the one before on the same pages')
    .addHelpText('after', '\nExample:\n  millrace promote book:2')
    .action(async (what: string, flags: PromoteFlags, running: Command) => {
      const { promoteVersion } = await import('../promote-session.ts')
      await promoteVersion(contextOf(running), what, flags)
    })
