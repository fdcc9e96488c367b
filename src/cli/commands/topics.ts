import { Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'

export const topicsCommand: CommandDefinition = (contextOf) => {
  const command = new Command('topics').description('topics as code: what differs, make it so, what is there')
  command
    .command('plan')
    .description('show what differs from the configuration; changes nothing')
    .addHelpText('after', '\nExample:\n  millrace topics plan --brokers kafka:9092')
    .action(async (_: object, running: Command) => {
      const { planOrApply } = await import('../topics-session.ts')
      await planOrApply(contextOf(running), 'plan')
    })
  command
    .command('apply')
    .description('make the topics as the configuration wants them; idempotent')
    .option('--print', 'show the changes and do not make them')
    .addHelpText('after', '\nExample:\n  millrace topics apply --brokers kafka:9092 --set topics.replication=3')
    .action(async (flags: { print?: boolean }, running: Command) => {
      const { planOrApply } = await import('../topics-session.ts')
      await planOrApply(contextOf(running), flags.print === true ? 'plan' : 'apply')
    })
  command
    .command('describe')
    .description('the topics that are there, with what they hold')
    .addHelpText('after', '\nExample:\n  millrace topics describe')
    .action(async (_: object, running: Command) => {
      const { describe } = await import('../topics-session.ts')
      await describe(contextOf(running))
    })
  return command
}
