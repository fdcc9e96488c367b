import { leastOf } from '../kernel/bigint.ts'
import type { TopicPartition } from '../kernel/brand.ts'
import type { FetchedLog } from './log-fetch.ts'
import type { KafkaMessage } from './message.ts'

export type LogEvent =
  /** What one fetch gave; without messages where there were only markers and aborted ones. */
  | ({ readonly kind: 'batch'; readonly messages: readonly KafkaMessage[]; readonly position: bigint } & TopicPartition)
  /** Everything up to the end seen at the start (or `until`) has been given. Once for each partition. */
  | ({ readonly kind: 'end'; readonly position: bigint } & TopicPartition)
  /** The offset to read does not exist: retention overtook it, or the log ends before it. Reading goes on at `to`. */
  | ({ readonly kind: 'out-of-range'; readonly from: bigint; readonly to: bigint } & TopicPartition)

export interface CursorStart extends TopicPartition {
  readonly position: bigint
  /** As seen at the start. */
  readonly end: bigint
  readonly until: bigint | undefined
  readonly follow: boolean
}

/** Empty answers after which a partition with something to read counts as starved. */
const EMPTY_BEFORE_STARVED = 3

/**
 * Place of a reader in one partition. Pure: it turns what was fetched into events and knows when to stop.
 *
 * Three bounds: `end` is announced when it is reached; `until` is never crossed; without `follow` the sooner of the two ends it.
 */
export class PartitionCursor {
  readonly topic: string
  readonly partition: number
  readonly #announceAt: bigint
  readonly #stopAt: bigint | undefined
  #position: bigint
  #announced = false
  #emptyAnswers = 0

  constructor({ topic, partition, position, end, until, follow }: CursorStart) {
    this.topic = topic
    this.partition = partition
    this.#position = position
    this.#announceAt = leastOf(until ?? end, end)
    this.#stopAt = follow ? until : this.#announceAt
  }

  get position(): bigint {
    return this.#position
  }

  get finished(): boolean {
    return this.#stopAt !== undefined && this.#position >= this.#stopAt
  }

  /** There is something to read, and answers keep coming without it: others fill them. */
  get starved(): boolean {
    return this.#emptyAnswers >= EMPTY_BEFORE_STARVED
  }

  /** Events of one fetch. `alone`: nothing else was asked for, so an empty answer is no matter of room. */
  *take(log: FetchedLog, alone: boolean): Iterable<LogEvent> {
    // Answers to a place that was left meanwhile.
    if (log.from !== this.#position) return
    if (log.next === log.from) {
      this.#empty(log.end, alone)
      yield* this.reached()
      return
    }
    this.#emptyAnswers = 0
    const stopAt = this.#stopAt
    const crosses = stopAt !== undefined && log.next > stopAt
    const messages = crosses ? log.messages().filter(({ offset }) => offset < stopAt) : log.messages()
    this.#position = crosses ? stopAt : log.next
    const { topic, partition } = this
    yield { kind: 'batch', topic, partition, messages, position: this.#position }
    yield* this.reached()
  }

  /** The `end` event, the first time that it is due. */
  *reached(): Iterable<LogEvent> {
    if (this.#announced || this.#position < this.#announceAt) return
    this.#announced = true
    yield { kind: 'end', topic: this.topic, partition: this.partition, position: this.#position }
  }

  /** The position does not exist: goes on at another one. */
  moveTo(position: bigint): LogEvent {
    const from = this.#position
    this.#position = position
    this.#emptyAnswers = 0
    return { kind: 'out-of-range', topic: this.topic, partition: this.partition, from, to: position }
  }

  /**
   * Nothing came though the log goes on. Asked alone and still empty, the offset belongs to a batch from which compaction has
   * removed every record: such a batch does not show, so it is passed one offset at a time.
   */
  #empty(end: bigint, alone: boolean): void {
    if (end <= this.#position) {
      this.#emptyAnswers = 0
      return
    }
    if (this.starved && alone) this.#position += 1n
    else this.#emptyAnswers += 1
  }
}
