import { Command } from 'commander'
import { type CommandDefinition, timeForms } from '../command-definition.ts'
import type { DeadLetterFlags } from '../dead-letters-session.ts'

export const deadLettersCommand: CommandDefinition = (contextOf) => {
  const command = new Command('dead-letters').description('messages that were given up on, with their bytes and the reason')
  filtered(command.command('list').description('list the open ones, with reason and URL, in the order of each partition'))
    .option('--all', 'requeued and dropped ones as well')
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
  filtered(command.command('stats').description('how many there are, by stage, code and domain'))
    .addHelpText('after', '\nExample:\n  millrace dead-letters stats --since 1d')
    .action(async (flags: DeadLetterFlags, running: Command) => {
      const { stats } = await import('../dead-letters-session.ts')
      await stats(contextOf(running), flags)
    })
  resolving(
    command.command('requeue').description('try them again: a URL as a new task, a page for the extractor that failed'),
    '\nExample:\n  millrace dead-letters requeue --code FETCH_FAILED --domain books.example --execute',
  ).action(async (places: string[], flags: DeadLetterFlags, running: Command) => {
    const { resolve } = await import('../dead-letters-session.ts')
    await resolve(contextOf(running), 'requeued', places, flags)
  })
  resolving(
    command.command('drop').description('mark them as dealt with, so that they are not listed any more'),
    '\nExample:\n  millrace dead-letters drop 2:17 2:18 --execute',
  ).action(async (places: string[], flags: DeadLetterFlags, running: Command) => {
    const { resolve } = await import('../dead-letters-session.ts')
    await resolve(contextOf(running), 'dropped', places, flags)
  })
  return command
}

function filtered(command: Command): Command {
  return command
    .option('--stage <stage>', 'of this stage alone: fetch, delay, frontier, extract')
    .option('--code <code>', 'with this error code alone')
    .option('--domain <domain>', 'of this registrable domain or host alone')
    .option('--since <time>', 'written at or after a time')
    .option('--limit <n>', 'at most this many')
    .addHelpText('after', timeForms('that long ago'))
}

function resolving(command: Command, example: string): Command {
  return filtered(command.argument('[p:n...]', 'these alone, as `list` shows them'))
    .option('--execute', 'do it; without, it is only said what would be done')
    .addHelpText('after', example)
}
