import type { PolitenessKey } from '../kernel/brand.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import type { LimiterKey } from '../state/state-store.ts'

/**
 * What timers are good for: a request that leaves so long after its moment has left at it, and the next moment counts from the moment. So
 * no gap is shorter than the pace by more than this, there are never more requests than the pace allows, and what timers are late does not
 * add up. Units: ms.
 */
export const TIMER_SLACK_MS = 0.5
/** Between two moments that the timers of Node.js can tell apart. */
const TIMER_STEP_MS = 1
/** Sites whose last request is remembered; one that was not asked for longer is forgotten, and the limiter alone spaces it. */
const SITES_KEPT = 50_000

/**
 * Whether the requests of a site leave one by one. A burst does not; nor does a pace whose gap no timer can keep (1,000 a second, and
 * beyond): the limiter counts its requests all the same, and its concurrency bounds how many leave at once.
 */
export function isSpaced({ burst, ratePerSecond }: Pick<LimiterKey, 'burst' | 'ratePerSecond'>): boolean {
  return burst === 1 && 1_000 / ratePerSecond > TIMER_STEP_MS
}

/**
 * The gap between two requests of a site as the site sees it. The limiter spaces the moments in which requests are admitted; until a
 * request is on the wire the event loop may be late, or a connection must be made first, and the next one may be quicker. So the next
 * one waits for the gap to the last that was really sent. Within this process; the partition of a site has one owner.
 *
 * Pure: time is an argument. Units: monotonic ms.
 */
export class SendSpacing {
  readonly #sent = new RecentMap<PolitenessKey, number>(SITES_KEPT)

  /** Takes the next moment in which a request of the site may be sent. Shape: ms from now, at most one interval. */
  take(pace: Pick<LimiterKey, 'key' | 'ratePerSecond' | 'burst'>, nowMono: number): number {
    if (!isSpaced(pace)) return 0
    const intervalMs = 1000 / pace.ratePerSecond
    const last = this.#sent.get(pace.key)
    const waitMs = last === undefined ? 0 : Math.min(intervalMs, Math.max(0, last + intervalMs - nowMono))
    this.#sent.set(pace.key, nowMono + waitMs)
    return waitMs
  }

  /** The same for a request that has taken a moment (monotonic ms) and let it go by: 0 where no other of the site has taken a later one. */
  takeAgain(pace: Pick<LimiterKey, 'key' | 'ratePerSecond' | 'burst'>, takenMono: number, nowMono: number): number {
    if ((this.#sent.get(pace.key) ?? 0) > takenMono) return this.take(pace, nowMono)
    this.#sent.set(pace.key, nowMono)
    return 0
  }

  /** A request was on the wire only now: the event loop was late, or its connection had to be made first. */
  sentAt(key: PolitenessKey, mono: number): void {
    const counted = mono - TIMER_SLACK_MS
    if (counted > (this.#sent.get(key) ?? 0)) this.#sent.set(key, counted)
  }
}
