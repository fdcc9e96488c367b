import type { OpenCrawls } from '../state/state-store.ts'

export interface ShareLimits {
  /** Tasks that wait of one window; with more the reading of its partition would stop (half of what a window takes). */
  readonly maxWaiting: number
  /** With fewer there is room for whoever comes. */
  readonly contested: number
}

export const SHARE_LIMITS: ShareLimits = { maxWaiting: 450, contested: 150 }

export const NONE_OPEN: OpenCrawls = { count: 0, named: [], others: [] }

/** Of a crawl, tasks in a window that it is never asked to leave. */
const LEAST_SHARE = 4

/** What of a window waits in the queues of sites. */
export interface WindowShare {
  readonly waiting: number
  /** Of those, tasks of the crawl in question. */
  readonly own: number
}

/**
 * How the places of a window are shared out among crawls. A window is filled in the order of the log, so a crawl of a great many URLs
 * that came first would hold all of its places, and none of the crawls behind it would be seen, however fairly the sites are asked.
 * So while tasks of other crawls are known to wait somewhere, one that has more than its share here makes room, and reading goes on.
 *
 * Pure. While one crawl is open, or all tasks of the others are here, nothing leaves.
 */
export class CrawlShares {
  readonly #limits: ShareLimits
  #elsewhere: ReadonlySet<string> = new Set()
  #open = NONE_OPEN
  #openOf: ReadonlyMap<string, number> = new Map()
  #share = 0

  constructor(limits: ShareLimits = SHARE_LIMITS) {
    this.#limits = limits
  }

  /** `open`: crawls that are not at their end, all of them or a sample; `hereOf`: tasks of a crawl that this process holds. */
  learn(open: OpenCrawls, hereOf: (crawl: string) => number): void {
    const { maxWaiting, contested } = this.#limits
    const told = [...open.named, ...open.others]
    this.#elsewhere = new Set(told.filter(({ crawlId, open: count }) => count > hereOf(crawlId)).map(({ crawlId }) => crawlId))
    this.#open = open
    this.#openOf = new Map(told.map(({ crawlId, open: count }) => [crawlId, count]))
    this.#share = Math.max(LEAST_SHARE, Math.floor((maxWaiting - contested) / Math.max(1, open.count)))
  }

  /**
   * Starts in all for each start of this crawl, over the time that it takes to end where every crawl has its equal share: one that is
   * far larger than the others is alone for most of that time. At least 1.
   */
  startsPerOwn(crawl: string): number {
    const { count, named, others } = this.#open
    const own = this.#openOf.get(crawl)
    if (own === undefined) return count + 1
    const startsOf = (crawls: OpenCrawls['others']): number => crawls.reduce((all, { open }) => all + Math.min(open, own), 0)
    // The others may be a sample of those that were not named.
    const perTold = others.length === 0 ? 0 : Math.max(1, (count - named.length) / others.length)
    return (startsOf(named) + startsOf(others) * perTold) / own
  }

  /** True where tasks of other crawls than this one wait outside of this process. */
  isWaitedFor(crawl: string): boolean {
    return this.#elsewhere.size > (this.#elsewhere.has(crawl) ? 1 : 0)
  }

  /** A further task of the crawl has no place in the window. */
  isSurplus(crawl: string, { waiting, own }: WindowShare): boolean {
    const { maxWaiting, contested } = this.#limits
    if (waiting < contested || !this.isWaitedFor(crawl)) return false
    return own >= this.#share || waiting >= maxWaiting
  }

  /** How many tasks of the crawl leave a window that is full of them, so that reading goes on. */
  surplusIn(crawl: string, { waiting, own }: WindowShare): number {
    const { maxWaiting, contested } = this.#limits
    if (waiting <= maxWaiting || !this.isWaitedFor(crawl)) return 0
    return Math.max(0, Math.min(own - this.#share, waiting - contested))
  }
}
