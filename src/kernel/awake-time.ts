import { type Clock, repeated } from './clock.ts'

const LOOK_MS = 1_000
/** More than this between two looks: the process stood still (stopped, frozen, its machine asleep), and nothing of what it waited for could come. */
const STOOD_STILL_MS = 5_000

/**
 * Monotonic time in which this process ran, for budgets that end something: whoever wakes finds its timers overdue before it has read
 * what came meanwhile, and would take its own standstill for the silence of another. A standstill counts as one look.
 */
export class AwakeTime {
  readonly #clock: Clock
  #lastMono: number
  #awakeMs = 0
  readonly #endLooks: () => void

  constructor(clock: Clock) {
    this.#clock = clock
    this.#lastMono = clock.mono()
    this.#endLooks = repeated(clock, LOOK_MS, () => this.ms(), { unref: true })
  }

  /** Milliseconds since it was made. */
  ms(): number {
    const now = this.#clock.mono()
    const passedMs = now - this.#lastMono
    this.#lastMono = now
    this.#awakeMs += passedMs > STOOD_STILL_MS ? LOOK_MS : passedMs
    return this.#awakeMs
  }

  stop(): void {
    this.#endLooks()
  }
}
