/**
 * Remembers at least the last `least` texts that it was given, and at most twice as many: the older half goes at once, since a set of
 * JavaScript that loses its first entry one by one is searched from the beginning each time.
 */
export class RecentSet {
  readonly #least: number
  #now = new Set<string>()
  #before = new Set<string>()

  constructor(least: number) {
    this.#least = least
  }

  get size(): number {
    return this.#now.size + this.#before.size
  }

  has(text: string): boolean {
    return this.#now.has(text) || this.#before.has(text)
  }

  /** False: it is remembered already, and now as the latest. */
  add(text: string): boolean {
    if (this.#now.has(text)) return false
    const isNew = !this.#before.delete(text)
    if (this.#now.size >= this.#least) {
      this.#before = this.#now
      this.#now = new Set()
    }
    this.#now.add(text)
    return isNew
  }
}
