import type { Clock } from '../kernel/clock.ts'

/** So long at most a timer stands still, all pauses together: a lease has to outlive what it times. */
export const MOST_PAUSED_MS = 30_000

/** A timer that can stand still: only the time counts in which it runs. */
export class PausedTimer {
  readonly #clock: Clock
  readonly #run: () => void
  #leftMs: number
  #leftPausedMs = MOST_PAUSED_MS
  #since = 0
  #state: 'running' | 'paused' | 'stopped' = 'running'
  #disarm = (): void => undefined

  constructor(clock: Clock, ms: number, run: () => void) {
    this.#clock = clock
    this.#leftMs = ms
    this.#run = run
    this.#arm()
  }

  pause(): void {
    if (this.#state !== 'running' || this.#leftPausedMs <= 0) return
    this.#disarm()
    this.#leftMs -= this.#clock.mono() - this.#since
    this.#state = 'paused'
    this.#since = this.#clock.mono()
    this.#disarm = this.#clock.timer(this.#leftPausedMs, () => this.resume())
  }

  resume(): void {
    if (this.#state !== 'paused') return
    this.#disarm()
    this.#leftPausedMs -= this.#clock.mono() - this.#since
    this.#arm()
  }

  stop(): void {
    this.#disarm()
    this.#state = 'stopped'
  }

  #arm(): void {
    this.#state = 'running'
    this.#since = this.#clock.mono()
    this.#disarm = this.#clock.timer(this.#leftMs, this.#run)
  }
}
