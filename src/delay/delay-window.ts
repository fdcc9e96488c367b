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

/** Where something stands in the heap, which takes nothing out of its middle: empty once that is gone, so that it keeps no message. */
interface Place<T> {
  waiting: Waiting<T> | undefined
}

/** So many empty places are left in the heap. */
const MAX_EMPTY = 1_024

/**
 * What a delay worker holds, by the time it is due; bounded by what the worker does when `isOver`. Pure: time is an argument.
 */
export class DelayWindow<T> {
  readonly #maxBytes: number
  #heap = new TimeHeap<Place<T>>()
  readonly #live = new Map<Waiting<T>, Place<T>>()
  #movableBytes = 0

  /** `maxBytes`: of what can be moved; the rest is bounded by the consumer's windows. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#live.size
  }

  /** Places that it keeps in memory, empty ones among them. */
  get places(): number {
    return this.#heap.size
  }

  get isOver(): boolean {
    return this.#movableBytes > this.#maxBytes
  }

  /**
   * Monotonic ms of the next that wakes; undefined when nothing waits. A time that has no owner any more may be given: it wakes for
   * nothing.
   */
  get nextMono(): number | undefined {
    return this.#live.size === 0 ? undefined : this.#heap.nextAt
  }

  add(waiting: Waiting<T>): void {
    const place = { waiting }
    this.#live.set(waiting, place)
    this.#heap.push(waiting.wakeMono, place)
    if (waiting.isMovable) this.#movableBytes += waiting.bytes
  }

  /** Everything whose time has come, earliest first. */
  popDue(now: number): T[] {
    const due: T[] = []
    for (let next = this.#heap.popDue(now); next !== undefined; next = this.#heap.popDue(now)) {
      const { waiting } = next
      if (waiting === undefined) continue
      this.#remove(waiting)
      due.push(waiting.value)
    }
    return due
  }

  /**
   * Makes room: takes those that wake last until three quarters of the bound are left, none of them before `earliestMono`. Latest first.
   */
  takeLatest(earliestMono: number): T[] {
    const movable = [...this.#live.keys()].filter(({ isMovable, wakeMono }) => isMovable && wakeMono >= earliestMono)
    movable.sort((a, b) => b.wakeMono - a.wakeMono)
    const taken: T[] = []
    for (const waiting of movable) {
      if (this.#movableBytes <= this.#maxBytes * 0.75) break
      this.#remove(waiting)
      taken.push(waiting.value)
    }
    this.#tidy()
    return taken
  }

  /** Takes out what matches, in no order. Cost: O(size). */
  takeOut(matches: (value: T) => boolean): T[] {
    const taken: T[] = []
    for (const waiting of this.#live.keys()) {
      if (!matches(waiting.value)) continue
      this.#remove(waiting)
      taken.push(waiting.value)
    }
    this.#tidy()
    return taken
  }

  #remove(waiting: Waiting<T>): void {
    const place = this.#live.get(waiting)
    if (place !== undefined) place.waiting = undefined
    this.#live.delete(waiting)
    if (waiting.isMovable) this.#movableBytes -= waiting.bytes
  }

  #tidy(): void {
    if (this.#heap.size <= 2 * this.#live.size + MAX_EMPTY) return
    this.#heap = new TimeHeap()
    for (const [{ wakeMono }, place] of this.#live) this.#heap.push(wakeMono, place)
  }
}
