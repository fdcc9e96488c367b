import type { PolitenessKey } from '../kernel/brand.ts'
import { RecentMap } from '../kernel/recent-map.ts'

export interface AdaptiveConcurrencyOptions {
  /** Requests at the same time that are never exceeded. */
  readonly max: number
  /** Never fewer than these. */
  readonly floor: number
}

/** How long requests are watched before the bound may change, ms. */
const WINDOW_MS = 5_000
/** Sites that must have answered in a window: of fewer it is said that they are slow, not that we are. */
const LEAST_SITES = 5
/** Answers of a site before it is known what is usual for it. */
const LEAST_ANSWERS = 3
/** Until what is new counts for two thirds of what is usual, so that a slow minute is not at once the usual; ms. */
const LEARNING_MS = 300_000
/** An answer teaches as at most so many times the usual. */
const MOST_TAUGHT = 3
const DOUBLED = 2
const RECOVERED = 1.5
const DECREASE = 0.7
/** Share of `max` that is added in a window. */
const INCREASE = 0.05
/** Sites whose usual answer is remembered. */
const SITES_KEPT = 5_000

interface Usual {
  ms: number
  answers: number
  lastAt: number
}

/**
 * How many requests a process may have under way, by how quickly sites answer it. That one site is slow is that site's affair; where
 * half of all sites take twice as long as they usually do, it is this machine or its network that has too much, and more requests only
 * make it worse. Then the bound falls by a third, and comes back in small steps.
 *
 * Each site is compared with itself, so that other sites coming into the queue change nothing; a lasting change becomes the usual.
 *
 * Pure: time is an argument. Guarantee: `floor <= limit <= max`, whatever it is told.
 */
export class AdaptiveConcurrency {
  readonly #max: number
  readonly #floor: number
  readonly #usual = new RecentMap<PolitenessKey, Usual>(SITES_KEPT)
  /** The last answer of each site in this window, as a multiple of what is usual for it. */
  readonly #ratios = new Map<PolitenessKey, number>()
  #windowEnd: number | undefined
  #limit: number

  constructor({ max, floor }: AdaptiveConcurrencyOptions) {
    this.#max = Math.max(1, max)
    this.#floor = Math.min(this.#max, Math.max(1, floor))
    this.#limit = this.#max
  }

  get limit(): number {
    return Math.floor(this.#limit)
  }

  /**
   * A site answered after `ms`, or did not within it. Units: monotonic ms.
   * Shape: how many times slower than usual the middle one of all sites was, where that changed the limit.
   */
  answered(key: PolitenessKey, ms: number, now: number): number | undefined {
    this.#windowEnd ??= now + WINDOW_MS
    const slowdown = now >= this.#windowEnd ? this.#closeWindow(now) : undefined
    this.#learn(key, Math.max(1, ms), now)
    return slowdown
  }

  #learn(key: PolitenessKey, ms: number, now: number): void {
    const usual = this.#usual.get(key) ?? { ms, answers: 0, lastAt: now }
    this.#usual.set(key, usual)
    if (usual.answers >= LEAST_ANSWERS) this.#ratios.set(key, ms / usual.ms)
    const weight = Math.max(1 - Math.exp((usual.lastAt - now) / LEARNING_MS), usual.answers < LEAST_ANSWERS ? 1 / (usual.answers + 1) : 0)
    usual.ms += (Math.min(ms, MOST_TAUGHT * usual.ms) - usual.ms) * weight
    usual.answers += 1
    usual.lastAt = now
  }

  #closeWindow(now: number): number | undefined {
    this.#windowEnd = now + WINDOW_MS
    const ratios = [...this.#ratios.values()].sort((a, b) => a - b)
    this.#ratios.clear()
    // Of few sites it is their affair, however they answer: then nothing speaks against what was taken back, which must not stay so for
    // good.
    const isOurs = ratios.length >= LEAST_SITES
    const slowdown = isOurs ? (ratios[Math.floor(ratios.length / 2)] ?? 1) : 1
    const before = this.limit
    if (slowdown >= DOUBLED) this.#limit = Math.max(this.#floor, this.#limit * DECREASE)
    else if (slowdown <= RECOVERED) this.#limit = Math.min(this.#max, this.#limit + Math.max(1, this.#max * INCREASE))
    return this.limit === before ? undefined : slowdown
  }
}
