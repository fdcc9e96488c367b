import type { Clock } from '../kernel/clock.ts'
import type { OutgoingMessage } from './message.ts'
import { BATCH_OVERHEAD_BYTES, messageBytes } from './outgoing.ts'

/** Of one request, over all its partitions; larger ones block the event loop. */
const PIECE_BYTES = 1_048_576
/** What was learnt is forgotten then, and learnt again where it still holds: `topics apply` may have raised the limit. */
const LEARNT_MS = 300_000

/**
 * Largest batch of each topic: as configured, or less where the broker has refused something. A topic may have been made by hand, and a
 * limit that was raised may not be applied yet. Asking for the limits would need a right of its own (DescribeConfigs).
 */
export class TopicLimits {
  readonly #configured: (topic: string) => number
  readonly #clock: Clock
  readonly #learnt = new Map<string, number>()
  #pieceBytes = PIECE_BYTES
  #forgetMono = 0

  constructor(configured: (topic: string) => number, clock: Clock) {
    this.#configured = configured
    this.#clock = clock
  }

  /** Units: bytes. */
  maxBatchBytes(topic: string): number {
    this.#forget()
    return Math.min(this.#configured(topic), this.#learnt.get(topic) ?? Number.POSITIVE_INFINITY)
  }

  /** Largest piece of several messages. Units: bytes. */
  get pieceBytes(): number {
    this.#forget()
    return this.#pieceBytes
  }

  /**
   * The broker has called a batch of this piece too large. Of several messages it is not known which: the next pieces are half as large.
   */
  refused(piece: readonly OutgoingMessage[]): void {
    const [first, second] = piece
    if (first === undefined) return
    this.#forget()
    this.#forgetMono = this.#clock.mono() + LEARNT_MS
    // What was sent before less was known says nothing new.
    if (second === undefined) {
      const known = this.#learnt.get(first.topic) ?? Number.POSITIVE_INFINITY
      this.#learnt.set(first.topic, Math.min(known, messageBytes(first) + BATCH_OVERHEAD_BYTES - 1))
    } else {
      const bytes = piece.reduce((sum, message) => sum + messageBytes(message), 0)
      this.#pieceBytes = Math.min(this.#pieceBytes, Math.floor(bytes / 2))
    }
  }

  #forget(): void {
    if (this.#clock.mono() < this.#forgetMono) return
    this.#learnt.clear()
    this.#pieceBytes = PIECE_BYTES
  }
}
