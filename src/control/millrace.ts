import { loadConfig } from '../config/load.ts'
import type { Config, OptionPath } from '../config/options.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { type Observer, silentObserver } from '../kernel/observe.ts'
import { crawlName } from '../message/crawl-name.ts'
import type { Lane } from '../message/generated/types.ts'
import { type ProduceReport, produce, type SeedText } from './crawls/produce.ts'
import { DRAIN_TIMEOUT_MS, MAX_WAIT_MS } from './defaults.ts'
import { findExtractor, loadConfigured } from './extractors/configured-extractors.ts'
import { requireGrouped } from './groups/extract-groups.ts'
import { packageVersion } from './package-version.ts'
import { type PromoteReport, promote } from './promote.ts'
import { RecordCallbacks } from './records/record-callbacks.ts'
import { type ConsumedRecord, type ConsumedTombstone, type ConsumeRecordsOptions, RecordConsumer } from './records/record-consumer.ts'
import { createReplayLibrary, type ReplayLibrary } from './replay-library.ts'
import { run } from './run/run.ts'
import type { RunReport } from './run/run-report.ts'
import { Runtime } from './runtime/runtime.ts'
import { requireOrMakeTopics } from './runtime/topics.ts'

/** Options of the configuration by their path, written as in the file: `{ 'fetch.concurrency': '50' }`. */
export type MillraceOptions = Readonly<Partial<Omit<Record<OptionPath, string | readonly string[]>, keyof StructuredOptions>>> &
  StructuredOptions

/** Those that hold more than texts. */
export interface StructuredOptions {
  readonly 'fetch.resolve'?: string | Readonly<Record<string, string>>
  /** Each with `match`, as in the file: `{ match: '*.example.com', ratePerSecond: 5, crawlDelay: '2s' }`. */
  readonly 'politeness.rules'?: readonly Readonly<Record<string, unknown>>[]
  readonly 'extract.groups'?: Readonly<Record<string, readonly string[]>>
}

/** A list, a stream; a single string is none, though it can be iterated too. */
export type Urls = object & (Iterable<string> | AsyncIterable<string>)

export interface ProduceOptions {
  readonly crawlId?: string
  readonly lane?: Lane
  readonly maxDepth?: number
  readonly meta?: Readonly<Record<string, string>>
  /** GET where not given, POST with a body. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Epoch ms; not fetched before. */
  readonly notBefore?: number
  /** Epoch ms; not fetched from then on. */
  readonly expiresAt?: number
  /** An unchanged page is an outcome, not a page. */
  readonly ifChanged?: boolean
}

/**
 * Millrace as a library: the functions that the command line calls. Nothing is started before it is needed; `stop` gives everything
 * back, our own Kafka included.
 */
export class Millrace {
  readonly #config: Config
  readonly #observer: Observer
  readonly #draining = new AbortController()
  readonly #aborting = new AbortController()
  #runtime: Promise<Runtime> | undefined
  /** What has to end before the ground is taken away. */
  readonly #works = new Set<Promise<unknown>>()
  readonly #callbacks = new RecordCallbacks(systemClock, this.#draining.signal)
  #stopping: Promise<void> | undefined
  readonly #version: string

  /** Errors: CONFIG_INVALID, CONFIG_UNKNOWN_KEY, CONFIG_UNREADABLE. */
  constructor(options: MillraceOptions = {}, parts: { observer?: Observer; configFile?: string; version?: string } = {}) {
    this.#config = loadConfig({ sets: [], flags: options, ...(parts.configFile === undefined ? {} : { file: parts.configFile }) }).config
    this.#observer = parts.observer ?? silentObserver
    this.#version = parts.version ?? packageVersion()
  }

  /** Writes tasks; bad URLs are reported, not thrown. `stop` ends the reading; what was read is still written. */
  async produce(urls: Urls, options: ProduceOptions = {}): Promise<ProduceReport> {
    const seeds = seedsOf(urls)
    return this.#working(async (runtime) => {
      const template = {
        crawlId: options.crawlId === undefined ? null : crawlName(options.crawlId, 'crawlId'),
        lane: options.lane ?? 'normal',
        maxDepth: options.maxDepth ?? this.#config['crawl.maxDepth'],
        method: options.method ?? (options.body === undefined ? 'GET' : 'POST'),
        headers: options.headers ?? {},
        body: options.body === undefined ? null : Buffer.from(options.body),
        meta: options.meta ?? {},
        notBefore: options.notBefore ?? null,
        expiresAt: options.expiresAt ?? null,
        ifChanged: options.ifChanged ?? false,
      }
      await requireOrMakeTopics(runtime)
      return produce(runtime, seeds, template, { signal: this.#draining.signal })
    })
  }

