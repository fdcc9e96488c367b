import type { Clock } from '../kernel/clock.ts'
import type { HoldReason } from './fetch-view.ts'
import type { Scheduler } from './scheduler.ts'
import type { SiteTask } from './site-task.ts'
import type { StoreGate } from './store-gate.ts'

export interface TurnStarterOptions<T extends SiteTask> {
  readonly scheduler: Scheduler<T>
  readonly gate: Pick<StoreGate, 'isAway'>
  /** Its turn has come. */
  readonly start: (task: T) => void
  /** Ends all starts, with what is under way. */
  readonly signal: AbortSignal
  readonly clock: Clock
}

/**
 * Starts whose turn it is, as long as nothing holds all of them up: a store that is away, or a disk that runs full (`hold`). The two are
 * apart: while either lasts nothing starts, and the end of one does not end the other. Driven by events, and owns one timer for all sites.
 */
export class TurnStarter<T extends SiteTask> {
  readonly #options: TurnStarterOptions<T>
  #isHeld = false
  #isClosed = false
  #isDue = false
  #disarm: (() => void) | undefined

  constructor(options: TurnStarterOptions<T>) {
    this.#options = options
  }

  /** What holds up all starts; null: nothing. */
  get stalledBy(): HoldReason | null {
    if (this.#options.gate.isAway) return 'state-store'
    return this.#isHeld ? 'disk' : null
  }

  /** The disk runs full: nothing starts until `release`. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.resume()
  }

  /** Something that held up all starts is over; they go on if it was the last. */
  resume(): void {
    if (this.stalledBy !== null) return
    // Nothing that sites waited through the pause for is their own pace.
    this.#options.scheduler.resumed()
    this.soon()
  }

  /** Something came, ended or changed: looks once for all that is told in this turn of the event loop. */
  soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    queueMicrotask(() => {
      this.#isDue = false
      this.#look()
    })
  }

  /** Starts nothing any more. */
  close(): void {
    this.#isClosed = true
    this.#disarm?.()
    this.#disarm = undefined
  }

  /** Starts what may start; the one timer then waits for the site that is next. */
  #look(): void {
    const { scheduler, clock, start, signal } = this.#options
    this.#disarm?.()
    this.#disarm = undefined
    while (!this.#isClosed && this.stalledBy === null && !signal.aborted) {
      const next = scheduler.next(clock.mono())
      if (next.kind === 'start') {
        start(next.task)
        continue
      }
      if (next.kind === 'wait') this.#disarm = clock.timer(Math.ceil(next.ms), () => this.#look())
      return
    }
  }
}
