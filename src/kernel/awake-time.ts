import { type Clock, repeated } from './clock.ts'

const LOOK_MS = 1_000
/**
 * More than this between two looks: the process stood still (stopped, frozen, its machine asleep), and nothing of what it waited for could
 * come.
 */
const STOOD_STILL_MS = 5_000

/**
 * Monotonic time in which this process ran, for budgets that end something: whoever wakes finds its timers overdue before it has read
 * what came meanwhile, and would take its own standstill for the silence of another. A standstill counts as one look.
 */
export class AwakeTime {
  readonly #clock: Clock
  #lastMono: number
  #awakeMs = 0
  /** Undefined before the first question: one who never asks leaves no timer. */
  #endLooks: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.#lastMono = clock.mono()
  }

  /** Milliseconds since it was made. */
  ms(): number {
    this.#endLooks ??= repeated(this.#clock, LOOK_MS, () => this.ms(), { unref: true })
    const now = this.#clock.mono()
    const passedMs = now - this.#lastMono
    this.#lastMono = now
    this.#awakeMs += passedMs > STOOD_STILL_MS ? LOOK_MS : passedMs
    return this.#awakeMs
  }

  stop(): void {
    this.#endLooks?.()
  }
}
