import type { BlobReader } from '../blobs/blob-store.ts'
import { loadBody } from '../blobs/load-body.ts'
import { unlessAborted } from '../kernel/abort.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ErrorCode } from '../kernel/errors.ts'
import { MillraceError } from '../kernel/errors.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import type { MessageCodec } from '../message/codec.ts'
import { singleObjectFrame } from '../message/framing.ts'
import type { Page } from '../message/generated/types.ts'
import { ExtractionProcess, type ProcessEnd } from './extraction-process.ts'
import type { LoadedExtractor } from './load-extractors.ts'
import { nativeParser } from './native/native-parser.ts'
import type { ExtractedRecord, ExtractionJob, ExtractionResult, ExtractorSummary, PageExtraction } from './page-extraction.ts'
import type { RunResult } from './page-runner.ts'
import type { JsonLdFaults } from './sources/jsonld.ts'
import { YieldCounts } from './yield-counts.ts'

export interface ExtractorHostOptions {
  /** Those of one group. */
  readonly extractors: readonly LoadedExtractor[]
  /** Processes that extract at the same time. */
  readonly threads: number
  /** Limit of one extractor on one page. */
  readonly pageTimeoutMs: number
  readonly pageMemoryBytes: number
  /** Left out: `auto`. */
  readonly parser?: ParserChoice
  /** What stands before the bytes of a record: see `recordFraming`. Asked once per extractor, at its first record. */
  readonly framing?: (extractor: ExtractorSummary) => Buffer
  /** Where bodies lie that were too large for their message; left out: such pages fail. */
  readonly blobs?: BlobReader
  /** Domains with a label of their own on metrics. */
  readonly domains?: number
  /** What extractors print; left out: nothing is shown. */
  readonly onOutput?: (text: string) => void
  readonly clock: Clock
  readonly observer: Observer
}

/** auto: the native parser where it is installed and reads a page alike; native: the same, and it must be there. */
export type ParserChoice = 'auto' | 'parse5' | 'native'

interface Waiting {
  readonly job: ExtractionJob
  /** Its body was loaded, and is held. */
  readonly isLoaded?: boolean
  readonly resolve: (results: readonly ExtractionResult[]) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Extraction in processes of its own, a page at a time in each. Limits and failures are per page and extractor: what had finished is
 * kept, the extractor that was at fault fails, the rest runs in the process that takes the place of the one that was ended.
 *
 * Which extractor is at fault is never guessed: where several were not done, each of them runs again alone. Nor which page: one at which a
 * process ends that has worked others before is tried once more in a process of its own, since extractors may keep what earlier pages
 * gave. But for one that took too long: that would take as long again.
 */
export class ExtractorHost extends BaseService implements PageExtraction {
  readonly extractors: ReadonlyMap<string, LoadedExtractor>
  readonly #options: ExtractorHostOptions
  readonly #queue: Waiting[] = []
  /** Bodies to be loaded: a blob store that is slow holds up the pages that need it, and no slot. */
  readonly #toLoad: Waiting[] = []
  /** Bodies that are being loaded, or wait for their slot. */
  #held = 0
  readonly #framing = new Map<string, Buffer>()
  readonly #yield: YieldCounts
  #processes: (ExtractionProcess | undefined)[] = []
  readonly #idle: number[] = []
  #working = 0
  /** The native parser is there and may be used. */
  #native = false
  #onQuiet: () => void = () => undefined

  constructor(options: ExtractorHostOptions) {
    super()
    this.#options = options
    this.#yield = new YieldCounts(options.observer, options.domains)
    this.extractors = new Map(options.extractors.map((extractor) => [extractor.name, extractor]))
  }

  matching(page: Page): readonly string[] {
    return this.#options.extractors.filter(({ matches }) => matches(page)).map(({ name }) => name)
  }

