import { Command } from 'commander'
import { formatDuration } from '../../config/units.ts'
import type { SeedText } from '../../control/crawls/produce.ts'
import { MAX_WAIT_MS } from '../../control/defaults.ts'
import { packageVersion } from '../../control/package-version.ts'
import { type CommandDefinition, collect, crawlOption, drainTimeoutOption } from '../command-definition.ts'

interface RunFlags {
  readonly seeds?: string
  readonly strict?: boolean
  readonly extractor: readonly string[]
  readonly depth?: string
  readonly limit?: string
  readonly out?: string
  readonly crawl?: string
  readonly maxWait: string
  readonly drainTimeout: string
  readonly keepRunning?: boolean
}

export const runCommand: CommandDefinition = (contextOf) =>
  new Command('run')
    .description('all stages in one process: fetch the URLs, extract records, end when the crawl has ended')
    .argument('[url...]', 'where to begin; without any, what is queued is worked off')
    .option('--seeds <file>', 'URLs, one a line; - for standard input')
    .option('--strict', 'fetch nothing where a single URL given is bad')
    .option('--extractor <file>', 'extractor file; may be repeated', collect, [])
    .option('--depth <n>', 'follow links this deep')
    .option('--limit <n>', 'fetch at most this many pages')
    .option(
      '--out <file>',
      'one record a line in place of what the file held, of a crawl that goes on all of them; without URLs and --crawl what comes is appended; - for standard output',
    )
    .option('--crawl <id>', 'name of the crawl; a new one each time where not given', crawlOption)
    .option('--max-wait <duration>', 'leave tasks queued that are due later than this', formatDuration(MAX_WAIT_MS))
    .addOption(drainTimeoutOption())
    .option('--keep-running', 'do not end with the crawl')
    .addHelpText('after', '\nExample:\n  millrace run https://books.example/ --extractor book.yaml \\\n    --depth 2 --out books.ndjson')
    .action(async (urls: string[], flags: RunFlags, running: Command) => {
      const context = contextOf(running)
      const loaded = context.loadConfig({
        ...(flags.extractor.length === 0 ? {} : { extractors: flags.extractor }),
        ...(flags.depth === undefined ? {} : { 'crawl.maxDepth': flags.depth }),
        ...(flags.limit === undefined ? {} : { 'crawl.maxPages': flags.limit }),
      })
      const { openRun } = await import('../run-session.ts')
      await openRun(context, loaded.config, {
        seeds: seedsOf(urls, flags.seeds),
        seedFile: flags.seeds,
        strict: flags.strict === true,
        hasDepth: flags.depth !== undefined,
        ownExtractors: flags.extractor.length > 0,
        out: flags.out,
        crawlId: flags.crawl,
        maxWait: flags.maxWait,
        drainTimeout: flags.drainTimeout,
        keepRunning: flags.keepRunning === true,
        version: packageVersion(),
      })
    })

/** Arguments first, then the file; undefined when neither was given. */
function seedsOf(urls: readonly string[], file: string | undefined): AsyncIterable<SeedText> | undefined {
  if (urls.length === 0 && file === undefined) return undefined
  return (async function* () {
    for (const text of urls) yield { text, line: undefined }
    if (file === undefined) return
    const [{ seedLines }, { inputOf }] = await Promise.all([import('../../control/crawls/produce.ts'), import('../input-file.ts')])
    yield* seedLines(inputOf(file))
  })()
}
