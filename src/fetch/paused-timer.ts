import type { Clock } from '../kernel/clock.ts'

/** A timer that can stand still: only the time counts in which it runs. */
export class PausedTimer {
  readonly #clock: Clock
  readonly #run: () => void
  #leftMs: number
  #armedMono = 0
  #disarm: (() => void) | undefined

  constructor(clock: Clock, ms: number, run: () => void) {
    this.#clock = clock
    this.#leftMs = ms
    this.#run = run
    this.resume()
  }

  pause(): void {
    if (this.#disarm === undefined) return
    this.stop()
    this.#leftMs -= this.#clock.mono() - this.#armedMono
  }

  resume(): void {
    if (this.#disarm !== undefined) return
    this.#armedMono = this.#clock.mono()
    this.#disarm = this.#clock.timer(this.#leftMs, this.#run)
  }

  stop(): void {
    this.#disarm?.()
    this.#disarm = undefined
  }
}