  extract(job: ExtractionJob): Promise<readonly ExtractionResult[]> {
    if (this.aborted.signal.aborted) return Promise.reject(this.aborted.signal.reason)
    if (this.state !== 'running' && this.state !== 'draining') {
      return Promise.reject(new MillraceError('INTERNAL', `pages can't be extracted while the host is ${this.state}`))
    }
    return new Promise((resolve, reject) => {
      const waiting = job.page.bodyRef === null ? this.#queue : this.#toLoad
      waiting.push({ job, resolve, reject })
      this.#next()
    })
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    const { threads, parser } = this.#options
    const native = nativeParser()
    if (parser === 'native' && !native.ok) {
      throw new MillraceError('CONFIG_INVALID', `extract.parser is native, and the native parser can't be used: ${native.reason}`)
    }
    this.#native = parser !== 'parse5' && native.ok
    this.releases.add('extraction processes', () => this.#end())
    // All of them, so that none is left behind where another fails.
    const started = await Promise.allSettled(Array.from({ length: threads }, () => this.#start(signal)))
    this.#processes = started.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
    for (const start of started) if (start.status === 'rejected') throw start.reason
    signal.throwIfAborted()
    this.#idle.push(...this.#processes.keys())
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    const quiet = new Promise<void>((resolve) => {
      this.#onQuiet = () => {
        if (this.#isQuiet) resolve()
      }
      this.#onQuiet()
    })
    await unlessAborted(signal, () => quiet)
  }

  async #start(signal: AbortSignal): Promise<ExtractionProcess> {
    const { extractors, pageTimeoutMs, pageMemoryBytes, clock, onOutput = () => undefined } = this.#options
    const sources = extractors.map(({ source }) => source)
    const native = this.#native
    return await ExtractionProcess.start(sources, { pageTimeoutMs, pageMemoryBytes, clock, onOutput, native, signal })
  }

  #end(): void {
    for (const process of this.#processes) process?.kill()
    const reason = this.aborted.signal.reason ?? new MillraceError('ABORTED', 'extraction has ended')
    for (const { reject } of [...this.#queue.splice(0), ...this.#toLoad.splice(0)]) reject(reason)
  }

  get #isQuiet(): boolean {
    return this.#working === 0 && this.#held === 0 && this.#queue.length === 0 && this.#toLoad.length === 0
  }

  #next(): void {
    this.#loadNext()
    while (this.#idle.length > 0) {
      const waiting = this.#queue.shift()
      const slot = waiting === undefined ? undefined : this.#idle.pop()
      if (waiting === undefined || slot === undefined) return
      if (waiting.isLoaded === true) this.#held -= 1
      this.#working += 1
      this.#work(slot, waiting.job)
        .then(waiting.resolve, waiting.reject)
        .finally(() => {
          this.#working -= 1
          this.#idle.push(slot)
          if (this.#isQuiet) this.#yield.tell()
          this.#next()
          this.#onQuiet()
        })
    }
  }

  /** As many as there are slots, so that bodies in memory stay bounded. */
  #loadNext(): void {
    while (this.#held < this.#options.threads) {
      const waiting = this.#toLoad.shift()
      if (waiting === undefined) return
      this.#held += 1
      this.#load(waiting)
        .catch((error: unknown) => {
          this.#held -= 1
          waiting.reject(error)
        })
        .finally(() => {
          this.#next()
          this.#onQuiet()
        })
    }
  }

  async #load(waiting: Waiting): Promise<void> {
    const { job } = waiting
    const loaded = await loadBody(job.page, this.#options.blobs)
    this.aborted.signal.throwIfAborted()
    if (loaded.ok) {
      this.#queue.push({ ...waiting, job: { ...job, page: loaded.page }, isLoaded: true })
      return
    }
    const { code, detail: message } = loaded
    this.#held -= 1
    waiting.resolve(job.extractors.map((extractor) => ({ kind: 'failure', extractor, code, message })))
  }

  async #work(slot: number, job: ExtractionJob): Promise<readonly ExtractionResult[]> {
    const results = new Map<string, RunResult>()
    const repeated = new Set<string>()
    const withoutNative = new Set<string>()
    const groups: (readonly string[])[] = [job.extractors]
    for (let names = groups.shift(); names !== undefined; names = groups.shift()) {
      const process = await this.#processOf(slot)
      const hadWorked = process.hasWorked
      const careful = names.every((name) => withoutNative.has(name))
      const end = await process.run(
        { ...job, extractors: names, withoutNative: careful },
        (result) => results.set(result.extractor, result),
        (faults) => this.#noteJsonLd(faults, job.page),
      )
      this.aborted.signal.throwIfAborted()
      const left = names.filter((name) => !results.has(name))
      if (end !== undefined) this.#replaced(end, job, left)
      const [only] = left
      if (only === undefined) continue
      if (left.length > 1 && end !== undefined) groups.unshift(...left.map((name) => [name]))
      else if ((end?.reason === 'crash' || end?.reason === 'memory') && this.#mayBeNative(process, only) && !withoutNative.has(only)) {
        // The default parser has the last word on every page that ended a process.
        withoutNative.add(only)
        groups.unshift([only])
      } else if (mayBeOfOthers(end, hadWorked) && !repeated.has(only)) {
        repeated.add(only)
        groups.unshift([only])
      } else for (const name of left) results.set(name, this.#failure(name, end))
    }
    return job.extractors.map((name) => this.#framed(results.get(name) ?? this.#failure(name, undefined), job.page))
  }

  /** The process of a slot, a new one where it has ended. */
  async #processOf(slot: number): Promise<ExtractionProcess> {
    const process = this.#processes[slot]
    if (process !== undefined && !process.isEnded) return process
    this.aborted.signal.throwIfAborted()
    try {
      const started = await this.#start(this.aborted.signal)
      this.#processes[slot] = started
      if (this.aborted.signal.aborted) started.kill()
      this.aborted.signal.throwIfAborted()
      return started
    } catch (error) {
      this.fail(error)
      throw error
    }
  }

  #noteJsonLd(faults: JsonLdFaults, { finalUrl: url }: Page): void {
    for (const [kind, count] of Object.entries(faults)) if (count > 0) this.#options.observer.emit('JsonLdNoted', { kind, count, url })
  }

  #replaced(end: ProcessEnd, { source, page }: ExtractionJob, left: readonly string[]): void {
    const { topic, partition, offset } = source
    const detail = 'detail' in end ? end.detail : undefined
    this.#options.observer.emit('ExtractionProcessReplaced', {
      reason: end.reason,
      detail,
      extractors: left.join(','),
      url: page.finalUrl,
      topic,
      partition,
      offset,
    })
  }

  /** Whether the native parser may have read the page for an extractor. */
  #mayBeNative({ isNative }: ExtractionProcess, name: string): boolean {
    return isNative && this.extractors.get(name)?.notNative === undefined
  }

  #framed(result: RunResult, page: Page): ExtractionResult {
    this.#yield.add(this.extractors.get(result.extractor)?.version ?? 0, page, result)
    if (result.kind === 'failure') return result
    const { extractor } = result
    if (result.records.length === 0) return { kind: 'records', extractor, records: [] }
    const framing = this.#framingOf(extractor)
    const records = result.records.map(({ key, value }): ExtractedRecord => ({ key, value: Buffer.concat([framing, value]) }))
    return { kind: 'records', extractor, records }
  }

  #framingOf(name: string): Buffer {
    const known = this.#framing.get(name)
    if (known !== undefined) return known
    const extractor = this.extractors.get(name)
    if (extractor === undefined) throw new MillraceError('INTERNAL', `there is no extractor ${name}`)
    const framing = (this.#options.framing ?? singleObjectFraming)(extractor)
    this.#framing.set(name, framing)
    return framing
  }

  #failure(extractor: string, end: ProcessEnd | undefined): RunResult {
    const { code, message } = failureOf(end, this.#options)
    return { kind: 'failure', extractor, code, message }
  }
}

