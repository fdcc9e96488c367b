import type { KafkaMessage } from '../../kafka/message.ts'
import type { WindowEntry } from '../../kafka/window-entry.ts'
import { WindowedConsumer } from '../../kafka/windowed-consumer.ts'
import type { MessagePlace } from '../../kernel/brand.ts'
import { within } from '../../kernel/clock.ts'
import { Fifo } from '../../kernel/fifo.ts'
import type { RecordEnvelope } from '../../message/generated/types.ts'
import { plainValue } from '../../message/plain-value.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { RecordReader } from './record-reader.ts'

export interface ConsumedRecord extends MessagePlace {
  readonly record: RecordEnvelope & { readonly data: unknown }
  /** EXTRACTOR/ENTITY-KEY: what a sink has its rows under. */
  readonly key: string
  /** The message is dealt with: it is not given again. */
  readonly commit: () => void
}

/** What stands under its key was deleted, as by a replay with `--tombstones`. A record that comes later under that key counts again. */
export interface ConsumedTombstone extends Omit<ConsumedRecord, 'record'> {
  readonly record: null
}

export interface ConsumeRecordsOptions {
  readonly groupId: string
  /** The common topic of records where not given. */
  readonly topic?: string
  /** Tombstones are given as well, in their place among the records; without it they are passed over. */
  readonly tombstones?: boolean
}

export interface RecordConsumerOptions extends ConsumeRecordsOptions {
  readonly signal: AbortSignal
}

/** Records of a partition that may be uncommitted; beyond, reading waits for commits. */
const MOST_UNCOMMITTED = 100_000
/** How long the end waits for the record that was given last; what is not committed by then comes again. */
const LAST_RECORD_MS = 5_000

/**
 * Records in a consumer group, committed messages only. A record whose schema is not known here ends the reading with
 * MESSAGE_SCHEMA_UNKNOWN and stays uncommitted: with a registry configured, or its schema announced, it is read; a registry that has it
 * only a moment later is waited for, 30 s at most. It ends when the signal aborts, with what was committed stored, whatever its reader
 * does: one that asks for no more records, or waits for the end itself, holds nothing up.
 */
export class RecordConsumer {
  readonly #runtime: Runtime
  readonly #withTombstones: boolean
  readonly #signal: AbortSignal
  readonly #consumer: WindowedConsumer
  readonly #reader: RecordReader
  readonly #waiting = new Fifo<WindowEntry>()
  #wake = (): void => undefined
  /** Resolves when the reader is done with the record that it was given last. */
  #inHand: Promise<void> = Promise.resolve()
  #failure: unknown
  #ending: Promise<void> | undefined

  private constructor(runtime: Runtime, { groupId, topic, tombstones = false, signal }: RecordConsumerOptions) {
    const { client, clock, observer, topics } = runtime
    this.#runtime = runtime
    this.#withTombstones = tombstones
    this.#signal = signal
    this.#reader = new RecordReader(runtime)
    this.#consumer = new WindowedConsumer({
      client,
      groupId,
      topics: [topic ?? topics.records],
      // A sink may gather a large batch before it commits: bytes bound what it holds.
      limits: { maxIncomplete: MOST_UNCOMMITTED },
      onEntries: (entries) => {
        for (const entry of entries) this.#waiting.push(entry)
        this.#wake()
      },
      clock,
      observer,
    })
  }

  static async start(runtime: Runtime, options: RecordConsumerOptions): Promise<RecordConsumer> {
    await runtime.control()
    const { signal } = options
    const records = new RecordConsumer(runtime, options)
    records.closed.catch((error: unknown) => {
      records.#failure = error
      records.#wake()
    })
    await records.#consumer.start({ signal })
    // A failure is its reader's, where there is one; without it `closed` tells.
    const onAbort = (): void => void records.#end().catch(() => undefined)
    signal.addEventListener('abort', onAbort, { once: true })
    const release = (): void => signal.removeEventListener('abort', onAbort)
    records.closed.then(release, release)
    if (signal.aborted) onAbort()
    return records
  }

  /** Settles when the consumer has left its group; rejects when it could not go on. */
  get closed(): Promise<void> {
    return this.#consumer.closed
  }

  async *records(): AsyncGenerator<ConsumedRecord | ConsumedTombstone> {
    try {
      while (!this.#signal.aborted) {
        if (this.#failure !== undefined) throw this.#failure
        const entry = this.#waiting.shift()
        if (entry === undefined) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
          continue
        }
        const { message } = entry
        if (!entry.isCurrent()) continue
        if (!(await this.#reader.learn([message], this.#signal))) break
        const record = this.#recordOf(message)
        if (record === undefined) {
          entry.complete()
          continue
        }
        let done = (): void => undefined
        this.#inHand = new Promise((resolve) => {
          done = resolve
        })
        const commit = (): void => {
          entry.complete()
          done()
        }
        try {
          const { topic, partition, offset } = message
          yield { key: keyOf(message), record, topic, partition, offset, commit }
        } finally {
          done()
        }
      }
    } finally {
      await this.#end()
    }
  }

  /** Shape: null for a tombstone that is asked for; undefined for what is passed over. */
  #recordOf(message: KafkaMessage): ConsumedRecord['record'] | null | undefined {
    if (message.value === null) return this.#withTombstones && message.key !== null ? null : undefined
    const found = this.#reader.read(message, { mustKnow: true })
    return found === undefined ? undefined : (plainValue(found.value) as ConsumedRecord['record'])
  }

  #end(): Promise<void> {
    this.#ending ??= this.#commitAndLeave()
    return this.#ending
  }

  async #commitAndLeave(): Promise<void> {
    this.#wake()
    await within(this.#runtime.clock, LAST_RECORD_MS, this.#inHand)
    try {
      await this.#consumer.commitNow()
    } finally {
      await this.#consumer.stop({ mode: 'abort', timeoutMs: 0 })
    }
  }
}

function keyOf({ key }: KafkaMessage): string {
  return key?.toString('utf8') ?? ''
}
