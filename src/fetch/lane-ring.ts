import type { PolitenessKey } from '../kernel/brand.ts'
import { Fifo } from './fifo.ts'

export interface Offer {
  readonly key: PolitenessKey
  readonly crawl: string
}

/**
 * Sites with a task in one lane: crawls take turns, and within a crawl its sites do. An offer may have gone stale when its turn comes;
 * the scheduler checks it, and one that is stale costs its crawl no turn.
 */
export class LaneRing {
  readonly #crawls = new Map<string, Fifo<PolitenessKey>>()
  readonly #order = new Fifo<string>()

  get isEmpty(): boolean {
    return this.#order.size === 0
  }

  offer({ key, crawl }: Offer): void {
    let keys = this.#crawls.get(crawl)
    if (keys === undefined) {
      keys = new Fifo()
      this.#crawls.set(crawl, keys)
      this.#order.push(crawl)
    }
    keys.push(key)
  }

  /** Takes the offer whose turn it is: the first that `isFresh` says yes to; those it says no to are dropped. */
  take(isFresh: (offer: Offer) => boolean): Offer | undefined {
    for (let crawl = this.#order.shift(); crawl !== undefined; crawl = this.#order.shift()) {
      const keys = this.#crawls.get(crawl)
      const found = keys === undefined ? undefined : firstFresh(keys, crawl, isFresh)
      if (keys === undefined || keys.size === 0) this.#crawls.delete(crawl)
      else this.#order.push(crawl)
      if (found !== undefined) return { key: found, crawl }
    }
    return undefined
  }
}

function firstFresh(keys: Fifo<PolitenessKey>, crawl: string, isFresh: (offer: Offer) => boolean): PolitenessKey | undefined {
  for (let key = keys.shift(); key !== undefined; key = keys.shift()) {
    if (isFresh({ key, crawl })) return key
  }
  return undefined
}
