import { Command, Option } from 'commander'
import { type CommandDefinition, collect, crawlOption, timeForms } from '../command-definition.ts'
import type { ProduceFlags } from '../produce-session.ts'

export const produceCommand: CommandDefinition = (contextOf) =>
  new Command('produce')
    .description('write URLs to their topic')
    .argument('[url...]', 'URLs')
    .option('--file <file>', 'URLs, one a line; - for standard input')
    .addOption(new Option('--lane <lane>', 'priority class').choices(['high', 'normal', 'low']).default('normal'))
    .option('--crawl <id>', 'crawl they belong to; repeats within it are dropped', crawlOption)
    .option('--max-depth <n>', 'follow links this deep')
    .option('--meta <k=v>', 'passed through to pages and records; may be repeated', collect, [])
    .option('--header <k: v>', 'request header; may be repeated', collect, [])
    .option('--method <method>', 'HTTP method; POST where there is a body, else GET')
    .option('--body <text>', 'body of the request')
    .option('--body-file <file>', 'the same from a file; - for standard input')
    .option('--not-before <time>', 'fetch no sooner than this')
    .option('--expires <time>', 'do not fetch after this')
    .option('--limit <n>', 'write at most this many URLs')
    .option('--strict', 'write nothing where a single line is bad')
    .option('--if-changed', 'an unchanged page is an outcome, not a page')
    .addHelpText('after', timeForms('from now'))
    .addHelpText(
      'after',
      '\nExample:\n  millrace produce --file urls.txt --crawl spring --max-depth 1\n  kcat -P and the console producer can write {"url": "…"} as well',
    )
    .action(async (urls: string[], flags: ProduceFlags, running: Command) => {
      const { produceUrls } = await import('../produce-session.ts')
      await produceUrls(contextOf(running), urls, flags)
    })
