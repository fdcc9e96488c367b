import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { recordOf } from '../../src/extract/envelope.ts'
import { pageMessage } from '../../src/fetch/page-message.ts'
import type { KafkaMessage } from '../../src/kafka/message.ts'
import { readFraming } from '../../src/message/framing.ts'
import type { Page, RecordEnvelope } from '../../src/message/generated/types.ts'
import { type BenchBroker, FetchDeployment, type Program, until } from './fetch-deployment.ts'
import { cpuSeconds, processTree, residentMiB } from './machine-usage.ts'
import type { PageLoopOptions, PageLoopReport } from './page-loop.ts'
import type { Engine } from './replay-engines.ts'
import type { BenchExtractor } from './replay-extractors.ts'
import { type LoadPage, loadPages, numberOf, storedPage } from './replay-load.ts'

/** Pages before the clock starts, of every contender. */
export const WARM_PAGES = 200
const PAGES_PER_SEND = 64
/** A commit covers up to 64 pages of each of 4 partitions, so a reading is as exact as that. */
const POLL_MS = 200

export interface ExtractRound {
  readonly pages: number
  /** Of all processes of the stage. */
  readonly cpuSeconds: number
  /** Of those of them that parse. */
  readonly parsingCpuSeconds: number
  readonly seconds: number
  readonly brokerCpuSeconds: number
  readonly samples: readonly MemorySample[]
}

export interface MemorySample {
  readonly pages: number
  /** All processes of the stage together. */
  readonly residentMiB: number
  /** Those of them that parse. */
  readonly parsingMiB: number
}

export interface ExtractRoundOptions {
  readonly extractor: BenchExtractor
  readonly engine: Engine
  /** Members of the group; 1 where not given. */
  readonly members?: number
  /** Extraction processes of each member; 1 where not given. */
  readonly threads?: number
}

/** An html topic filled with the load, and the extract command over it as often as one likes: each round is a group of its own. */
export class ReplayDeployment {
  readonly fetch: FetchDeployment
  readonly load: readonly LoadPage[]
  readonly pageCount: number
  readonly #broker: BenchBroker
  readonly #folder: string
  #rounds = 0

  private constructor(fetch: FetchDeployment, broker: BenchBroker, load: readonly LoadPage[], pageCount: number, folder: string) {
    this.fetch = fetch
    this.load = load
    this.pageCount = pageCount
    this.#broker = broker
    this.#folder = folder
  }

  /** `rounds`: how many there will be of each extractor. */
  static async open(
    broker: BenchBroker,
    { pages, rounds, extractors }: { pages: number; rounds: number; extractors: readonly BenchExtractor[] },
  ): Promise<ReplayDeployment> {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-extractors-'))
    const files = extractors.map(({ name, text }) => {
      const file = join(folder, `${name}.yaml`)
      writeFileSync(file, text)
      return file
    })
    const groups = Object.fromEntries(
      extractors.flatMap(({ name }) => Array.from({ length: rounds }, (_, round) => [groupOf(name, round), [name]])),
    )
    const fetch = await FetchDeployment.open(broker, [], { extractors: files, extract: { groups } })
    const deployment = new ReplayDeployment(fetch, broker, loadPages(), pages, folder)
    await deployment.#fill()
    return deployment
  }

