import { unlessAborted } from '../kernel/abort.ts'
import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { isMillraceError, MillraceError } from '../kernel/errors.ts'
import { type Observer, silentObserver } from '../kernel/observe.ts'
import type { KafkaClient } from './client.ts'
import { ClusterSession, ledOf, partitionsOf } from './cluster-session.ts'
import { kafkajsFailure } from './failure.ts'
import { type LogEvent, PartitionCursor } from './log-cursor.ts'
import { type FetchedLog, fetchLog } from './log-fetch.ts'
import type { KafkaMessage } from './message.ts'
import { EARLIEST, type Isolation, LATEST, listOffsets, offsetAt } from './offsets.ts'

/** Where reading a partition begins. `end` is the end at the start: only what comes later. */
export type LogStart = 'earliest' | 'end' | bigint

export interface ReadLogOptions {
  readonly client: KafkaClient
  readonly clock: Clock
  readonly observer?: Observer
  /** By topic: one start for all partitions, or one for each partition that is to be read. */
  readonly from: ReadonlyMap<string, LogStart | ReadonlyMap<number, LogStart>>
  /** First offset that is not read any more, by partition; the end seen at the start where not given, and never more than that. */
  readonly until?: ReadonlyMap<PartitionId, bigint>
  /** Goes on behind the end seen at the start; then only `until` ends a partition. */
  readonly follow?: boolean
  /** Partitions that are added to the topics while they are followed are read too, from their beginning; none where `until` is given. */
  readonly withAdded?: boolean
  /** `read_committed` where not given. */
  readonly isolation?: Isolation
  /** Of one fetch; this and a copy of one batch is what reading holds in memory. 4 MiB where not given. */
  readonly maxBytes?: number
  /** Ends a follower without an error; else its reason is thrown, since what was read so far is not what was asked for. */
  readonly signal?: AbortSignal | undefined
}

const DEFAULT_MAX_BYTES = 4_194_304
const MAX_BYTES_PER_PARTITION = 1_048_576
/** How long a fetch waits for new messages; an abort does not wait for it. */
const FOLLOW_WAIT_MS = 500
/** What is asked for is there already, but for a leader that has just changed. */
const BOUNDED_WAIT_MS = 100
const RETRY_MS = 1_000
/** How often it is looked whether partitions were added. */
const ADDED_LOOK_MS = 30_000
/** A topic that is gone for this long while it is followed will not come back. */
const MISSING_TRIES = 10

/**
 * Reads topics without a consumer group: by direct fetches, at the pace of whoever pulls. Nothing is committed and nobody's place
 * is taken; a reader that is broken off leaves nothing behind.
 *
 * Shape: for each partition batches in order, then one `end` event; ends when all partitions have reached their bound, never with
 * `follow` and no `until`. `position` of a batch is the next offset, behind markers and aborted messages too.
 * Errors: the signal's reason; KAFKA_TOPIC_MISSING, KAFKA_UNREACHABLE, KAFKA_DENIED, KAFKA_REQUEST_FAILED; once a follower has begun it
 * waits for the broker instead, and once it has read something for its permission too. A follower that has begun reads on where partitions
 * lose their leader, without these.
 */
export async function* readLog(options: ReadLogOptions): AsyncGenerator<LogEvent, void, undefined> {
  const { client, clock, signal } = options
  // Own connections: a fetch that waits for messages holds up every other request behind it.
  const session = new ClusterSession({ client, clock })
  try {
    const reading = new Reading(options, session)
    yield* reading.begin()
    while (!reading.finished && !signal?.aborted) yield* await reading.round()
  } catch (error) {
    if (!signal?.aborted) throw error
  } finally {
    const closing = session.close()
    // Closing waits for the fetch that is on the wire; whoever aborts does not.
    if (!signal?.aborted) await closing
  }
  if (options.follow !== true) signal?.throwIfAborted()
}

/** What every reader stands on. */
export type LogAccess = Required<Pick<ReadLogOptions, 'client' | 'clock' | 'observer'>>

/** What `readLog` gives, for whoever keeps no place: its messages alone, as they were fetched. */
export async function* readMessages(
  { client, clock, observer }: LogAccess,
  what: Omit<ReadLogOptions, keyof LogAccess>,
): AsyncGenerator<readonly KafkaMessage[], void, undefined> {
  for await (const event of readLog({ client, clock, observer, ...what })) if (event.kind === 'batch') yield event.messages
}

