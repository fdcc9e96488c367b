import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readFraming } from '../../src/message/framing.ts'
import type { RecordEnvelope } from '../../src/message/generated/types.ts'
import { BenchSite, hostNames } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, until } from './fetch-deployment.ts'
import { cpuSeconds, processTree } from './machine-usage.ts'
import { pageLoop } from './replay-deployment.ts'
import type { Engine } from './replay-engines.ts'
import { WIDE } from './replay-extractors.ts'

/** A crawl of pages of the corpus, fetched and extracted: what it costs us, every page and every record stored. */
export interface CrawlRound {
  readonly pages: number
  readonly cpuSeconds: number
  readonly seconds: number
}

/** Pages before the clock starts, and when it stops: the rest is the tail in which slots run empty. */
export const CRAWL_WARM_PAGES = 400
export const CRAWL_MEASURED_SHARE = 0.93
export const CRAWL_CONCURRENCY = 32
export const CRAWL_HOSTS = 200

/** A site with the pages of the corpus, and our stages before it. */
export class CrawlDeployment {
  readonly site: BenchSite
  readonly #fetch: FetchDeployment
  readonly #folder: string
  #expected: readonly Buffer[] = []
  #crawled = 0

  private constructor(site: BenchSite, fetch: FetchDeployment, folder: string) {
    this.site = site
    this.#fetch = fetch
    this.#folder = folder
  }

  static async open(broker: BenchBroker): Promise<CrawlDeployment> {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-extractors-'))
    const file = join(folder, 'wide.yaml')
    writeFileSync(file, WIDE.text)
    const site = await BenchSite.start({ latencyMs: 0, keepLog: false, corpus: true })
    const fetch = await FetchDeployment.open(broker, [
      `fetch.concurrency=${CRAWL_CONCURRENCY}`,
      'politeness.default.ratePerSecond=1000',
      'politeness.default.concurrency=4',
      `extractors=${file}`,
    ])
    return new CrawlDeployment(site, fetch, folder)
  }

  /** Fetches and extracts so many pages, each from an address of its own. */
  async round(pages: number, engine: Engine): Promise<CrawlRound> {
    const hosts = hostNames(CRAWL_HOSTS)
    const first = this.#crawled
    this.#crawled += pages
    const numbers = Array.from({ length: pages }, (_, index) => first + index)
    await this.#fetch.produce(
      numbers.map((number) => ({ url: this.site.url(hosts[number % CRAWL_HOSTS] ?? '', number), crawlId: 'bench' })),
    )
    const { runtime } = this.#fetch
    const recordsFrom = await runtime.admin.endOffsets(runtime.topics.records, 'read_uncommitted')
    const programs = [this.#fetch.start('fetch'), this.#fetch.start('extract', engine.sets)]
    try {
      const reading = (atLeast: number): Promise<{ pages: number; cpu: number; at: number }> =>
        until(
          `${atLeast} of ${pages} pages`,
          async () => {
            for (const program of programs) program.assertRunning()
            const extracted = (await this.#extracted()) - first
            const cpu = programs.flatMap(({ pid }) => processTree(pid)).reduce((sum, pid) => sum + cpuSeconds(pid), 0)
            return extracted < atLeast ? undefined : { pages: extracted, cpu, at: performance.now() }
          },
          60_000 + pages * 100,
          100,
        )
      const from = await reading(CRAWL_WARM_PAGES)
      const to = await reading(pages * CRAWL_MEASURED_SHARE)
      await reading(pages)
      await this.#verify(numbers, recordsFrom)
      return { pages: to.pages - from.pages, cpuSeconds: to.cpu - from.cpu, seconds: (to.at - from.at) / 1_000 }
    } finally {
      for (const program of programs) await program.stop()
    }
  }

  /** Pages whose records are committed. */
  async #extracted(): Promise<number> {
    const { admin, groups, topics } = this.#fetch.runtime
    const lags = await admin.lag(groups.extract(), [topics.html])
    return lags.reduce((sum, { committed, low }) => sum + Number((committed ?? low) - low), 0)
  }

  /** Errors: where a page has no record, or another one than the bare loop makes of it: the figure is void then. */
  async #verify(numbers: readonly number[], recordsFrom: ReadonlyMap<number, bigint>): Promise<void> {
    const { codec, schemaStore, topics } = this.#fetch.runtime
    if (this.#expected.length === 0) this.#expected = (await pageLoop('bare', { extractor: WIDE, warmPages: 0, pages: 1 })).records
    const missing = new Set(numbers)
    for await (const { value } of this.#fetch.messages(topics.records, recordsFrom)) {
      if (value === null) continue
      const { fingerprint, value: decoded } = codec.decodeAny(value)
      const record = decoded as RecordEnvelope & { readonly data: unknown }
      const number = Number(new URL(record.url).pathname.slice(1))
      const schema = schemaStore.byFingerprint(fingerprint)
      const expected = schema?.decode(this.#expected[number % this.#expected.length] ?? Buffer.alloc(0)) as { readonly data: unknown }
      const again = schema?.encode({ ...record, data: expected.data })
      if (again?.equals(value.subarray(readFraming(value).bodyStart)) !== true)
        throw new Error(`the record of ${record.url} differs from that of the bare loop`)
      missing.delete(number)
    }
    if (missing.size > 0) throw new Error(`${missing.size} of ${numbers.length} pages have no record`)
  }

  async close(): Promise<void> {
    await this.#fetch.close()
    await this.site.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
