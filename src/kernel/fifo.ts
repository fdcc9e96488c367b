/** A queue whose ends cost O(1) amortised; an array's `shift` copies. */
export class Fifo<T> {
  #items: (T | undefined)[] = []
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  unshift(item: T): void {
    if (this.#head > 0) this.#items[--this.#head] = item
    else this.#items.unshift(item)
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head] = undefined
    this.#head += 1
    if (this.#head > 64 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Takes out everything that matches, in order. Cost: O(size). */
  take(matches: (item: T) => boolean): T[] {
    const taken: T[] = []
    const kept: T[] = []
    for (const item of this) (matches(item) ? taken : kept).push(item)
    this.#items = kept
    this.#head = 0
    return taken
  }

  /** Takes out the last one that matches. Cost: O(size). */
  takeLast(matches: (item: T) => boolean): T | undefined {
    const at = this.#items.findLastIndex((item) => item !== undefined && matches(item))
    return at < this.#head ? undefined : this.#items.splice(at, 1)[0]
  }

  *[Symbol.iterator](): Generator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i] as T
  }
}
