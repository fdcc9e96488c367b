import type { Clock } from '../kernel/clock.ts'

/** Longer, and requests that are due leave late; the shorter, the more often the loop has to turn for the same work. */
const SHARE_MS = 3

/**
 * Keeps the event loop quick while many answers come at once: whoever is about to work for a while on this thread (unpack a body, make a
 * message of it) does it here: at once while such work has taken less than its share of this turn of the loop, else in a later turn, first
 * come first served. Without that a turn takes as long as all answers that have come, and every timer and socket waits for it.
 */
export class LoopShare {
  readonly #clock: Pick<Clock, 'mono' | 'nextTurn'>
  readonly #waiting: (() => void)[] = []
  /** Undefined: there was no work in this turn yet. */
  #turnMono: number | undefined
  #isDue = false

  constructor(clock: Pick<Clock, 'mono' | 'nextTurn'>) {
    this.#clock = clock
  }

  /** Shape: what `work` does before it waits for anything is what counts; it is begun in this very moment or in a later turn. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting.length > 0 || !this.#isLeft()) await this.#later()
    return work()
  }

  #later(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#look()
    })
  }

  /** One immediate for all that wait: one each would cost every turn as many. */
  #look(): void {
    if (this.#isDue) return
    this.#isDue = true
    void this.#clock.nextTurn().then(() => this.#serve())
  }

  async #serve(): Promise<void> {
    while (this.#waiting.length > 0 && this.#isLeft()) {
      this.#waiting.shift()?.()
      // What it does before it waits for anything is over then.
      await undefined
    }
    this.#isDue = false
    if (this.#waiting.length > 0) this.#look()
  }

  #isLeft(): boolean {
    const now = this.#clock.mono()
    if (this.#turnMono === undefined) {
      this.#turnMono = now
      void this.#clock.nextTurn().then(() => {
        this.#turnMono = undefined
      })
    }
    return now - this.#turnMono < SHARE_MS
  }
}
