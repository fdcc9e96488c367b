/** So many bodies are read on however full it is, or none would ever end; a slow site has one of them and not all. */
const READ_ON = 4

/**
 * Room for the bodies that are being received. What a body will bring nobody knows before it is there: when the bound on bytes in memory
 * is reached, those that have had more than was expected stop where they are, and their servers wait, until others are done.
 */
export class BodyRoom {
  readonly #isFull: () => boolean
  readonly #readOn = new Set<object>()
  readonly #waiting = new Map<object, () => void>()

  constructor(isFull: () => boolean) {
    this.#isFull = isFull
  }

  /** For one that has had more than was expected. Shape: undefined where it goes on at once. */
  wait(body: object): Promise<void> | undefined {
    if (this.#mayReadOn(body)) return undefined
    return new Promise((resolve) => this.#waiting.set(body, resolve))
  }

  /** It is there, or will not come: the first that waits goes on, and the others for as long as there is room. */
  leave(body: object): void {
    this.#waiting.get(body)?.()
    this.#waiting.delete(body)
    this.#readOn.delete(body)
    for (const [next, goOn] of this.#waiting) {
      if (!this.#mayReadOn(next)) return
      this.#waiting.delete(next)
      goOn()
    }
  }

  #mayReadOn(body: object): boolean {
    if (!this.#isFull() || this.#readOn.has(body)) return true
    if (this.#readOn.size >= READ_ON) return false
    this.#readOn.add(body)
    return true
  }
}