  async #fill(): Promise<void> {
    const { runtime } = this.fetch
    const [producer, layout] = await Promise.all([runtime.producer(), runtime.layout()])
    const parts = { codec: runtime.codec, layout, topics: runtime.topics }
    await runtime.codec.prepare(runtime.topics.html, 'Page')
    for (let from = 0; from < this.pageCount; from += PAGES_PER_SEND) {
      const count = Math.min(PAGES_PER_SEND, this.pageCount - from)
      await producer.send(Array.from({ length: count }, (_, index) => pageMessage(storedPage(this.load, from + index), parts)))
    }
  }

  /** The extract command from the first stored page to the last. Records are on their topic afterwards, from `recordsFrom` on. */
  async round(options: ExtractRoundOptions): Promise<ExtractRound & { readonly recordsFrom: ReadonlyMap<number, bigint> }> {
    const { extractor, engine, members = 1, threads = 1 } = options
    const { runtime } = this.fetch
    const group = groupOf(extractor.name, this.#rounds++)
    const recordsFrom = await runtime.admin.endOffsets(runtime.topics.records, 'read_uncommitted')
    const sets = [`extract.threads=${threads}`, ...engine.sets]
    const programs = Array.from({ length: members }, () => this.fetch.start('extract', sets, ['--group', group]))
    try {
      return { ...(await this.#measure(runtime.groups.extract(group), programs)), recordsFrom }
    } finally {
      for (const program of programs) await program.stop()
    }
  }

  /** From the warm pages on until almost all are worked; the rest are the tail in which partitions run dry. */
  async #measure(groupId: string, programs: readonly Program[]): Promise<ExtractRound> {
    const samples: MemorySample[] = []
    const reading = (atLeast: number): Promise<{ pages: number; cpu: number; parsing: number; broker: number; at: number }> =>
      until(
        `${atLeast} of ${this.pageCount} pages`,
        async () => {
          for (const program of programs) program.assertRunning()
          const pages = this.pageCount - (await this.#lag(groupId))
          const processes = programs.flatMap(({ pid }) => processTree(pid))
          const cpu = sum(processes.map(cpuSeconds))
          const parsing = cpu - sum(programs.map(({ pid }) => cpuSeconds(pid)))
          const usage = { pages, cpu, parsing, broker: cpuSeconds(this.#broker.pid), at: performance.now() }
          const resident = sum(processes.map(residentMiB))
          samples.push({ pages, residentMiB: resident, parsingMiB: resident - sum(programs.map(({ pid }) => residentMiB(pid))) })
          return pages < atLeast ? undefined : usage
        },
        30_000 + this.pageCount * 100,
        POLL_MS,
      )
    const first = await reading(WARM_PAGES * programs.length)
    const last = await reading(this.pageCount * 0.95)
    await reading(this.pageCount)
    return {
      pages: last.pages - first.pages,
      cpuSeconds: last.cpu - first.cpu,
      parsingCpuSeconds: last.parsing - first.parsing,
      seconds: (last.at - first.at) / 1_000,
      brokerCpuSeconds: last.broker - first.broker,
      samples: samples.filter(({ pages }) => pages >= first.pages),
    }
  }

  async #lag(groupId: string): Promise<number> {
    const { runtime } = this.fetch
    return Number((await runtime.admin.lag(groupId, [runtime.topics.html])).reduce((total, { lag }) => total + lag, 0n))
  }

  /**
   * Are the records of a round, byte for byte, those that a loop made of the same pages? Errors: where one is missing, there twice, or
   * differs; the figure is void then.
   */
  async verify(extractor: BenchExtractor, recordsFrom: ReadonlyMap<number, bigint>, expected: readonly Buffer[]): Promise<void> {
    const { runtime } = this.fetch
    const seen = new Set<number>()
    const datas = new Map<number, unknown>()
    for await (const message of this.fetch.messages(runtime.topics.records, recordsFrom)) {
      if (message.value === null) continue
      const { schemaName, fingerprint, value } = runtime.codec.decodeAny(message.value)
      const schema = runtime.schemaStore.byFingerprint(fingerprint)
      if (schema === undefined) throw new Error(`the schema of ${schemaName} is not known`)
      const record = value as RecordEnvelope & { readonly data: unknown }
      const number = numberOf(record.url)
      const which = number % this.load.length
      if (!datas.has(which)) datas.set(which, (schema.decode(expected[which] ?? Buffer.alloc(0)) as { data: unknown }).data)
      const again = schema.encode(this.#envelope(extractor, record, storedPage(this.load, number), datas.get(which)))
      if (!again.equals(bodyOf(message))) throw new Error(`the record of ${record.url} differs from that of the loop`)
      seen.add(number)
    }
    if (seen.size !== this.pageCount) throw new Error(`there are records of ${seen.size} pages; expected ${this.pageCount}`)
  }

  #envelope(extractor: BenchExtractor, record: RecordEnvelope, page: Page, data: unknown): unknown {
    const source = { ...record.source, offset: BigInt(record.source.offset) }
    const context = { page, source, extractor: extractor.name, version: 1, extractedAt: record.extractedAt, replayId: null }
    return recordOf(context, { entityKey: page.canonicalUrl, data }, 0)
  }

  async close(): Promise<void> {
    await this.fetch.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** A loop over the same pages in memory, in a process of its own. */
export async function pageLoop(program: 'bare' | 'obvious', options: PageLoopOptions): Promise<PageLoopReport> {
  const file = fileURLToPath(new URL(`./${program}-extract-main.ts`, import.meta.url))
  const child: ChildProcess = fork(file, [JSON.stringify(options)], { serialization: 'advanced' })
  const ended = once(child, 'exit')
  const [report] = (await Promise.race([
    once(child, 'message'),
    ended.then(([code]) => {
      throw new Error(`the ${program} loop ended with ${code}`)
    }),
  ])) as [PageLoopReport]
  await ended
  return report
}

function groupOf(name: string, round: number): string {
  return `${name}-${round}`
}

function bodyOf({ value }: KafkaMessage): Buffer {
  return (value ?? Buffer.alloc(0)).subarray(readFraming(value).bodyStart)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
