import { RecentMap } from './recent-map.ts'

/** Remembers at least the last `least` texts that it was given, and at most twice as many. */
export class RecentSet {
  readonly #texts: RecentMap<string, true>

  constructor(least: number) {
    this.#texts = new RecentMap(least)
  }

  get size(): number {
    return this.#texts.size
  }

  has(text: string): boolean {
    return this.#texts.has(text)
  }

  /** False: it is remembered already, and now among the latest. */
  add(text: string): boolean {
    const isNew = !this.#texts.has(text)
    this.#texts.set(text, true)
    return isNew
  }
}
