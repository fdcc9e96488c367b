import type { Offsets, Producer, Transaction } from 'kafkajs'
import { backoffMs } from '../kernel/backoff.ts'
import { type MessagePlace, type PartitionId, partitionId } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { durationText } from '../kernel/duration-text.ts'
import { isMillraceError, MillraceError } from '../kernel/errors.ts'
import { grouped } from '../kernel/grouped.ts'
import type { Observer } from '../kernel/observe.ts'
import { type KafkaClient, METADATA_MAX_AGE_MS } from './client.ts'
import { ClusterSession } from './cluster-session.ts'
import { type CommitTrail, MOST_KEPT } from './commit-trail.ts'
import { type CommittedOffset, committedAt } from './committed-offsets.ts'
import { endAgain, type LostEnd } from './end-again.ts'
import { denied, kafkajsFailure, sendFailure } from './failure.ts'
import { TRANSACTION_TIMEOUT_MS } from './fence-transaction.ts'
import type { OutgoingMessage } from './message.ts'
import { checkMessage, piecesOf, toKafkajs, unansweredPartitions } from './outgoing.ts'
import { explicitPartition } from './producer-connection.ts'
import { reach } from './reach.ts'
import { type Restored, restored } from './restored-commit.ts'
import { closeWithin } from './shared-connection.ts'
import { readStableOffsets } from './stable-offsets.ts'
import { DEFAULT_MAX_BATCH_BYTES } from './topic-definitions.ts'
import { TopicLimits } from './topic-limits.ts'

/**
 * Output and consumed offset of one input partition in one transaction. `transactional.id` = group/topic/partition, so the next
 * owner of the partition fences this one.
 */
export interface PartitionTransactions {
  /**
   * Opens and aborts an empty transaction, which is what fences; then reads the committed offset, which is right only after it. Errors:
   * ABORTED where the signal comes before that is sent: whoever has the partition next should not be fenced by a former owner;
   * KAFKA_TRANSACTION_FAILED too while the end of a transaction before it is not known, `pendingLimitMs` at most.
   */
  fence(signal?: AbortSignal): Promise<CommittedOffset>
  /**
   * Writes the messages, then the offset with its metadata, then commits. Any rejection, KAFKA_FENCED apart, is ambiguous (it may
   * have committed): the caller drops what it holds and goes on from `fence()`. What the broker has called too large is then in
   * `topicLimits`, for whoever makes the messages. Errors: KAFKA_MESSAGE_TOO_LARGE for what is known not to fit, before anything is sent.
   */
  commit(messages: readonly OutgoingMessage[], offset: bigint, metadata: string): Promise<void>
  close(): Promise<void>
}

export interface PartitionTransactionsOptions {
  readonly client: KafkaClient
  readonly groupId: string
  /** The input. */
  readonly topic: string
  readonly partition: number
  /** How long the broker lets a transaction be open before it aborts it; readers of the output wait that long. 60 s where not given. */
  readonly transactionTimeoutMs?: number
  /** How long a newer offset may be pending until the one before it is taken; 75 s where not given. */
  readonly pendingLimitMs?: number
  readonly clock: Clock
  readonly observer: Observer
  /** Largest batch per topic; see `batchLimits`. */
  readonly maxBatchBytes?: (topic: string) => number
  /** The same, with what brokers have refused; shared by those of one process. An own one by `maxBatchBytes` where not given. */
  readonly topicLimits?: TopicLimits
  /** Where whoever has the partition next in this process finds what became of it; nothing is kept where not given. */
  readonly trail?: CommitTrail
  /** For reading committed offsets; an own one where not given. `KafkaAdmin` has one to share. */
  readonly session?: ClusterSession
  readonly random?: () => number
}

/** The id under which the transactions of an input partition run, whoever owns it. */
export function transactionalId(groupId: string, topic: string, partition: number): string {
  return `${groupId}/${topic}/${partition}`
}

export function createPartitionTransactions(options: PartitionTransactionsOptions): PartitionTransactions {
  return new KafkaPartitionTransactions(options)
}

