/**
 * Remembers at least the last `least` entries that were set, and at most twice as many: the older half goes at once, since a map of
 * JavaScript that loses its first entry one by one is searched from the beginning each time.
 */
export class RecentMap<K, V> {
  readonly #least: number
  #now = new Map<K, V>()
  #before = new Map<K, V>()

  constructor(least: number) {
    this.#least = least
  }

  get size(): number {
    return this.#now.size + this.#before.size
  }

  has(key: K): boolean {
    return this.#now.has(key) || this.#before.has(key)
  }

  get(key: K): V | undefined {
    return (this.#now.has(key) ? this.#now : this.#before).get(key)
  }

  /** It is among the latest now. */
  set(key: K, value: V): void {
    this.#before.delete(key)
    if (this.#now.size >= this.#least && !this.#now.has(key)) {
      this.#before = this.#now
      this.#now = new Map()
    }
    this.#now.set(key, value)
  }

  delete(key: K): void {
    this.#now.delete(key)
    this.#before.delete(key)
  }

  *[Symbol.iterator](): Generator<[K, V]> {
    yield* this.#before
    yield* this.#now
  }
}
