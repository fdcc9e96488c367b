interface Entry<T> {
  readonly at: number
  /** Order of adding decides between equal times. */
  readonly sequence: number
  readonly value: T
}

/**
 * Values by time, earliest first; equal times in the order they were added. Nothing is taken out of the middle: callers check what they
 * pop.
 */
export class TimeHeap<T> {
  readonly #entries: Entry<T>[] = []
  #sequence = 0

  get size(): number {
    return this.#entries.length
  }

  /** Earliest time; undefined when empty. */
  get nextAt(): number | undefined {
    return this.#entries[0]?.at
  }

  push(at: number, value: T): void {
    const entry: Entry<T> = { at, sequence: this.#sequence++, value }
    let index = this.#entries.push(entry) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!this.#before(index, parent)) break
      this.#swap(index, parent)
      index = parent
    }
  }

  /** The earliest value, where its time has come. */
  popDue(now: number): T | undefined {
    const [first] = this.#entries
    if (first === undefined || first.at > now) return undefined
    const last = this.#entries.pop()
    if (last !== undefined && this.#entries.length > 0) {
      this.#entries[0] = last
      this.#sink()
    }
    return first.value
  }

  #sink(): void {
    let index = 0
    for (;;) {
      let least = index
      for (const child of [index * 2 + 1, index * 2 + 2]) {
        if (child < this.#entries.length && this.#before(child, least)) least = child
      }
      if (least === index) return
      this.#swap(index, least)
      index = least
    }
  }

  #before(a: number, b: number): boolean {
    const left = this.#entries[a]
    const right = this.#entries[b]
    if (left === undefined || right === undefined) return false
    return left.at < right.at || (left.at === right.at && left.sequence < right.sequence)
  }

  #swap(a: number, b: number): void {
    const left = this.#entries[a]
    const right = this.#entries[b]
    if (left === undefined || right === undefined) return
    this.#entries[a] = right
    this.#entries[b] = left
  }
}
