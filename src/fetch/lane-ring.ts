import type { PolitenessKey } from '../kernel/brand.ts'
import { Fifo } from '../kernel/fifo.ts'
import { TimeHeap } from '../kernel/time-heap.ts'

export interface Offer {
  readonly key: PolitenessKey
  readonly crawl: string
}

interface Crawl {
  readonly name: string
  readonly keys: Fifo<PolitenessKey>
  /** Turns that it has had, as if it had been there from the beginning. */
  pass: number
  /** The pass under which it stands in the order; undefined while it has no offer. */
  listedAs: number | undefined
}

/** From so many crawls on, those without an offer are looked through for what can be forgotten. */
const MANY_CRAWLS = 1_024

/**
 * Sites with a task in one lane: crawls take turns, and within a crawl its sites do. An offer may have gone stale when its turn comes;
 * the scheduler checks it, and one that is stale costs its crawl no turn: the crawl is first when it has an offer again.
 *
 * Guarantee: of crawls that always have a fresh offer, none is ahead of another by more than two turns.
 */
export class LaneRing {
  readonly #crawls = new Map<string, Crawl>()
  readonly #order = new TimeHeap<{ readonly crawl: Crawl; readonly pass: number }>()
  #listed = 0
  /** Pass of the crawl that was served last: who comes anew starts here, and can't have saved up turns. */
  #virtual = 0

  get isEmpty(): boolean {
    return this.#listed === 0
  }

  offer({ key, crawl: name }: Offer): void {
    const crawl = this.#crawlOf(name)
    crawl.keys.push(key)
    if (crawl.listedAs !== undefined) return
    this.#listed += 1
    crawl.pass = Math.max(crawl.pass, this.#virtual)
    this.#list(crawl)
  }

  /** Takes the offer whose turn it is: the first that `isFresh` says yes to; those it says no to are dropped. */
  take(isFresh: (offer: Offer) => boolean): Offer | undefined {
    for (
      let entry = this.#order.popDue(Number.POSITIVE_INFINITY);
      entry !== undefined;
      entry = this.#order.popDue(Number.POSITIVE_INFINITY)
    ) {
      const { crawl, pass } = entry
      if (crawl.listedAs !== pass) continue
      const key = firstFresh(crawl, isFresh)
      if (key !== undefined) {
        this.#virtual = Math.max(this.#virtual, pass)
        crawl.pass = pass + 1
      }
      // What was stale may have been offered again meanwhile.
      if (crawl.keys.size > 0) this.#list(crawl)
      else this.#unlist(crawl)
      if (key !== undefined) return { key, crawl: crawl.name }
    }
    return undefined
  }

  /** The turn came to nothing. */
  refund(name: string): void {
    this.#move(name, -1)
  }

  /** A turn was taken beside the order. */
  charge(name: string): void {
    this.#move(name, 1)
  }

  #move(name: string, by: 1 | -1): void {
    const crawl = this.#crawlOf(name)
    crawl.pass += by
    if (crawl.listedAs !== undefined) this.#list(crawl)
  }

  #list(crawl: Crawl): void {
    crawl.listedAs = crawl.pass
    this.#order.push(crawl.pass, { crawl, pass: crawl.pass })
  }

  #unlist(crawl: Crawl): void {
    crawl.listedAs = undefined
    this.#listed -= 1
    // Whoever is not ahead starts as one that was never here.
    if (crawl.pass <= this.#virtual) this.#crawls.delete(crawl.name)
    if (this.#crawls.size < MANY_CRAWLS) return
    for (const { name, pass, listedAs } of this.#crawls.values()) {
      if (listedAs === undefined && pass <= this.#virtual) this.#crawls.delete(name)
    }
  }

  #crawlOf(name: string): Crawl {
    let crawl = this.#crawls.get(name)
    if (crawl === undefined) {
      crawl = { name, keys: new Fifo(), pass: this.#virtual, listedAs: undefined }
      this.#crawls.set(name, crawl)
    }
    return crawl
  }
}

function firstFresh({ keys, name }: Crawl, isFresh: (offer: Offer) => boolean): PolitenessKey | undefined {
  // Not those that are offered again while this goes on, or it would never end.
  for (let left = keys.size; left > 0; left -= 1) {
    const key = keys.shift()
    if (key !== undefined && isFresh({ key, crawl: name })) return key
  }
  return undefined
}
