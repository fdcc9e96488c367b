import { Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'
import type { RateFlags } from '../sites-session.ts'

export const sitesCommand: CommandDefinition = (contextOf) => {
  const command = new Command('sites').description('the pace of a site while workers run: pause, resume, reset, change, look')
  const domain = 'domain, with all hosts below it, or one host; of a URL its host, with all pages'
  command
    .command('pause')
    .description('start no request of a site any more, within two seconds')
    .argument('<domain>', domain)
    .addHelpText('after', '\nExample:\n  millrace sites pause example.com')
    .action(async (name: string, _: object, running: Command) => {
      const { pause } = await import('../sites-session.ts')
      await pause(contextOf(running), name, true)
    })
  command
    .command('resume')
    .description('go on with a site that was paused')
    .argument('<domain>', domain)
    .addHelpText('after', '\nExample:\n  millrace sites resume example.com')
    .action(async (name: string, _: object, running: Command) => {
      const { pause } = await import('../sites-session.ts')
      await pause(contextOf(running), name, false)
    })
  command
    .command('reset')
    .description('forget the back-off, the breaker and the slow-down that a site has earned, and ask it again')
    .argument('<domain>', domain)
    .addHelpText('after', '\nExample:\n  millrace sites reset example.com')
    .action(async (name: string, _: object, running: Command) => {
      const { reset } = await import('../sites-session.ts')
      await reset(contextOf(running), name)
    })
  command
    .command('rate')
    .description('another pace for a site, until --reset')
    .argument('<domain>', domain)
    .option('--rate-per-second <n>', 'requests per second')
    .option('--burst <n>', 'requests that may start at once after idling')
    .option('--concurrency <n>', 'requests at the same time')
    .option('--crawl-delay <duration>', 'from the end of a request to the start of the next; a longer one of robots.txt counts')
    .option('--reset', 'take all of these back, before what else is given is set')
    .addHelpText('after', '\nExample:\n  millrace sites rate example.com --rate-per-second 0.2 --crawl-delay 5s')
    .action(async (name: string, flags: RateFlags, running: Command) => {
      const { rate } = await import('../sites-session.ts')
      await rate(contextOf(running), name, flags)
    })
  command
    .command('show')
    .description('the pace in force, where each value comes from, and what the limiter knows')
    .argument('<domain>', 'host, or domain')
    .addHelpText('after', '\nExample:\n  millrace sites show www.example.com')
    .action(async (name: string, _: object, running: Command) => {
      const { show } = await import('../sites-session.ts')
      await show(contextOf(running), name)
    })
  return command
}
