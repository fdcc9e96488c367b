import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'

/**
 * How long a broker that lives may take to answer. One that was killed reads the last segment of each partition through before that, and
 * stopping it would only have it begin again; an image of some 400 MB may have to be pulled; one that can't start ends by itself.
 */
export const START_MS = 600_000
const TELL_EVERY_MS = 15_000

/** The wait for a broker that starts: whoever waits is told now and then that it still does. */
export class SlowStart {
  readonly #options: { readonly clock: Clock; readonly observer: Observer }
  readonly #folder: string
  readonly #begunMono: number
  #tellAtMs = TELL_EVERY_MS

  constructor(folder: string, options: { readonly clock: Clock; readonly observer: Observer }) {
    this.#folder = folder
    this.#options = options
    this.#begunMono = options.clock.mono()
  }

  /** Call it with every look. Shape: false when it has taken longer than any start may. */
  mayGoOn(): boolean {
    const takenMs = this.#options.clock.mono() - this.#begunMono
    if (takenMs >= this.#tellAtMs) {
      this.#tellAtMs = takenMs + TELL_EVERY_MS
      this.#options.observer.emit('BrokerStartSlow', { folder: this.#folder, seconds: Math.round(takenMs / 1000) })
    }
    return takenMs < START_MS
  }
}
