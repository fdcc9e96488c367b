import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { BareLoopOptions } from './bare-loop-main.ts'

/**
 * HttpCrawler of Crawlee, as quick as it can be set: memory storage, no sessions, a fixed concurrency. It keeps no page; what it decoded
 * is compared by length. It tells how many it has on request.
 */
export interface CrawleeOptions extends Pick<BareLoopOptions, 'urls' | 'concurrency'> {
  readonly folder: string
  readonly bodyLengths: readonly number[]
}

interface Crawlee {
  readonly HttpCrawler: new (options: object, configuration: unknown) => { run(requests: readonly object[]): Promise<unknown> }
  readonly Configuration: new (options: object) => { useStorageClient(client: unknown): void }
}

const options = JSON.parse(process.argv[2] ?? '{}') as CrawleeOptions
const require = createRequire(join(options.folder, 'package.json'))
const { HttpCrawler, Configuration } = require('@crawlee/http') as Crawlee
const { MemoryStorage } = require('@crawlee/memory-storage') as { MemoryStorage: new (options: object) => unknown }

let done = 0
process.on('message', () => process.send?.(done))
process.once('disconnect', () => process.exit(0))

const { hosts, perHost, port } = options.urls
const requests = Array.from({ length: hosts.length * perHost }, (_, index) => {
  const path = `/${Math.floor(index / hosts.length)}`
  const host = hosts[index % hosts.length] ?? ''
  // Its client has no table of hosts: all names are one address, which is told apart by the header.
  return { url: `http://127.0.0.1:${port}${path}?${host}`, uniqueKey: `${host}${path}`, headers: { host: `${host}:${port}` } }
})
const configuration = new Configuration({ persistStorage: false, logLevel: 0 })
configuration.useStorageClient(new MemoryStorage({ persistStorage: false }))
const crawler = new HttpCrawler(
  {
    minConcurrency: options.concurrency,
    maxConcurrency: options.concurrency,
    useSessionPool: false,
    requestHandler: async ({ body, request }: { readonly body: string | Buffer; readonly request: { readonly url: string } }) => {
      const index = Number(new URL(request.url).pathname.slice(1)) % options.bodyLengths.length
      if (Buffer.byteLength(body) !== options.bodyLengths[index]) throw new Error(`${request.url} has ${Buffer.byteLength(body)} bytes`)
      done += 1
    },
    failedRequestHandler: ({ request }: { readonly request: { readonly url: string; readonly errorMessages: readonly string[] } }) => {
      throw new Error(`${request.url}: ${request.errorMessages.join('; ')}`)
    },
  },
  configuration,
)
await crawler.run(requests)
