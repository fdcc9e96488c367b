import { TimeHeap } from '../kernel/time-heap.ts'

/** Something that waits until a time. */
export interface Waiting<T> {
  /** Monotonic ms at which something has to be done. */
  readonly wakeMono: number
  /** What it takes in memory. */
  readonly bytes: number
  /** May be written to the end of its topic instead, to make room. */
  readonly isMovable: boolean
  readonly value: T
}

/**
 * What a delay worker holds, by the time it is due; bounded by what the worker does when `isOver`. Pure: time is an argument.
 */
export class DelayWindow<T> {
  readonly #maxBytes: number
  readonly #heap = new TimeHeap<Waiting<T>>()
  readonly #live = new Set<Waiting<T>>()
  #movableBytes = 0

  /** `maxBytes`: of what can be moved; the rest is bounded by the consumer's windows. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#live.size
  }

  get isOver(): boolean {
    return this.#movableBytes > this.#maxBytes
  }

  /** Monotonic ms of the next that wakes; undefined when nothing waits. A time that has no owner any more may be given: it wakes for nothing. */
  get nextMono(): number | undefined {
    return this.#live.size === 0 ? undefined : this.#heap.nextAt
  }

  add(waiting: Waiting<T>): void {
    this.#live.add(waiting)
    this.#heap.push(waiting.wakeMono, waiting)
    if (waiting.isMovable) this.#movableBytes += waiting.bytes
  }

  /** Everything whose time has come, earliest first. */
  popDue(now: number): T[] {
    const due: T[] = []
    for (let next = this.#heap.popDue(now); next !== undefined; next = this.#heap.popDue(now)) {
      if (this.#remove(next)) due.push(next.value)
    }
    return due
  }

  /** Makes room: takes those that wake last until three quarters of the bound are left, none of them before `earliestMono`. Latest first. */
  takeLatest(earliestMono: number): T[] {
    const movable = [...this.#live].filter(({ isMovable, wakeMono }) => isMovable && wakeMono >= earliestMono)
    movable.sort((a, b) => b.wakeMono - a.wakeMono)
    const taken: T[] = []
    for (const waiting of movable) {
      if (this.#movableBytes <= this.#maxBytes * 0.75) break
      this.#remove(waiting)
      taken.push(waiting.value)
    }
    return taken
  }

  /** Takes out what matches, in no order. Cost: O(size). */
  takeOut(matches: (value: T) => boolean): T[] {
    const taken: T[] = []
    for (const waiting of this.#live) {
      if (!matches(waiting.value)) continue
      this.#remove(waiting)
      taken.push(waiting.value)
    }
    return taken
  }

  #remove(waiting: Waiting<T>): boolean {
    if (!this.#live.delete(waiting)) return false
    if (waiting.isMovable) this.#movableBytes -= waiting.bytes
    return true
  }
}
