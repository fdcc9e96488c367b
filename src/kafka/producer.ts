import { setMaxListeners } from 'node:events'
import type { Producer } from 'kafkajs'
import { AbortListeners } from '../kernel/abort.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { type PartitionId, partitionId } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { grouped } from '../kernel/grouped.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import { ByteGate } from './byte-gate.ts'
import type { KafkaClient } from './client.ts'
import { denied, type SendFailure, sendFailure } from './failure.ts'
import type { OutgoingMessage } from './message.ts'
import { BATCH_OVERHEAD_BYTES, checkMessage, messageBytes, toKafkajs, unansweredPartitions, withoutTime } from './outgoing.ts'
import { connectProducer } from './producer-connection.ts'
import { reach } from './reach.ts'
import { missingPartition, refused, tooLarge } from './send-errors.ts'
import { type LaneBatch, type SendCall, type SendItem, SendQueue, type SendRequest } from './send-queue.ts'
import { SharedConnection } from './shared-connection.ts'

/** What stages need of a producer; the durable one below is the implementation. */
export interface MessageProducer {
  /**
   * Resolves when every message is acknowledged by all in-sync replicas. Messages of one call to one partition keep their order.
   * Resends with back-off until then; rejects only with KAFKA_MESSAGE_TOO_LARGE, KAFKA_DENIED (the topic has taken nothing yet), ABORTED
   * (by the signal or a stop) or what no resend can mend. Other messages of the call may be stored then, unless one is above the limit we
   * know.
   */
  send(messages: readonly OutgoingMessage[], options?: { signal?: AbortSignal }): Promise<void>
}

export interface DurableProducerOptions {
  readonly client: KafkaClient
  readonly clock: Clock
  readonly observer: Observer
  /** Largest batch that the broker takes for a topic; see `batchLimits`. */
  readonly maxBatchBytes: (topic: string) => number
  /** Codec of a topic; see `gzipTopics`. None where not given. */
  readonly codec?: (topic: string) => 'gzip' | undefined
  /** How long the first message of a request waits for more. 5 ms where not given. */
  readonly lingerMs?: number
  /** Of one request. 500 where not given. */
  readonly maxRequestMessages?: number
  /** Of one request; a larger message goes by itself. 512 KiB where not given. */
  readonly maxRequestBytes?: number
  /** Requests on the wire. 4 where not given. */
  readonly maxInFlight?: number
  /** Bytes that wait or are on the wire; more make `send` wait. 64 MiB where not given. */
  readonly maxPendingBytes?: number
  /** How long a partition may be unknown before its messages are rejected: a new one is known within a second. 3 s where not given. */
  readonly unknownPartitionMs?: number
  /** Chance for the jitter of back-off. */
  readonly random?: () => number
}

const BACKOFF = { firstMs: 100, maxMs: 5_000 } as const
const UNKNOWN_PARTITION_MS = 3_000
/** The same where it has stored messages of ours: a broker that starts again may not know its topics at first. */
const LOST_PARTITION_MS = 60_000
/** From here on a lane is sent alone, so that one dead leader does not make others repeat what was stored. */
const FAILURES_BEFORE_ALONE = 2

/**
 * Sends until acknowledged. Not idempotent: with kafkajs, several idempotent requests at once lose messages; repeats are told apart
 * downstream by their ids.
 *
 * Guarantees: `send` resolves only after all in-sync replicas have the messages and the answer named every partition that was sent
 * to; messages of one caller to one partition are stored in their order (repeats may follow); one message that can't be stored
 * rejects its own call and no other; the bytes held are bounded.
 *
 * running:  takes messages.
 * draining: takes none, sends what it has.
 * closing:  what is left rejects with ABORTED; it may have been stored.
 */
