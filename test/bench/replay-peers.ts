import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { deriveSchema } from '../../src/extract/derive-schema.ts'
import { readDefinition } from '../../src/extract/language/read-definition.ts'
import { hasCorpus } from '../support/corpus.ts'
import { type BenchSite, hostNames } from './bench-site.ts'
import type { CrawleeOptions, ToldRecord } from './crawlee-main.ts'
import { type BenchBroker, until } from './fetch-deployment.ts'
import { type Goal, median, print, printTable, short } from './figures.ts'
import { cpuSeconds, loadAverage } from './machine-usage.ts'
import { type Comparison, compareValues, type TenValues } from './peer-records.ts'
import { CRAWL_CONCURRENCY, CRAWL_HOSTS, CRAWL_MEASURED_SHARE, CRAWL_WARM_PAGES, CrawlDeployment, type CrawlRound } from './replay-crawl.ts'
import { pageLoop } from './replay-deployment.ts'
import { type Engine, engines } from './replay-engines.ts'
import { WIDE } from './replay-extractors.ts'
import { loadPages } from './replay-load.ts'
import type { ReplayOptions } from './replay-overhead.ts'

/** G4: pages per CPU second, fetched and extracted, against Crawlee's CheerioCrawler, which keeps nothing. */
export async function replayCrawlee(broker: BenchBroker, options: ReplayOptions): Promise<Goal[]> {
  const folder = process.env.MILLRACE_BENCH_CRAWLEE
  if (folder === undefined || !existsSync(join(folder, 'node_modules', '@crawlee', 'cheerio'))) {
    print('\nG4 skipped: MILLRACE_BENCH_CRAWLEE names no folder in which @crawlee/cheerio is installed')
    return []
  }
  return against(broker, options, {
    goal: 'G4',
    name: 'Crawlee CheerioCrawler',
    target: (engine) => (engine.isNative ? 2.7 : 1.3),
    round: (site) => crawleeRound(site, folder, options.pages),
    values: (site, count) => crawleeValues(site, folder, count),
  })
}

/** G6: the same against Scrapy, whose parser is written in C. */
export async function replayScrapy(broker: BenchBroker, options: ReplayOptions): Promise<Goal[]> {
  const python = process.env.MILLRACE_BENCH_PYTHON ?? 'python3'
  const version = await scrapyVersion(python)
  if (version === undefined) {
    print(`\nG6 skipped: ${python} can't import scrapy; install python3-scrapy, or name another Python by MILLRACE_BENCH_PYTHON`)
    return []
  }
  return against(broker, options, {
    goal: 'G6',
    name: `Scrapy ${version}`,
    target: (engine) => (engine.isNative ? 1.4 : 0.85),
    round: (site) => scrapyRound(site, python, options.pages),
    values: (site, count) => scrapyValues(site, python, count),
  })
}

interface Peer {
  readonly goal: string
  readonly name: string
  readonly target: (engine: Engine) => number
  readonly round: (site: BenchSite) => Promise<CrawlRound>
  /** Of so many pages of the site, untimed. */
  readonly values: (site: BenchSite, count: number) => Promise<readonly (TenValues | undefined)[]>
}

async function against(broker: BenchBroker, { rounds, pages }: ReplayOptions, peer: Peer): Promise<Goal[]> {
  if (!hasCorpus) {
    print(`\n${peer.goal} skipped: there is no corpus of real pages`)
    return []
  }
  const taken = new Map<string, CrawlRound[]>([[peer.name, []], ...engines().map(({ name }) => [name, []] as [string, CrawlRound[]])])
  const crawl = await CrawlDeployment.open(broker)
  let comparison: Comparison
  try {
    // Before anything is timed: what is compared has to be the same work.
    const ours = await ourValues()
    comparison = compareValues(ours, await peer.values(crawl.site, ours.length))
    for (let round = 0; round < rounds; round += 1) {
      taken.get(peer.name)?.push(await peer.round(crawl.site))
      for (const engine of engines()) taken.get(engine.name)?.push(await crawl.round(pages, engine))
    }
  } finally {
    await crawl.close()
  }
  const cpuMs = (name: string): number => median((taken.get(name) ?? []).map((round) => (round.cpuSeconds / round.pages) * 1_000))
  const speed = (name: string): number => median((taken.get(name) ?? []).map((round) => round.pages / round.seconds))
  print(
    `\n${rounds} rounds of ${pages} pages of the corpus, fetched and extracted, concurrency ${CRAWL_CONCURRENCY}; medians, load ${short(loadAverage())}`,
  )
  printTable(
    ['', 'CPU ms/page', 'pages/CPU-s', 'pages/s'],
    [...taken.keys()].map((name) => [
      name === peer.name ? `${name}, nothing stored` : `fetch and extract, ${name}, pages and records stored`,
      cpuMs(name),
      1_000 / cpuMs(name),
      speed(name),
    ]),
  )
  print(`${peer.name} gives ${comparedText(comparison)}`)
  return engines().map((engine) => ({
    name: `${peer.goal} pages per CPU second against ${peer.name}, ${engine.name}`,
    value: cpuMs(peer.name) / cpuMs(engine.name),
    target: { atLeast: peer.target(engine) },
  }))
}

