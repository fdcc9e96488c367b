import type { Clock } from '../kernel/clock.ts'
import type { QueuedTask } from './queued-task.ts'

/** Between two looks whether a place has become free. */
export const PLACE_POLL_MS = 1_000

/** Most pages that hold the last places are on the wire, and at their end soon; the others wait for another attempt. */
const KEPT_MS = 10_000
const LEAST_MS = 60_000
const MOST_MS = 3_600_000

/** How long tasks wait for a place in the page budget of their crawl, which others hold that may yet give it back. */
export class PlaceWaits {
  readonly #clock: Clock
  readonly #sinceMono = new WeakMap<QueuedTask, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * For how long it leaves its window; undefined: it stays and asks again. The longer the older the task is: a place may be held for hours, by a
   * page whose next attempt is due then, and thousands may wait for it. Units: ms.
   */
  leavesFor(queued: QueuedTask): number | undefined {
    const now = this.#clock.mono()
    const since = this.#sinceMono.get(queued) ?? now
    this.#sinceMono.set(queued, since)
    if (now - since < KEPT_MS) return undefined
    const ageMs = this.#clock.now() - (queued.task.enqueuedAt ?? this.#clock.now())
    return Math.min(MOST_MS, Math.max(LEAST_MS, ageMs / 2))
  }
}
