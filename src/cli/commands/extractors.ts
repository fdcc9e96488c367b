import { Command } from 'commander'
import { packageVersion } from '../../control/package-version.ts'
import type { CommandDefinition } from '../command-definition.ts'

const URL_OPTION = ['--url <url>', 'URL of saved pages: links are resolved against it', 'http://localhost/'] as const

export const extractorsCommand: CommandDefinition = (contextOf) => {
  const command = new Command('extractors').description('check extractor files, and try them on a page')
  command
    .command('check')
    .description('validate extractor files; problems are shown with line and column')
    .argument('<file...>', 'extractor files')
    .addHelpText('after', '\nExample:\n  millrace extractors check extractors/*.yaml')
    .action(async (files: string[], _: object, running: Command) => {
      const { checkFiles } = await import('../extractors-session.ts')
      await checkFiles(contextOf(running), files)
    })
  command
    .command('test')
    .description('run an extractor on one page and show where each field came from')
    .argument('<file>', 'extractor file')
    .argument('<page>', 'a saved page, a URL (fetched once), or TOPIC:PARTITION:OFFSET of a stored one')
    .option(...URL_OPTION)
    .addHelpText('after', '\nExample:\n  millrace extractors test book.yaml page.html --url https://books.example/1')
    .action(async (file: string, page: string, flags: { url: string }, running: Command) => {
      const { testOnPage } = await import('../extractors-session.ts')
      await testOnPage(contextOf(running), file, page, flags.url, packageVersion())
    })
  const pages = 'saved pages, URLs (fetched once), or stored ones: TOPIC:PARTITION:OFFSET, TOPIC:PARTITION:FROM..TO'
  command
    .command('diff')
    .description('run two extractors on the same pages and show what changes; ends with 1 where something does')
    .argument('<old>', 'extractor file')
    .argument('<new>', 'extractor file')
    .argument('<page...>', pages)
    .option(...URL_OPTION)
    .addHelpText('after', '\nExample:\n  millrace extractors diff book.yaml book2.yaml scrape.html:2:0..99')
    .action(async (before: string, after: string, on: string[], flags: { url: string }, running: Command) => {
      const { diffOnPages } = await import('../extractors-session.ts')
      await diffOnPages(contextOf(running), { before, after }, on, flags.url, packageVersion())
    })
  command
    .command('watch')
    .description('run an extractor on the same pages at every save and show the fields that changed; until Ctrl-C')
    .argument('<file>', 'extractor file')
    .argument('<page...>', pages)
    .option(...URL_OPTION)
    .addHelpText('after', '\nExample:\n  millrace extractors watch book.yaml pages/*.html')
    .action(async (file: string, on: string[], flags: { url: string }, running: Command) => {
      const { watchOnPages } = await import('../extractors-session.ts')
      await watchOnPages(contextOf(running), file, on, flags.url, packageVersion())
    })
  return command
}