const FENCED = new Set(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'])
/** The transaction before this one is still being written out; kafkajs repeats that for messages, not for offsets. */
const CONCURRENT_WAIT_MS = 20
const CONCURRENT_LIMIT_MS = 5_000
/** A broker takes this long at most to abort what the former owner left open. */
const FENCE_LIMIT_MS = 15_000
/** Of one look at an offset that is about to change, and at the ends of transactions. */
const LOOK_LIMIT_MS = 5_000
/**
 * After this an offset that is pending stays pending: longer than a transaction may be open, and than the broker takes to see that
 * (10 s by default).
 */
export const PENDING_LIMIT_MS = TRANSACTION_TIMEOUT_MS + 15_000
const FENCE_BACKOFF = { firstMs: 50, maxMs: 1_000 } as const
/** Per piece of one transaction; more block the event loop. */
const PIECE_MESSAGES = 500

/**
 * One producer per input partition. Guarantees: one transaction at a time, one request per output partition at a time (with two,
 * kafkajs loses messages); whatever fails, the producer is given up, since kafkajs can't use it again.
 */
class KafkaPartitionTransactions implements PartitionTransactions {
  readonly #options: PartitionTransactionsOptions
  readonly #session: ClusterSession
  readonly #topicLimits: TopicLimits
  #producer: Producer | undefined
  /** As the fence has read it from the broker, or the last commit has written it. */
  #committed: CommittedOffset = { offset: undefined, metadata: '' }
  /** Since when each fence has found that a transaction before it had not ended; undefined: the last one did not. */
  #pendingSinceMono: number | undefined
  #busy = false
  #closed = false

  constructor(options: PartitionTransactionsOptions) {
    this.#options = options
    const { maxBatchBytes = () => DEFAULT_MAX_BATCH_BYTES, clock } = options
    this.#topicLimits = options.topicLimits ?? new TopicLimits(maxBatchBytes, clock)
    this.#session = options.session ?? new ClusterSession({ client: options.client, clock: options.clock })
  }

  async fence(signal?: AbortSignal): Promise<CommittedOffset> {
    return this.#exclusive('fence', async () => {
      this.#discard()
      const { clock } = this.#options
      const deadline = clock.mono() + FENCE_LIMIT_MS
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#fenceOnce(signal)
        } catch (error) {
          this.#discard()
          const waitMs = backoffMs(FENCE_BACKOFF, attempt, (this.#options.random ?? Math.random)())
          // Fencing is safe to repeat: whatever went wrong, a newer epoch is only newer.
          const failure = this.#failure('taking the partition over', error)
          // A broker that was away has not had that time to end it.
          if (error !== failure || failure.code !== 'KAFKA_TRANSACTION_FAILED') this.#pendingSinceMono = undefined
          const hopeless = isMillraceError(error) || failure.code === 'KAFKA_DENIED' || this.#closed || clock.mono() + waitMs > deadline
          if (hopeless) throw failure
          await clock.sleep(waitMs, signal)
        }
      }
    })
  }

  async commit(messages: readonly OutgoingMessage[], offset: bigint, metadata: string): Promise<void> {
    const pieces = this.#pieces(messages)
    await this.#exclusive('commit', async () => {
      const producer = this.#producer
      if (producer === undefined) throw this.#failure('committing', new Error('the partition is not fenced: call fence() first'))
      let transaction: Transaction | undefined
      const places = new Map<PartitionId, MessagePlace>()
      let sent: readonly OutgoingMessage[] = []
      try {
        transaction = await producer.transaction()
        for (sent of pieces)
          for (const place of await this.#send(transaction, sent)) places.set(partitionId(place.topic, place.partition), place)
        sent = []
        const step = { before: this.#committed, offset, metadata, messages: [...places.values()] }
        // Of one without messages nothing could be known later.
        if (places.size > 0) this.#options.trail?.add(this.#id, step)
        await this.#sendOffsets(transaction, offset, metadata)
        await transaction.commit()
        this.#committed = { offset, metadata }
      } catch (error) {
        this.#discard(transaction)
        if (sendFailure(error).kind === 'too-large') this.#topicLimits.refused(sent)
        const failure = this.#failure('a transaction', error)
        this.#options.observer.emit('TransactionFailed', { group: this.#options.groupId, reason: failure.code, text: failure.message })
        throw failure
      }
      this.#options.observer.emit('TransactionCommitted', { group: this.#options.groupId })
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    const producer = this.#producer
    this.#producer = undefined
    if (producer !== undefined) await closeWithin(this.#options.clock, () => producer.disconnect())
    if (this.#options.session === undefined) await this.#session.close()
  }

  /** @param ended - transactions whose end was lost and that were ended once more; more than the trail remembers can't be */
  async #fenceOnce(signal: AbortSignal | undefined, ended = 0): Promise<CommittedOffset> {
    const { client, clock, topic, partition } = this.#options
    const producer = this.#createProducer()
    await reach(
      client,
      clock,
      async () => {
        await producer.connect()
        return producer
      },
      { discard: (late) => late.disconnect() },
    )
    this.#producer = producer
    if (this.#closed || signal?.aborted === true) {
      this.#discard()
      const why = this.#closed ? 'it was closed meanwhile' : 'it went to another member meanwhile'
      throw new MillraceError('ABORTED', `taking ${topic}/${partition} over was stopped: ${why}`)
    }
    const transaction = await producer.transaction()
    await transaction.abort()
    const { committed, isPending } = await this.#readCommitted()
    const { held, isKnown, lostEnd } = await this.#restored(committed)
    if (lostEnd !== undefined && ended < MOST_KEPT) {
      this.#discard()
      const isEnded = await this.#endAgain(lostEnd)
      return this.#fenceOnce(signal, isEnded ? ended + 1 : MOST_KEPT)
    }
    // Where the trail has led on, what was pending is known.
    if (!isKnown || (isPending && held === committed)) this.#bearPending()
    else this.#pendingSinceMono = undefined
    if (held !== committed) await this.#keepRestored(producer, held)
    this.#committed = held
    return held
  }

  /** `isPending`: a transaction of somebody before us holds a newer offset and has not ended, though nothing of ours is open any more. */
  async #readCommitted(): Promise<{ readonly committed: CommittedOffset; readonly isPending: boolean }> {
    const { groupId, topic, partition, clock } = this.#options
    const at = { topic, partition }
    const what = `reading the committed offset of ${topic}/${partition} in group ${groupId}`
    const asked = { groupId, partitions: [at] }
    const { committed, unstable } = await readStableOffsets(this.#session, asked, { clock, limitMs: LOOK_LIMIT_MS, what })
    return { committed: committedAt(committed, at), isPending: unstable.length > 0 }
  }

  /**
   * Whoever went on from the offset before would write again what the transaction behind it has written, if that still commits: a broker
   * that has much to do after a start takes its time to end it. One that has lost it never does, and shows nobody its messages either.
   * Errors: KAFKA_TRANSACTION_FAILED until `pendingLimitMs` have passed.
   */
  #bearPending(): void {
    const { groupId, topic, partition, clock, observer, pendingLimitMs = PENDING_LIMIT_MS } = this.#options
    if (this.#pendingSinceMono === undefined && pendingLimitMs > 0)
      observer.emit('OffsetAwaited', { group: groupId, topic, partition, limitMs: pendingLimitMs })
    this.#pendingSinceMono ??= clock.mono()
    const leftMs = this.#pendingSinceMono + pendingLimitMs - clock.mono()
    if (leftMs > 0) {
      const what = `the transaction that moves the offset of ${topic}/${partition} in group ${groupId}`
      const text = `${what} has not ended yet: it is waited for, another ${durationText(leftMs)} at most`
      throw new MillraceError('KAFKA_TRANSACTION_FAILED', text, { context: { group: groupId, topic, partition } })
    }
    observer.emit('OffsetUnstable', { group: groupId, topic, partition })
  }

  async #restored(committed: CommittedOffset): Promise<Restored> {
    const { trail, clock, groupId, topic, partition } = this.#options
    if (trail === undefined) return { held: committed, isKnown: true, lostEnd: undefined }
    const limits = { clock, deadlineMono: clock.mono() + LOOK_LIMIT_MS }
    return restored({ session: this.#session, trail, transactionalId: this.#id, groupId, input: { topic, partition }, committed, limits })
  }

  async #endAgain(lost: LostEnd): Promise<boolean> {
    const isEnded = await endAgain(this.#session, lost)
    const { groupId, topic, partition, observer } = this.#options
    const partitions = lost.open.map((at) => partitionId(at.topic, at.partition)).join(', ')
    if (isEnded) observer.emit('TransactionEndRestored', { group: groupId, topic, partition, result: lost.result, partitions })
    return isEnded
  }

  /** Else the next process that has the partition, which knows no trail, would begin before it. */
  async #keepRestored(producer: Producer, { offset, metadata }: CommittedOffset): Promise<void> {
    if (offset === undefined) return
    const { groupId, topic, partition, observer } = this.#options
    const transaction = await producer.transaction()
    await this.#sendOffsets(transaction, offset, metadata)
    await transaction.commit()
    observer.emit('OffsetRestored', { group: groupId, topic, partition, offset })
  }

  get #id(): string {
    const { groupId, topic, partition } = this.#options
    return transactionalId(groupId, topic, partition)
  }

  #createProducer(): Producer {
    const { client, transactionTimeoutMs } = this.#options
    return client.kafka.producer({
      transactionalId: this.#id,
      transactionTimeout: transactionTimeoutMs ?? TRANSACTION_TIMEOUT_MS,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      metadataMaxAge: METADATA_MAX_AGE_MS,
      createPartitioner: () => explicitPartition,
      // Nearly every wait is for the transaction before this one, which takes about 20 ms.
      retry: { initialRetryTime: 20, maxRetryTime: 1_000, retries: 8 },
    })
  }

  #pieces(messages: readonly OutgoingMessage[]): OutgoingMessage[][] {
    for (const message of messages) checkMessage(message)
    return piecesOf(messages, {
      maxMessages: PIECE_MESSAGES,
      maxBytes: this.#topicLimits.pieceBytes,
      maxBatchBytes: (topic) => this.#topicLimits.maxBatchBytes(topic),
    })
  }

  /** Shape: where the first message of each partition lies, as far as the broker tells. */
  async #send(transaction: Transaction, piece: readonly OutgoingMessage[]): Promise<MessagePlace[]> {
    const byTopic = grouped(piece, ({ topic }) => topic)
    const topicMessages = [...byTopic].map(([topic, messages]) => ({ topic, messages: messages.map(toKafkajs) }))
    const answer = await transaction.sendBatch({ acks: -1, topicMessages }).catch((error: unknown) => {
      throw denied(this.#options.client.connection, `writing to ${[...byTopic.keys()].join(', ')}`, error) ?? error
    })
    const missing = unansweredPartitions(piece, answer)
    if (missing.length > 0) throw new Error(`nothing was stored in ${missing.join(', ')}: these partitions do not exist`)
    return answer.flatMap(({ topicName: topic, partition, baseOffset }) =>
      baseOffset === undefined ? [] : [{ topic, partition, offset: BigInt(baseOffset) }],
    )
  }

  async #sendOffsets(transaction: Transaction, offset: bigint, metadata: string): Promise<void> {
    const { clock, groupId, topic, partition } = this.#options
    // The client's types leave metadata out; it passes it on.
    const entry = { partition, offset: String(offset), metadata }
    const offsets: Offsets & { consumerGroupId: string } = { consumerGroupId: groupId, topics: [{ topic, partitions: [entry] }] }
    const deadline = clock.mono() + CONCURRENT_LIMIT_MS
    for (;;) {
      try {
        await transaction.sendOffsets(offsets)
        return
      } catch (error) {
        if (kafkajsFailure(error).type !== 'CONCURRENT_TRANSACTIONS' || clock.mono() > deadline) throw error
        await clock.sleep(CONCURRENT_WAIT_MS)
      }
    }
  }

  /** Gives the producer up. What it left open would hold up readers until its timeout, so that is aborted where still possible. */
  #discard(transaction?: Transaction): void {
    const producer = this.#producer
    this.#producer = undefined
    if (producer === undefined) return
    const end = async (): Promise<void> => {
      try {
        if (transaction?.isActive()) await transaction.abort()
      } finally {
        await producer.disconnect()
      }
    }
    // Nobody waits for it: the next fence() aborts the same transaction, and a broker that is away can't be told.
    end().catch(() => undefined)
  }

  async #exclusive<T>(what: string, run: () => Promise<T>): Promise<T> {
    const { topic, partition } = this.#options
    if (this.#closed) throw new MillraceError('ABORTED', `${what} of ${topic}/${partition} after it was closed`)
    if (this.#busy) throw new MillraceError('INTERNAL', `${what} of ${topic}/${partition} while another call runs: one at a time`)
    this.#busy = true
    try {
      return await run()
    } finally {
      this.#busy = false
    }
  }

  #failure(what: string, error: unknown): MillraceError {
    if (error instanceof MillraceError) return error
    const { topic, partition, groupId } = this.#options
    const { type, message } = kafkajsFailure(error)
    const context = { group: groupId, topic, partition }
    const denial = denied(this.#options.client.connection, `${what} of ${topic}/${partition} under transactional id ${this.#id}`, error)
    if (denial !== undefined) return denial
    if (type !== undefined && FENCED.has(type)) {
      const text = `${what} of ${topic}/${partition} was refused: another producer took over, or the transaction timed out`
      return new MillraceError('KAFKA_FENCED', text, { cause: error, context })
    }
    const reason = type === undefined ? message : `${type}: ${message}`
    return new MillraceError('KAFKA_TRANSACTION_FAILED', `${what} of ${topic}/${partition} failed (${reason})`, { cause: error, context })
  }
}
