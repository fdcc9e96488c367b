import type { PolitenessKey } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'
import { AdaptiveConcurrency } from './adaptive-concurrency.ts'
import type { HttpResult } from './http-exchange.ts'
import type { QueuedTask } from './queued-task.ts'
import { RetryPressure } from './retry-pressure.ts'
import type { Scheduler } from './scheduler.ts'

/** Requests that are under way even where everything is slow, and their share of the configured number. */
const LEAST_FLOOR = 4
const FLOOR_SHARE = 0.1

/** What the requests of a process tell about its load, and what the scheduler is told in turn. */
export class LoadControl {
  readonly #scheduler: Scheduler<QueuedTask>
  readonly #observer: Observer
  readonly #clock: Clock
  readonly #concurrency: AdaptiveConcurrency
  readonly #retries = new RetryPressure()

  constructor(parts: { scheduler: Scheduler<QueuedTask>; maxInFlight: number; observer: Observer; clock: Clock }) {
    this.#scheduler = parts.scheduler
    this.#observer = parts.observer
    this.#clock = parts.clock
    const floor = Math.max(LEAST_FLOOR, parts.maxInFlight * FLOOR_SHARE)
    this.#concurrency = new AdaptiveConcurrency({ max: parts.maxInFlight, floor })
  }

  /** The request of an attempt starts. */
  started(attempt: number): void {
    const now = this.#clock.mono()
    if (!this.#retries.started(attempt, now)) return
    const { dominates } = this.#retries
    this.#scheduler.holdLow(dominates)
    if (dominates) this.#observer.emit('LowLaneHeld', { share: Math.round(this.#retries.share(now) * 100) / 100 })
    else this.#observer.emit('LowLaneReleased')
  }

  answered(key: PolitenessKey, result: HttpResult): void {
    const ms = timeOf(result)
    if (ms === undefined) return
    const slowdown = this.#concurrency.answered(key, ms, this.#clock.mono())
    if (slowdown === undefined) return
    const { limit } = this.#concurrency
    this.#scheduler.setMaxInFlight(limit)
    this.#observer.emit('ConcurrencyAdapted', { limit, slowdown: Math.round(slowdown * 10) / 10 })
  }
}

/** Until the site began to answer, without making the connection; undefined where it says nothing about the load. */
function timeOf(result: HttpResult): number | undefined {
  if (result.kind === 'response') return result.ttfbMs - result.connectMs
  return result.reason === 'headers-timeout' || result.reason === 'total-timeout' ? result.totalMs : undefined
}