/** Ours, of each page of the corpus: what the extract command is held to as well. */
async function ourValues(): Promise<readonly TenValues[]> {
  const { definition } = readDefinition(WIDE.text)
  if (definition === undefined) throw new Error(`the extractor ${WIDE.name} can't be read`)
  const schema = deriveSchema(definition)
  const { records } = await pageLoop('bare', { extractor: WIDE, warmPages: 0, pages: 1 })
  return records.map((record) => (schema.decode(record) as { readonly data: TenValues }).data)
}

function comparedText({ pages, equal, differing, sharedRatio }: Comparison): string {
  const fields = [...differing].toSorted(([, a], [, b]) => b - a).map(([field, count]) => `${field} on ${count}`)
  const others = fields.length === 0 ? '' : `; on the others differ ${fields.join(', ')}`
  return `the same ten values as we do of ${equal} of ${pages} pages, and of all values ${short(sharedRatio)}${others}`
}

async function crawleeValues(site: BenchSite, folder: string, count: number): Promise<readonly (TenValues | undefined)[]> {
  const child = startCrawlee({ ...crawleeOptions(folder), urls: { hosts: hostNames(1), perHost: count, port: site.port }, tells: true })
  const values: (TenValues | undefined)[] = []
  let told = 0
  child.on('message', ({ index, values: ten }: ToldRecord) => {
    values[index] = ten
    told += 1
  })
  await until(
    `${count} records of Crawlee`,
    async () => {
      if (child.exitCode !== null) throw new Error(`Crawlee ended with ${child.exitCode}`)
      return told === count || undefined
    },
    120_000,
  )
  await endCrawlee(child)
  return values
}

function crawleeOptions(folder: string): Omit<CrawleeOptions, 'urls'> {
  // Lengths of the text: it takes a byte order mark away.
  const bodyLengths = loadPages().map(({ body }) => Buffer.byteLength(new TextDecoder().decode(body)))
  return { folder, concurrency: CRAWL_CONCURRENCY, crawler: 'cheerio', bodyLengths }
}

function startCrawlee(options: CrawleeOptions): ChildProcess {
  return fork(fileURLToPath(new URL('./crawlee-main.ts', import.meta.url)), [JSON.stringify(options)], {
    serialization: 'advanced',
    stdio: 'inherit',
  })
}

async function endCrawlee(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.disconnect()
  await ended
}

async function crawleeRound(site: BenchSite, folder: string, pages: number): Promise<CrawlRound> {
  const urls = { hosts: hostNames(CRAWL_HOSTS), perHost: Math.ceil(pages / CRAWL_HOSTS), port: site.port }
  const child = startCrawlee({ ...crawleeOptions(folder), urls })
  const pid = child.pid ?? 0
  const reading = (atLeast: number): Promise<{ pages: number; cpu: number; at: number }> =>
    until(
      `${atLeast} pages of Crawlee`,
      async () => {
        if (child.exitCode !== null) throw new Error(`Crawlee ended with ${child.exitCode}`)
        child.send('count')
        const [done] = (await once(child, 'message')) as [number]
        return done >= atLeast ? { pages: done, cpu: cpuSeconds(pid), at: performance.now() } : undefined
      },
      60_000 + pages * 100,
      100,
    )
  const from = await reading(CRAWL_WARM_PAGES)
  const to = await reading(pages * CRAWL_MEASURED_SHARE)
  await reading(pages)
  await endCrawlee(child)
  return { pages: to.pages - from.pages, cpuSeconds: to.cpu - from.cpu, seconds: (to.at - from.at) / 1_000 }
}

const run = promisify(execFile)

/** Shape: undefined where this Python has no Scrapy, or is none. */
async function scrapyVersion(python: string): Promise<string | undefined> {
  try {
    return (await run(python, ['-c', 'import scrapy; print(scrapy.__version__)'])).stdout.trim()
  } catch {
    // Not installed, which is the usual case.
    return undefined
  }
}

async function scrapyRound(site: BenchSite, python: string, pages: number): Promise<CrawlRound> {
  const measuredPages = Math.floor(pages * CRAWL_MEASURED_SHARE)
  const sizes = { hosts: hostNames(CRAWL_HOSTS), pages, warmPages: CRAWL_WARM_PAGES, measuredPages }
  return (await runScrapy(site, python, { ...sizes, tells: false })) as CrawlRound
}

async function scrapyValues(site: BenchSite, python: string, pages: number): Promise<readonly TenValues[]> {
  return (await runScrapy(site, python, { hosts: hostNames(1), pages, warmPages: 0, measuredPages: 0, tells: true })) as TenValues[]
}

interface ScrapySizes {
  readonly hosts: readonly string[]
  readonly pages: number
  readonly warmPages: number
  readonly measuredPages: number
  readonly tells: boolean
}

/** What it says at its end. */
async function runScrapy(site: BenchSite, python: string, sizes: ScrapySizes): Promise<unknown> {
  const bodyLengths = loadPages().map(({ body }) => body.length)
  const options = { ...sizes, port: site.port, concurrency: CRAWL_CONCURRENCY, bodyLengths }
  const file = fileURLToPath(new URL('./scrapy_main.py', import.meta.url))
  const { stdout } = await run(python, [file, JSON.stringify(options)], { maxBuffer: 67_108_864 })
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
}
