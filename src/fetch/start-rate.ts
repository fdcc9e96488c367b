import type { Clock } from '../kernel/clock.ts'
import type { QueuedTask } from './queued-task.ts'
import type { Scheduler } from './scheduler.ts'

export interface StartRateOptions {
  readonly scheduler: Pick<Scheduler<QueuedTask>, 'startCount' | 'inFlight' | 'maxInFlight' | 'allowedPerSecond'>
  readonly clock: Pick<Clock, 'mono'>
}

/** Share of the old value in the mean of requests at the same time, and in that of starts where there are fewer than before. */
const MEMORY = 0.7
const SLOW_MEMORY = 0.97
/** Measurements before anything is called too much. */
const LEAST_MEASURED = 5
/**
 * Slots of tasks that are put aside lie apart by this, and no later moment takes them back: a process that has seen bad minutes must not
 * send what comes next years ahead. What comes back too soon leaves once more.
 */
const MOST_OVERLOAD = 100

/** How many requests this process can start in a second, as measured; and whether that is enough for the paces of its sites. */
export class StartRate {
  readonly #options: StartRateOptions
  #perSecond = 0
  #measured = 0
  #inFlight = 0
  /** As of the last measurement: to count it means to go through all sites, and it is asked for with every task that is put aside. */
  #allowedPerSecond = 0
  #lastStarts: number
  #lastMono: number

  constructor(options: StartRateOptions) {
    this.#options = options
    this.#lastStarts = options.scheduler.startCount
    this.#lastMono = options.clock.mono()
  }

  /**
   * Requests that could start in a second if all places were taken, by how long they took in good times; undefined until one has started.
   */
  get startsPerSecond(): number | undefined {
    if (this.#perSecond === 0) return undefined
    const { maxInFlight } = this.#options.scheduler
    return (this.#perSecond * maxInFlight) / Math.min(maxInFlight, Math.max(1, this.#inFlight))
  }

  /**
   * How many times more starts the paces of all sites allow than this process could make, 100 at most; below 1 where it could make more,
   * and 0 in the first seconds: a process that begins has all its code to compile, and connections to make.
   */
  get overload(): number {
    const { startsPerSecond } = this
    return startsPerSecond === undefined || this.#measured < LEAST_MEASURED
      ? 0
      : Math.min(MOST_OVERLOAD, this.#allowedPerSecond / startsPerSecond)
  }

  /** To be called every second or so, while nothing but this process and its sites decides what starts. */
  measure(): void {
    const { scheduler, clock } = this.#options
    const starts = scheduler.startCount - this.#lastStarts
    const seconds = (clock.mono() - this.#lastMono) / 1_000
    if (seconds <= 0) return
    this.skip()
    this.#allowedPerSecond = scheduler.allowedPerSecond
    // A process that had nothing to do could have done as much as before.
    if (starts === 0 && scheduler.inFlight === 0) return
    const rate = starts / seconds
    if (starts > 0 || this.#perSecond > 0) this.#measured += 1
    this.#inFlight = this.#perSecond === 0 ? scheduler.inFlight : this.#inFlight * MEMORY + scheduler.inFlight * (1 - MEMORY)
    // Reading through a backlog takes time from the requests: what was possible before will be possible again.
    this.#perSecond = rate > this.#perSecond ? rate : this.#perSecond * SLOW_MEMORY + rate * (1 - SLOW_MEMORY)
  }

  /** The same while all starts are held up: what did not start since the last call says nothing of what could have. */
  skip(): void {
    this.#lastMono = this.#options.clock.mono()
    this.#lastStarts = this.#options.scheduler.startCount
  }
}
