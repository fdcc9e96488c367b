import { readLog } from '../../kafka/log-reader.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import { unlessAborted } from '../../kernel/abort.ts'
import { type PartitionId, partitionId } from '../../kernel/brand.ts'
import { isStopOf } from '../../kernel/errors.ts'
import { RecentSet } from '../../kernel/recent-set.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { RecordReader } from './record-reader.ts'

/** A record as `--out` writes it. */
export type WriteRecord = (record: unknown) => Promise<void>

/**
 * Among so many records of a run a second one of the same `recordId` is a repeat: a page that a killed worker had written, and not its
 * end, is on html twice and is worked twice. The two lie no further apart than a worker's windows are wide. About 20 MB at most.
 */
export const REPEATS_AMONG = 100_000

/**
 * The records of one crawl as they are committed, without repeats, from where their topics end when it is opened, or from their beginning
 * where a crawl goes on. `follow` begins to hand them over; `finish` reads to what is then the end; the count is of what was handed over.
 */
export class RecordOutput {
  readonly #runtime: Runtime
  readonly #crawlId: string | undefined
  #write: WriteRecord | undefined
  readonly #positions = new Map<string, Map<number, bigint>>()
  readonly #stopping = new AbortController()
  readonly #reader: RecordReader
  readonly #recent = new RecentSet(REPEATS_AMONG)
  #following: Promise<void> = Promise.resolve()
  #count = 0

  private constructor(runtime: Runtime, crawlId: string | undefined) {
    this.#runtime = runtime
    this.#reader = new RecordReader(runtime)
    this.#crawlId = crawlId
  }

  static async open(
    runtime: Runtime,
    topics: readonly string[],
    crawlId: string | undefined,
    from: 'earliest' | 'latest' = 'latest',
  ): Promise<RecordOutput> {
    const output = new RecordOutput(runtime, crawlId)
    const { admin } = runtime
    for (const topic of topics) {
      const offsets = from === 'earliest' ? await admin.earliestOffsets(topic) : await admin.endOffsets(topic, 'read_committed')
      output.#positions.set(topic, offsets)
    }
    return output
  }

  follow(write: WriteRecord | undefined): void {
    this.#write = write
    this.#following = this.#read({ follow: true, signal: this.#stopping.signal })
    this.#following.catch(() => undefined)
  }

  get count(): number {
    return this.#count
  }

  /** Messages that were passed over, since they could not be read as records. */
  get undecodableCount(): number {
    return this.#reader.undecodableCount
  }

  /** Rejects when the reading, or writing what was read, has failed. */
  get failed(): Promise<never> {
    return this.#following.then(() => new Promise<never>(() => undefined))
  }

  /** To the end. Errors: the signal's reason; `count` tells how far it has come. */
  async finish(signal: AbortSignal): Promise<number> {
    this.#stopping.abort()
    await this.#following
    await this.#read({ follow: false, signal })
    signal.throwIfAborted()
    return this.#count
  }

  /** Waits for the record in hand, until the signal aborts: whoever takes it may never do so. Errors: of the reading and writing. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping.abort()
    await unlessAborted(signal, () => this.#following).catch((error: unknown) => {
      if (!isStopOf(signal, error)) throw error
    })
  }

  async #read(how: { follow: boolean; signal?: AbortSignal }): Promise<void> {
    const { client, clock, observer } = this.#runtime
    const until = how.follow ? undefined : await this.#ends()
    const from = new Map([...this.#positions].map(([topic, offsets]) => [topic, new Map(offsets)] as const))
    const log = readLog({ client, clock, observer, from, withAdded: true, ...(until === undefined ? {} : { until }), ...how })
    for await (const event of log) {
      if (event.kind !== 'batch') continue
      // Not read: `finish` begins here again.
      if (!(await this.#reader.learn(event.messages, how.signal))) return
      for (const message of event.messages) {
        await this.#take(message)
        this.#positions.get(event.topic)?.set(event.partition, message.offset + 1n)
      }
      this.#positions.get(event.topic)?.set(event.partition, event.position)
    }
  }

  async #take(message: KafkaMessage): Promise<void> {
    const record = this.#reader.read(message)
    if (record === undefined) return
    const { value } = record
    const { crawlId, recordId } = value as { crawlId?: unknown; recordId?: unknown }
    if (this.#crawlId !== undefined && crawlId !== this.#crawlId) return
    if (typeof recordId === 'string' && !this.#recent.add(recordId)) return
    this.#count += 1
    await this.#write?.(value)
  }

  /** Of all partitions that there are now: one that was added since has a place from then on, at its beginning. */
  async #ends(): Promise<Map<PartitionId, bigint>> {
    const ends = new Map<PartitionId, bigint>()
    for (const [topic, positions] of this.#positions) {
      for (const [partition, offset] of await this.#runtime.admin.endOffsets(topic, 'read_committed')) {
        ends.set(partitionId(topic, partition), offset)
        if (!positions.has(partition)) positions.set(partition, 0n)
      }
    }
    return ends
  }
}