  /** All stages in this process until the crawl has ended. Without URLs what is queued is worked off. */
  async run(
    urls?: Urls,
    options: { crawlId?: string; maxWaitMs?: number; onRecord?: (record: unknown) => Promise<void> } = {},
  ): Promise<RunReport> {
    const { onRecord } = options
    const seeds = urls === undefined ? undefined : seedsOf(urls)
    return this.#working(async (runtime) => {
      const extractors = await loadConfigured(this.#config.extractors)
      requireGrouped(this.#config, extractors)
      return run(runtime, {
        seeds,
        extractors,
        ...(options.crawlId === undefined ? {} : { crawlId: crawlName(options.crawlId, 'crawlId') }),
        ...(onRecord === undefined ? {} : { openOutput: async () => this.#callbacks.bounded(onRecord) }),
        maxWaitMs: options.maxWaitMs ?? MAX_WAIT_MS,
        keepRunning: false,
        drainTimeoutMs: DRAIN_TIMEOUT_MS,
        version: this.#version,
        draining: this.#draining.signal,
        aborting: this.#aborting.signal,
      })
    })
  }

  /**
   * Records as they are committed, in a consumer group; each is given again after a restart until it is committed. `stop` ends it, in the
   * loop over it too, and takes the commit of the record that was given last for five seconds. With `tombstones` those are given as well,
   * as `record: null` with the key that a sink is to delete. Errors: MESSAGE_SCHEMA_UNKNOWN for a record whose schema is not known here,
   * which a schema registry has 30 s for.
   */
  consumeRecords(options: ConsumeRecordsOptions & { tombstones?: false; signal?: AbortSignal }): AsyncGenerator<ConsumedRecord>
  consumeRecords(options: ConsumeRecordsOptions & { signal?: AbortSignal }): AsyncGenerator<ConsumedRecord | ConsumedTombstone>
  async *consumeRecords(options: ConsumeRecordsOptions & { signal?: AbortSignal }): AsyncGenerator<ConsumedRecord | ConsumedTombstone> {
    const signal = AbortSignal.any([this.#draining.signal, ...(options.signal === undefined ? [] : [options.signal])])
    let consumer: RecordConsumer
    try {
      consumer = await this.#working(async (runtime) => {
        const started = await RecordConsumer.start(runtime, { ...options, signal })
        // Whether or not its reader comes back for more.
        void this.#tracked(started.closed)
        return started
      })
    } catch (error) {
      // Stopped before it had joined.
      if (signal.aborted) return
      throw error
    }
    yield* consumer.records()
  }

  readonly replay: ReplayLibrary = createReplayLibrary({
    open: () => this.#open(),
    find: (given) => findExtractor({ patterns: this.#config.extractors, given, option: 'extractor' }),
    track: (work) => this.#tracked(work),
    draining: this.#draining.signal,
    aborting: this.#aborting.signal,
    drainTimeoutMs: DRAIN_TIMEOUT_MS,
  })

  /**
   * Makes a version the one whose records are written, and back with the version before. Errors: USAGE for a version without a file,
   * EXTRACTOR_INCOMPATIBLE, EXTRACTOR_HELD by the gate (passed over where `force` says why).
   */
  promote(name: string, version: number, options: { force?: string } = {}): Promise<PromoteReport> {
    return this.#working(async (runtime) => {
      const loaded = await loadConfigured(this.#config.extractors)
      return promote(runtime, { loaded, name, version, force: options.force, signal: this.#draining.signal })
    })
  }

  /**
   * Finishes what is in flight and gives everything back. Within `onRecord` it returns at once, since the run waits for the record in hand:
   * the run ends when that is done.
   */
  async stop(): Promise<void> {
    this.#stopping ??= this.#stopAll()
    if (!this.#callbacks.areAsking) return this.#stopping
    this.#stopping.catch(() => undefined)
  }

  async #stopAll(): Promise<void> {
    this.#draining.abort(new MillraceError('ABORTED', 'Millrace was stopped'))
    // What ends may have begun something: a consumer that was still joining.
    while (this.#works.size > 0) await Promise.allSettled([...this.#works])
    // One that could not be opened, or was stopped while it was, is told to whoever asked for it.
    const runtime = await this.#runtime?.catch(() => undefined)
    this.#runtime = undefined
    await runtime?.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #open(): Promise<Runtime> {
    this.#runtime ??= Runtime.open({
      config: this.#config,
      owner: 'the library',
      clock: systemClock,
      observer: this.#observer,
      signal: this.#draining.signal,
    })
    this.#runtime.catch(() => {
      this.#runtime = undefined
    })
    return this.#runtime
  }

  /** From its first step on: what is still being opened for it must not be closed under it either. */
  #working<T>(work: (runtime: Runtime) => Promise<T>): Promise<T> {
    return this.#tracked(this.#open().then(work))
  }

  #tracked<T>(work: Promise<T>): Promise<T> {
    this.#works.add(work)
    const done = (): boolean => this.#works.delete(work)
    work.then(done, done)
    return work
  }
}

/** Errors: USAGE for a string, whose letters would be taken for URLs; a caller without types may give one. */
function seedsOf(urls: Urls): AsyncIterable<SeedText> {
  if (typeof urls === 'string') throw new MillraceError('USAGE', `URLs are given as a list: [${JSON.stringify(urls)}]`)
  return (async function* () {
    for await (const text of urls) yield { text, line: undefined }
  })()
}