export class DurableProducer extends BaseService implements MessageProducer {
  readonly #options: DurableProducerOptions
  readonly #queue: SendQueue
  readonly #connection: SharedConnection<Producer>
  readonly #calls = new Set<SendCall>()
  readonly #gate: ByteGate
  readonly #aborts = new AbortListeners()
  /** Topics, and partitions, that have acknowledged something. */
  readonly #storedInTopics = new Set<string>()
  readonly #storedIn = new Set<PartitionId>()
  readonly #idleListeners = new Set<() => void>()
  readonly #timers = new Set<() => void>()
  #linger: (() => void) | undefined
  /** Calls of `send` that have not settled, those that wait for room included. */
  #sends = 0
  #inFlight = 0

  constructor(options: DurableProducerOptions) {
    super()
    this.#options = options
    this.#queue = new SendQueue({
      maxMessages: options.maxRequestMessages ?? 500,
      maxBytes: options.maxRequestBytes ?? 524_288,
      maxBatchBytes: options.maxBatchBytes,
      codec: options.codec ?? (() => undefined),
    })
    this.#gate = new ByteGate(options.maxPendingBytes ?? 67_108_864)
    this.#connection = new SharedConnection(
      options.clock,
      () => connectProducer(options.client),
      (producer) => producer.disconnect(),
    )
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    this.releases.add('producer connections', () => this.#connection.close())
    this.releases.add('waiting messages', () => this.#abandon())
    this.aborted.signal.addEventListener('abort', () => this.#abandon(), { once: true })
    const { client, clock } = this.#options
    await reach(client, clock, () => this.#connection.use(async () => undefined), { signal })
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    await this.flush({ signal })
  }

  /** Resolves when nothing waits and nothing is on the wire. Errors: the reason of the signal. */
  async flush(options: { signal?: AbortSignal } = {}): Promise<void> {
    this.#pump()
    if (this.#sends === 0) return
    await new Promise<void>((resolve, reject) => {
      const signal = options.signal
      const done = (): void => {
        signal?.removeEventListener('abort', onAbort)
        this.#idleListeners.delete(done)
        resolve()
      }
      const onAbort = (): void => {
        this.#idleListeners.delete(done)
        reject(signal?.reason)
      }
      if (signal?.aborted) return onAbort()
      this.#idleListeners.add(done)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  async send(messages: readonly OutgoingMessage[], options: { signal?: AbortSignal } = {}): Promise<void> {
    this.#assertTaking(options.signal)
    if (messages.length === 0) return
    const sized = messages.map((message) => ({ message, bytes: this.#checkedBytes(message) }))
    const bytes = sized.reduce((sum, item) => sum + item.bytes, 0)
    const { signal } = options
    // A stage gives the same signal to many sends at once: that is no leak.
    if (signal !== undefined) setMaxListeners(0, signal)
    this.#sends += 1
    try {
      await this.#gate.enter(bytes, signal)
      await this.#enqueue(sized, signal)
    } finally {
      this.#sends -= 1
      if (this.#sends === 0) for (const listener of [...this.#idleListeners]) listener()
    }
  }

  #assertTaking(signal: AbortSignal | undefined): void {
    if (signal?.aborted) throw new MillraceError('ABORTED', 'the send was stopped before it began', { cause: signal.reason })
    if (this.state !== 'running') throw new MillraceError('ABORTED', `the producer is ${this.state}: it takes no messages`)
  }

  #checkedBytes(message: OutgoingMessage): number {
    checkMessage(message)
    const bytes = messageBytes(message)
    const limit = this.#options.maxBatchBytes(message.topic)
    if (bytes + BATCH_OVERHEAD_BYTES > limit) throw tooLarge(message, bytes, `the topic takes ${limit} bytes`)
    return bytes
  }

  #enqueue(sized: readonly { message: OutgoingMessage; bytes: number }[], signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (): void => {
        call.settled = true
        leave?.()
        this.#calls.delete(call)
      }
      const call: SendCall = {
        remaining: sized.length,
        settled: false,
        resolve: () => {
          finish()
          resolve()
        },
        reject: (error) => {
          finish()
          this.#forget(this.#queue.removeCall(call))
          reject(error)
        },
      }
      const onAbort = (): void =>
        call.reject(new MillraceError('ABORTED', 'the send was stopped; it may have been stored', { cause: signal?.reason }))
      this.#calls.add(call)
      const leave = signal === undefined ? undefined : this.#aborts.add(signal, onAbort)
      for (const { message, bytes } of sized) this.#queue.push({ message, bytes, call })
      // Either may have happened while it waited for room.
      if (signal?.aborted) onAbort()
      else if (this.aborted.signal.aborted) this.#abandon()
      else this.#schedule()
    })
  }

  /** Sends now when a request is full or somebody waits for the end, else when the first message has waited long enough. */
  #schedule(): void {
    const { maxRequestMessages = 500, maxRequestBytes = 524_288, lingerMs = 5, clock } = this.#options
    const flushing = this.#idleListeners.size > 0
    if (flushing || this.#queue.readyCount >= maxRequestMessages || this.#queue.readyBytes >= maxRequestBytes) {
      this.#pump()
      return
    }
    this.#linger ??= clock.timer(lingerMs, () => {
      this.#linger = undefined
      this.#pump()
    })
  }

  #pump(): void {
    if (this.aborted.signal.aborted) return
    while (this.#inFlight < (this.#options.maxInFlight ?? 4)) {
      const request = this.#queue.take()
      if (request === undefined) return
      this.#inFlight += 1
      // Total: every failure is a value.
      void this.#transmit(request).finally(() => {
        this.#inFlight -= 1
        // What waits goes when it would have gone: an answer that comes soon would else send a few messages by themselves.
        if (this.#queue.readyCount > 0) this.#schedule()
      })
    }
  }

  async #transmit(request: SendRequest): Promise<void> {
    let failure: SendFailure | undefined
    try {
      failure = await this.#connection.use((producer) => this.#sendOnce(producer, request))
    } catch (error) {
      failure = sendFailure(error)
    }
    if (this.aborted.signal.aborted) return
    if (failure === undefined) for (const batch of request.batches) this.#acknowledge(batch)
    else this.#failed(request, failure)
  }

  async #sendOnce(producer: Producer, request: SendRequest): Promise<SendFailure | undefined> {
    const sent = request.batches.flatMap(({ items }) => items.map(({ message }) => message))
    const byTopic = grouped(sent, ({ topic }) => topic)
    const { CompressionTypes } = this.#options.client.kafkajs
    const answer = await producer.sendBatch({
      acks: -1,
      compression: request.codec === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None,
      topicMessages: [...byTopic].map(([topic, messages]) => ({ topic, messages: messages.map(toKafkajs) })),
    })
    const missing = unansweredPartitions(
      request.batches.map(({ lane }) => lane),
      answer,
    )
    if (missing.length === 0) return undefined
    return { kind: 'unknown-partition', reason: 'NOT_ANSWERED', cause: new Error(`no answer for ${missing.join(', ')}`) }
  }

  #acknowledge({ lane, items }: LaneBatch): void {
    this.#storedInTopics.add(lane.topic)
    this.#storedIn.add(partitionId(lane.topic, lane.partition))
    lane.failures = 0
    lane.unknownSinceMono = undefined
    lane.alone = false
    lane.maxItems = Number.POSITIVE_INFINITY
    this.#queue.release(lane)
    this.#forget(items)
    for (const { call } of items) {
      if (call.settled) continue
      call.remaining -= 1
      if (call.remaining === 0) call.resolve()
    }
  }

  /** A failure of several lanes says nothing about one of them: each goes alone next time, and then it is its own. */
  #failed(request: SendRequest, failure: SendFailure): void {
    if (failure.kind === 'wrong-time') {
      this.#wrongTime(request, failure)
      return
    }
    const topic = [...new Set(request.batches.map(({ lane }) => lane.topic))].join(', ')
    this.#options.observer.emit('SendRetried', { reason: failure.reason, topic, text: errorText(failure.cause) })
    // A topic that was deleted, or may not be seen, stays in the metadata requests of its connection and fails those of every other one.
    if (failure.kind === 'unknown-partition' || failure.kind === 'denied') this.#connection.renew()
    const [only] = request.batches
    if (request.batches.length === 1 && only !== undefined && failure.kind !== 'retry') {
      this.#failedAlone(only, failure)
      return
    }
    for (const batch of request.batches) {
      batch.lane.failures += 1
      batch.lane.alone = failure.kind !== 'retry' || batch.lane.failures >= FAILURES_BEFORE_ALONE
      this.#again(batch, failure.kind === 'retry' ? undefined : 0)
    }
  }

  /** A machine whose clock is wrong must bury nothing: what it has is sent with the time of sending, and waits until that is right. */
  #wrongTime({ batches }: SendRequest, { reason }: SendFailure): void {
    this.#options.observer.emit('SendRetried', { reason, text: 'the clock of this machine is hours from that of the broker: set it' })
    for (const { lane, items } of batches) {
      lane.failures += 1
      for (const item of items) item.message = withoutTime(item.message)
      this.#again({ lane, items })
    }
  }

  #failedAlone(batch: LaneBatch, failure: SendFailure): void {
    const { lane, items } = batch
    if (failure.kind === 'unknown-partition') {
      lane.failures += 1
      const now = this.#options.clock.mono()
      lane.unknownSinceMono ??= now
      const { unknownPartitionMs = UNKNOWN_PARTITION_MS } = this.#options
      const limitMs = this.#storedIn.has(partitionId(lane.topic, lane.partition)) ? LOST_PARTITION_MS : unknownPartitionMs
      if (now - lane.unknownSinceMono < limitMs) {
        this.#again(batch)
        return
      }
      lane.failures = 0
      lane.unknownSinceMono = undefined
      this.#giveUpLane(batch, missingPartition(lane, failure))
      return
    }
    const [first] = items
    if (failure.kind === 'denied') this.#denied(batch, failure)
    else if (items.length === 1 && first !== undefined) {
      const { message, bytes } = first
      const error =
        failure.kind === 'too-large' ? tooLarge(message, bytes, 'the broker refused it', failure.cause) : refused(message, failure)
      this.#giveUp(batch, items, error)
    } else {
      // Which one it is shows by halves.
      lane.maxItems = Math.ceil(items.length / 2)
      this.#again(batch, 0)
    }
  }

  /** Whoever could write to the topic before waits for its permission to come back; who never could is told. */
  #denied(batch: LaneBatch, { cause }: SendFailure): void {
    const { topic } = batch.lane
    const error = this.#storedInTopics.has(topic) ? undefined : denied(this.#options.client.connection, `writing to ${topic}`, cause)
    batch.lane.failures += 1
    if (error === undefined) this.#again(batch)
    else this.#giveUpLane(batch, error)
  }

  /** Everything that waits for this partition shares its fate. */
  #giveUpLane(batch: LaneBatch, error: MillraceError): void {
    this.#queue.putBack(batch.lane, batch.items)
    this.#giveUp(batch, [...batch.lane.items], error)
  }

  #giveUp({ lane, items }: LaneBatch, rejected: readonly SendItem[], error: MillraceError): void {
    this.#forget(items.filter((item) => !lane.items.includes(item)))
    for (const { call } of rejected) if (!call.settled) call.reject(error)
    this.#queue.release(lane)
  }

  #again({ lane, items }: LaneBatch, afterMs?: number): void {
    this.#forget(items.filter(({ call }) => call.settled))
    this.#queue.putBack(lane, items)
    const ms = afterMs ?? backoffMs(BACKOFF, lane.failures, (this.#options.random ?? Math.random)())
    const disarm = this.#options.clock.timer(ms, () => {
      this.#timers.delete(disarm)
      this.#queue.release(lane)
      this.#pump()
    })
    this.#timers.add(disarm)
  }

  #forget(items: readonly SendItem[]): void {
    for (const { bytes } of items) this.#gate.leave(bytes)
  }

  #abandon(): void {
    this.#linger?.()
    for (const disarm of this.#timers) disarm()
    this.#timers.clear()
    const error = new MillraceError('ABORTED', 'the producer was stopped before the messages were acknowledged; they may have been stored')
    this.#gate.close(error)
    for (const call of [...this.#calls]) call.reject(error)
  }
}
