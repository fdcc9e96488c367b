import type { Clock } from '../../src/kernel/clock.ts'

/** A clock that stands still until a test moves it. All times begin at 0 and move together. */
export class ManualClock implements Clock {
  #nowMs = 0
  #timers: { readonly atMs: number; readonly run: () => void }[] = []

  now(): number {
    return this.#nowMs
  }

  mono(): number {
    return this.#nowMs
  }

  machineMono(): number {
    return this.#nowMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      const onAbort = (): void => {
        disarm()
        reject(signal?.reason)
      }
      const disarm = this.timer(ms, () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      })
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** Time passes by itself alone. */
  nextTurn(): Promise<void> {
    return this.sleep(1)
  }

  timer(ms: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, ms), run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer)
    }
  }

  /** Timers that are armed now. */
  get armedCount(): number {
    return this.#timers.length
  }

  /** When the next timer is due; undefined where none is armed. */
  get nextAtMs(): number | undefined {
    return this.#timers.map(({ atMs }) => atMs).sort((a, b) => a - b)[0]
  }

  /** The process is stopped for so long: nothing happens meanwhile, and all that was due then happens when it is over. */
  async standStill(ms: number): Promise<void> {
    await settled()
    this.#nowMs += ms
    await this.advance(0)
  }

  /** Moves the time and fires what is due, in order; what promises do in between happens before the next timer. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    for (;;) {
      await settled()
      const next = this.#timers.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      this.#timers = this.#timers.filter((each) => each !== next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.run()
    }
    this.#nowMs = endMs
    await settled()
  }
}

/** Lets everything happen that needs no time. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
