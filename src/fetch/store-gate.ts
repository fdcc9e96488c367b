import { retried } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText, isMillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'

export interface StoreGateOptions {
  readonly clock: Clock
  readonly observer: Observer
  /** Ends all waiting. */
  readonly signal: AbortSignal
  /** The store answers again. */
  readonly onBack?: () => void
  readonly random?: () => number
}

const RETRY = { firstMs: 100, maxMs: 1_000 } as const

/**
 * Calls to the state store that wait while it is away: nothing is guessed, nothing is given up. While one call waits the gate is
 * closed, and the stage starts no request; the call that waits is also what finds the store again.
 */
export class StoreGate {
  readonly #options: StoreGateOptions
  #isAway = false

  constructor(options: StoreGateOptions) {
    this.#options = options
  }

  get isAway(): boolean {
    return this.#isAway
  }

  /**
   * Repeats `step`, which must be safe to repeat, until the store answers. Errors: those of the step other than STATE_UNAVAILABLE; the
   * signal's reason.
   */
  async run<T>(step: () => Promise<T>): Promise<T> {
    const { clock, signal, random } = this.#options
    const result = await retried(step, { policy: RETRY, again: (error) => this.#isAwayBy(error), clock, signal, random })
    this.#back()
    return result
  }

  #isAwayBy(error: unknown): boolean {
    if (!isMillraceError(error, 'STATE_UNAVAILABLE')) return false
    if (!this.#isAway) this.#options.observer.emit('StorePaused', { text: errorText(error) })
    this.#isAway = true
    return true
  }

  #back(): void {
    if (!this.#isAway) return
    this.#isAway = false
    this.#options.observer.emit('StoreResumed')
    this.#options.onBack?.()
  }
}