/**
 * The message at one offset; `read_uncommitted`: of a transaction that is open too. Shape: undefined where there is none to see: deleted,
 * not written yet, of an aborted transaction, or a marker. Errors: KAFKA_TOPIC_MISSING, KAFKA_UNREACHABLE, KAFKA_REQUEST_FAILED.
 */
export async function readOne(
  session: ClusterSession,
  at: TopicPartition,
  offset: bigint,
  isolation: Isolation = 'read_committed',
): Promise<KafkaMessage | undefined> {
  const { topic, partition } = at
  const limits = { isolation, maxWaitMs: 0, maxBytes: 1, maxBytesPerPartition: 1 } as const
  return session.run(`reading ${topic}/${partition} offset ${offset}`, async (cluster) => {
    try {
      // The broker gives the whole batch that holds the offset, however small the limit.
      const [fetched] = await fetchLog(cluster, [{ topic, partition, position: offset }], limits)
      return fetched?.messages().find((message) => message.offset === offset)
    } catch (error) {
      if (kafkajsFailure(error).type === 'OFFSET_OUT_OF_RANGE') return undefined
      throw error
    }
  })
}

/** The state of one call of `readLog`. */
class Reading {
  readonly #options: ReadLogOptions
  readonly #session: ClusterSession
  readonly #isolation: Isolation
  #cursors: PartitionCursor[] = []
  #missing = 0
  #lookedMono: number
  #hasRead = false

  constructor(options: ReadLogOptions, session: ClusterSession) {
    this.#options = options
    this.#session = session
    this.#isolation = options.isolation ?? 'read_committed'
    this.#lookedMono = options.clock.mono()
  }

  get finished(): boolean {
    return this.#cursors.every(({ finished }) => finished)
  }

  /** Reads where the logs begin and end, and places the cursors. */
  async *begin(): AsyncGenerator<LogEvent, void, undefined> {
    yield* this.#place((known) => this.#wanted(known))
  }

