import type { Clock } from '../kernel/clock.ts'
import { crawlOf } from './crawl-queues.ts'
import type { QueuedTask } from './queued-task.ts'

/** Between two looks whether a place has become free. */
export const PLACE_POLL_MS = 1_000

/** Most pages that hold the last places are on the wire, and at their end soon; the others wait for another attempt. */
const KEPT_MS = 5_000
/**
 * Tasks of a crawl that stay in their windows, for the next places that become free; more of them would leave no room there for other
 * tasks.
 */
const MOST_KEPT = 8
const LEAST_MS = 10_000
const MOST_MS = 3_600_000
/** Once nobody has asked for so long, a crawl begins to wait anew. */
const FORGOTTEN_MS = 2 * MOST_MS

/** A crawl whose places are all taken and not all kept. */
interface CrawlWait {
  readonly sinceMono: number
  readonly askedMono: number
  /** What stays in its window, and since when. */
  readonly kept: Map<QueuedTask, number>
}

/** How long tasks wait for a place in the page budget of their crawl, which others hold that may yet give it back. */
export class PlaceWaits {
  readonly #clock: Clock
  /** In the order in which they asked last. */
  readonly #crawls = new Map<string, CrawlWait>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * For how long it leaves its window; undefined: it stays and asks again, as a few of each crawl do for a while. The longer the longer it
   * and its crawl may have waited: a place may be held for hours, by a page whose next attempt is due then, and thousands may wait for it.
   * Units: ms.
   */
  leavesFor(queued: QueuedTask): number | undefined {
    const now = this.#clock.mono()
    const { sinceMono, kept } = this.#asks(crawlOf(queued), now)
    const keptSince = kept.get(queued) ?? (kept.size < MOST_KEPT ? now : undefined)
    if (keptSince !== undefined && now - keptSince < KEPT_MS) {
      kept.set(queued, keptSince)
      return undefined
    }
    kept.delete(queued)
    // It has waited for no longer than either: its crawl may be at the limit of one domain after the other.
    const ageMs = this.#clock.now() - (queued.task.enqueuedAt ?? this.#clock.now())
    return Math.min(MOST_MS, Math.max(LEAST_MS, Math.min(now - sinceMono, ageMs) / 2))
  }

  /** True while it stays in its window. */
  has(queued: QueuedTask): boolean {
    return this.#crawls.get(crawlOf(queued))?.kept.has(queued) ?? false
  }

  /** It waits for no place any more, or not in its window. */
  ended(queued: QueuedTask): void {
    this.#crawls.get(crawlOf(queued))?.kept.delete(queued)
  }

  #asks(crawl: string, now: number): CrawlWait {
    for (const [other, { askedMono }] of this.#crawls) {
      if (now - askedMono < FORGOTTEN_MS) break
      this.#crawls.delete(other)
    }
    const { sinceMono, kept } = this.#crawls.get(crawl) ?? { sinceMono: now, kept: new Map<QueuedTask, number>() }
    const wait = { sinceMono, askedMono: now, kept }
    this.#crawls.delete(crawl)
    this.#crawls.set(crawl, wait)
    return wait
  }
}
