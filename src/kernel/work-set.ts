import { unlessAborted } from './abort.ts'

/** Pieces of work under way that nobody awaits one by one: what one fails by is told, and whoever ends waits for all. */
export class WorkSet {
  readonly #working = new Set<Promise<void>>()
  readonly #onFailure: (error: unknown) => void

  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure
  }

  run(piece: () => Promise<void>): void {
    const work = piece()
      .catch((error: unknown) => this.#onFailure(error))
      .finally(() => this.#working.delete(work))
    this.#working.add(work)
  }

  /** Resolves when nothing is under way, what began meanwhile included, or the signal comes: what is left then goes on. */
  async settled(signal?: AbortSignal): Promise<void> {
    if (signal === undefined) return this.#allDone()
    // No piece rejects, so what is thrown is the reason of the signal.
    await unlessAborted(signal, () => this.#allDone()).catch(() => undefined)
  }

  async #allDone(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working)
  }
}
