import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { CheerioAPI } from 'cheerio'
import type { BareLoopOptions } from './bare-loop-main.ts'
import type { TenValues } from './peer-records.ts'

/**
 * HttpCrawler or CheerioCrawler of Crawlee, as quick as they can be set: memory storage, no sessions, a fixed concurrency. They keep no
 * page and no record; what they decoded is compared by length. It tells how many it has on request, or each record as it has it, to be
 * compared where nothing is timed.
 */
export interface CrawleeOptions extends Pick<BareLoopOptions, 'urls' | 'concurrency'> {
  readonly folder: string
  /** `http` keeps to fetching; `cheerio` reads ten fields, and every page has an address of its own. */
  readonly crawler: 'http' | 'cheerio'
  readonly bodyLengths: readonly number[]
  /** Of `cheerio`: tell each record as `ToldRecord`. */
  readonly tells?: boolean
}

export interface ToldRecord {
  readonly index: number
  readonly values: TenValues
}

type Crawler = new (options: object, configuration: unknown) => { run(requests: readonly object[]): Promise<unknown> }

interface Crawlee {
  readonly HttpCrawler?: Crawler
  readonly CheerioCrawler?: Crawler
  readonly Configuration: new (options: object) => { useStorageClient(client: unknown): void }
}

interface Handled {
  readonly body: string | Buffer
  readonly request: { readonly url: string }
  /** Of the CheerioCrawler. */
  readonly $?: CheerioAPI
}

function tenFields($: CheerioAPI): TenValues {
  const texts = (selector: string): string[] =>
    $(selector)
      .toArray()
      .map((element) => $(element).text().trim())
  const attributes = (selector: string, name: string): (string | undefined)[] =>
    $(selector)
      .toArray()
      .map((element) => $(element).attr(name))
  return {
    title: $('title').first().text().trim(),
    canonical: $('link[rel=canonical]').attr('href'),
    description: $('meta[name=description]').attr('content'),
    image: $('meta[property="og:image"]').attr('content'),
    language: $('html').attr('lang'),
    heading: $('h1').first().text().trim(),
    links: attributes('a[href]', 'href'),
    images: attributes('img[src]', 'src'),
    subheadings: texts('h2, h3'),
    paragraphs: texts('p'),
  }
}

const options = JSON.parse(process.argv[2] ?? '{}') as CrawleeOptions
const require = createRequire(join(options.folder, 'package.json'))
const { HttpCrawler, CheerioCrawler, Configuration } = require(`@crawlee/${options.crawler}`) as Crawlee
const Chosen = options.crawler === 'http' ? HttpCrawler : CheerioCrawler
if (Chosen === undefined) throw new Error(`@crawlee/${options.crawler} has no crawler of this kind`)
const { MemoryStorage } = require('@crawlee/memory-storage') as { MemoryStorage: new (options: object) => unknown }

let done = 0
process.on('message', () => process.send?.(done))
process.once('disconnect', () => process.exit(0))

const { hosts, perHost, port } = options.urls
const requests = Array.from({ length: hosts.length * perHost }, (_, index) => {
  const path = `/${options.crawler === 'http' ? Math.floor(index / hosts.length) : index}`
  const host = hosts[index % hosts.length] ?? ''
  // Its client has no table of hosts: all names are one address, which is told apart by the header.
  return { url: `http://127.0.0.1:${port}${path}?${host}`, uniqueKey: `${host}${path}`, headers: { host: `${host}:${port}` } }
})
const configuration = new Configuration({ persistStorage: false, logLevel: 0 })
configuration.useStorageClient(new MemoryStorage({ persistStorage: false }))
const crawler = new Chosen(
  {
    minConcurrency: options.concurrency,
    maxConcurrency: options.concurrency,
    useSessionPool: false,
    requestHandler: async ({ body, request, $ }: Handled) => {
      const index = Number(new URL(request.url).pathname.slice(1)) % options.bodyLengths.length
      if (Buffer.byteLength(body) !== options.bodyLengths[index]) throw new Error(`${request.url} has ${Buffer.byteLength(body)} bytes`)
      const values = $ === undefined ? undefined : tenFields($)
      if (options.tells === true && values !== undefined) process.send?.({ index, values } satisfies ToldRecord)
      done += 1
    },
    failedRequestHandler: ({ request }: { readonly request: { readonly url: string; readonly errorMessages: readonly string[] } }) => {
      throw new Error(`${request.url}: ${request.errorMessages.join('; ')}`)
    },
  },
  configuration,
)
await crawler.run(requests)
