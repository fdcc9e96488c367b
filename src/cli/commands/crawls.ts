import { Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'

export const crawlsCommand: CommandDefinition = (contextOf) => {
  const command = new Command('crawls').description('a crawl while workers run: stop, resume')
  command
    .command('stop')
    .description('start no request of a crawl any more, within two seconds; its URLs that wait are refused, its links not followed')
    .argument('<crawl>', 'name of the crawl')
    .addHelpText('after', '\nExample:\n  millrace crawls stop spring')
    .action(async (crawl: string, _: object, running: Command) => {
      const { stop } = await import('../crawls-session.ts')
      await stop(contextOf(running), crawl)
    })
  command
    .command('resume')
    .description('take URLs of a crawl again that was stopped; those that were refused stay refused')
    .argument('<crawl>', 'name of the crawl')
    .addHelpText('after', '\nExample:\n  millrace crawls resume spring')
    .action(async (crawl: string, _: object, running: Command) => {
      const { resume } = await import('../crawls-session.ts')
      await resume(contextOf(running), crawl)
    })
  return command
}