  async *#place(
    wantedOf: (known: ReadonlyMap<string, readonly number[]>) => readonly (TopicPartition & { readonly start: LogStart })[],
  ): AsyncGenerator<LogEvent, void, undefined> {
    const topics = [...this.#options.from.keys()]
    const bounds = await this.#session.run(`reading the bounds of ${topics.join(', ')}`, async (cluster) => {
      const found = wantedOf(await partitionsOf(cluster, topics))
      // One that was added waits for its leader; the others are read meanwhile.
      const wanted = this.#cursors.length === 0 ? found : await ledOf(cluster, found)
      if (wanted.length === 0) return []
      const [low, end, high] = await Promise.all([
        listOffsets(cluster, wanted, EARLIEST, 'read_uncommitted'),
        listOffsets(cluster, wanted, LATEST, this.#isolation),
        listOffsets(cluster, wanted, LATEST, 'read_uncommitted'),
      ])
      return wanted.map((entry) => ({ ...entry, low: offsetAt(low, entry), end: offsetAt(end, entry), high: offsetAt(high, entry) }))
    })
    for (const { topic, partition, start, low, end, high } of bounds) {
      const cursor = new PartitionCursor({
        topic,
        partition,
        position: start === 'earliest' ? low : start === 'end' ? end : start,
        end,
        until: this.#options.until?.get(partitionId(topic, partition)),
        follow: this.#options.follow === true,
      })
      this.#cursors.push(cursor)
      if (cursor.position < low) yield cursor.moveTo(low)
      else if (cursor.position > high) yield cursor.moveTo(high)
      yield* cursor.reached()
    }
  }

  /** Partitions that it does not read yet, from their beginning. */
  async *#placeAdded(): AsyncGenerator<LogEvent, void, undefined> {
    await this.#session.run('reading which partitions there are', (cluster) => cluster.refreshMetadata())
    const isRead = (topic: string, partition: number): boolean =>
      this.#cursors.some((cursor) => cursor.topic === topic && cursor.partition === partition)
    yield* this.#place((known) =>
      [...known].flatMap(([topic, partitions]) =>
        partitions.flatMap((partition) => (isRead(topic, partition) ? [] : [{ topic, partition, start: 'earliest' as const }])),
      ),
    )
  }

  /** One fetch over what is not finished. Shape: its events, in any order of partitions. */
  async round(): Promise<Iterable<LogEvent>> {
    const { signal, clock, observer = silentObserver, follow, withAdded, until } = this.#options
    try {
      const placed: LogEvent[] = []
      if (follow === true && withAdded === true && until === undefined && clock.mono() - this.#lookedMono >= ADDED_LOOK_MS) {
        this.#lookedMono = clock.mono()
        for await (const event of this.#placeAdded()) placed.push(event)
      }
      if (placed.length > 0) return placed
      const open = await this.#readable()
      // A partition that was left out of several answers is asked alone: then it comes first, and whole.
      const starved = open.find((cursor) => cursor.starved)
      const events = await this.#fetch(starved === undefined ? open : [starved])
      this.#missing = 0
      this.#hasRead = true
      return events
    } catch (error) {
      if (signal?.aborted || follow !== true || !isMillraceError(error)) throw error
      // Where the logs begin and end may be told to whoever may not read them.
      if (isMillraceError(error, 'KAFKA_DENIED') && !this.#hasRead) throw error
      if (isMillraceError(error, 'KAFKA_TOPIC_MISSING')) this.#missing += 1
      if (this.#missing >= MISSING_TRIES) throw error
      observer.emit('ReadRetried', { reason: error.code, text: error.message })
      await clock.sleep(RETRY_MS, signal)
      return []
    }
  }

  /** What is not finished; of a follower those that have a leader, and all where none has one. */
  async #readable(): Promise<readonly PartitionCursor[]> {
    const open = this.#cursors.filter(({ finished }) => !finished)
    if (this.#options.follow !== true) return open
    const led = await this.#session.run('reading which partitions have a leader', (cluster) => ledOf(cluster, open))
    return led.length === 0 ? open : led
  }

  async #fetch(cursors: readonly PartitionCursor[]): Promise<Iterable<LogEvent>> {
    const { maxBytes = DEFAULT_MAX_BYTES, follow, signal } = this.#options
    const limits = {
      isolation: this.#isolation,
      maxWaitMs: follow === true ? FOLLOW_WAIT_MS : BOUNDED_WAIT_MS,
      maxBytes,
      maxBytesPerPartition: Math.min(maxBytes, MAX_BYTES_PER_PARTITION),
    }
    const fetch = (): Promise<readonly FetchedLog[] | OutOfRange> =>
      this.#session.run(
        `reading ${[...new Set(cursors.map(({ topic }) => topic))].join(', ')}`,
        async (cluster) => {
          try {
            return await fetchLog(cluster, cursors, limits)
          } catch (error) {
            return outOfRange(error)
          }
        },
        { signal },
      )
    // A fetch may wait at the broker; whoever aborts does not.
    const fetched = signal === undefined ? await fetch() : await unlessAborted(signal, fetch)
    return 'outOfRange' in fetched ? this.#outOfRange(cursors, fetched.outOfRange) : this.#events(cursors, fetched)
  }

  /** Lazily, so that the copy of one partition is made when it is asked for. */
  *#events(cursors: readonly PartitionCursor[], fetched: readonly FetchedLog[]): Iterable<LogEvent> {
    for (const log of fetched) {
      const cursor = cursors.find(({ topic, partition }) => topic === log.topic && partition === log.partition)
      if (cursor === undefined) continue
      yield* cursor.take(log, cursors.length === 1)
    }
  }

  async #outOfRange(cursors: readonly PartitionCursor[], at: TopicPartition): Promise<Iterable<LogEvent>> {
    const cursor = cursors.find(({ topic, partition }) => topic === at.topic && partition === at.partition)
    if (cursor === undefined) throw new MillraceError('INTERNAL', 'an offset out of range in a partition that was not asked for')
    const low = await this.#session.run(`reading the first offset of ${at.topic}/${at.partition}`, async (cluster) =>
      offsetAt(await listOffsets(cluster, [cursor], EARLIEST, 'read_uncommitted'), at),
    )
    return [cursor.moveTo(low), ...cursor.reached()]
  }

  #wanted(known: ReadonlyMap<string, readonly number[]>): (TopicPartition & { start: LogStart })[] {
    return [...this.#options.from].flatMap(([topic, start]) => {
      const partitions = known.get(topic) ?? []
      if (typeof start !== 'object') return partitions.map((partition) => ({ topic, partition, start }))
      return [...start].map(([partition, at]) => {
        if (partitions.includes(partition)) return { topic, partition, start: at }
        const text = `topic ${topic} has no partition ${partition}: it has ${partitions.length}`
        throw new MillraceError('KAFKA_TOPIC_MISSING', text, { context: { topic, partition } })
      })
    })
  }
}

interface OutOfRange {
  readonly outOfRange: TopicPartition
}

/** The partition that the error names; anything else is thrown again. */
function outOfRange(error: unknown): OutOfRange {
  if (kafkajsFailure(error).type !== 'OFFSET_OUT_OF_RANGE') throw error
  const { topic, partition } = error as TopicPartition
  return { outOfRange: { topic, partition } }
}