/** Whether something else than this page may have ended the process. */
function mayBeOfOthers(end: ProcessEnd | undefined, hadWorked: boolean): boolean {
  return end?.reason === 'outside' || (hadWorked && (end?.reason === 'crash' || end?.reason === 'memory'))
}

function failureOf(end: ProcessEnd | undefined, options: ExtractorHostOptions): { readonly code: ErrorCode; readonly message: string } {
  switch (end?.reason) {
    case 'timeout':
      return { code: 'EXTRACT_TIMEOUT', message: `the extractor was not done with the page after ${options.pageTimeoutMs} ms` }
    case 'memory':
      return { code: 'EXTRACT_MEMORY', message: `the extractor used more than ${options.pageMemoryBytes} bytes on the page` }
    case 'crash':
      return { code: 'EXTRACT_CRASHED', message: `the process of the extractor is no more: ${end.detail}` }
    case 'outside':
      return { code: 'EXTRACT_CRASHED', message: `the process of the extractor was ended twice on this page: ${end.detail}` }
    default:
      return { code: 'EXTRACT_FAILED', message: 'the extractor gave no answer for the page' }
  }
}

function singleObjectFraming({ schema }: ExtractorSummary): Buffer {
  return singleObjectFrame(schema.fingerprint, Buffer.alloc(0))
}

/** What a codec writes before the bytes of a record: the framing without a body. Errors: INTERNAL where the topic was not prepared. */
export function recordFraming(codec: MessageCodec, schema: ExtractorSummary['schema'], topic: string): Buffer {
  return codec.encodeRecord({ ...schema, encode: () => Buffer.alloc(0) }, undefined, topic)
}
