import type { Clock } from '../kernel/clock.ts'

/**
 * The rate cap of a replay: pages take the next moment, one after the other. Moments that were given back are taken again, so that a
 * replay which gives way to live pages before each of its own is not put off for ever.
 */
export class RatePace {
  readonly #clock: Clock
  #nextMono = 0
  /** Moments that nobody uses; others behind them are still held. */
  #givenBack: number[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Waits for the next moment. Shape: `rate` in pages per second, undefined: no cap; false where the signal came first. Errors: none.
   */
  async next(rate: number | undefined, giveBack: AbortSignal): Promise<boolean> {
    if (rate === undefined) return true
    const now = this.#clock.mono()
    const at = this.#take(now, 1000 / rate)
    if (at <= now || (await this.#isReached(at - now, giveBack))) return true
    this.#givenBack.push(at)
    return false
  }

  #take(now: number, intervalMs: number): number {
    const ahead = this.#givenBack.filter((at) => at > now)
    const hasOnePassed = ahead.length < this.#givenBack.length
    this.#givenBack = ahead
    // Of those that have passed by one is used, and the rest with it: they are no reason to hurry.
    if (hasOnePassed) return now
    const first = Math.min(...ahead)
    if (first < this.#nextMono) {
      this.#givenBack.splice(ahead.indexOf(first), 1)
      return first
    }
    const at = Math.max(now, this.#nextMono)
    this.#nextMono = at + intervalMs
    return at
  }

  #isReached(ms: number, giveBack: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isReached: boolean): void => {
        disarm()
        giveBack.removeEventListener('abort', onAbort)
        resolve(isReached)
      }
      const onAbort = (): void => end(false)
      const disarm = this.#clock.timer(ms, () => end(true))
      if (giveBack.aborted) onAbort()
      else giveBack.addEventListener('abort', onAbort, { once: true })
    })
  }
}
