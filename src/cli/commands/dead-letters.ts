import { Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'
import type { DeadLetterFlags } from '../dead-letters-session.ts'

export const deadLettersCommand: CommandDefinition = (contextOf) => {
  const command = new Command('dead-letters').description('messages that were given up on, with their bytes and the reason')
  command
    .command('list')
    .description('list them, newest last')
    .option('--stage <stage>', 'of this stage alone: fetch, delay, extract')
    .option('--code <code>', 'with this error code alone')
    .option('--domain <domain>', 'of this registrable domain alone')
    .option('--since <time>', 'written at or after a time')
    .option('--max <n>', 'at most this many')
    .addHelpText('after', '\nExample:\n  millrace dead-letters list --stage extract --since 1d')
    .action(async (flags: DeadLetterFlags, running: Command) => {
      const { list } = await import('../dead-letters-session.ts')
      await list(contextOf(running), flags)
    })
  command
    .command('show')
    .description('one of them whole')
    .argument('<p:n>', 'partition and offset, as `list` shows them')
    .option('--raw', 'the original bytes alone, on standard output')
    .addHelpText('after', '\nExample:\n  millrace dead-letters show 2:17 --raw > message.bin')
    .action(async (place: string, flags: { raw?: boolean }, running: Command) => {
      const { show } = await import('../dead-letters-session.ts')
      await show(contextOf(running), place, flags.raw === true)
    })
  return command
}
