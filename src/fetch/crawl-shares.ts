import type { OpenCrawl } from '../state/state-store.ts'

export interface ShareLimits {
  /** Tasks that wait of one window; with more the reading of its partition would stop (half of what a window takes). */
  readonly maxWaiting: number
  /** With fewer there is room for whoever comes. */
  readonly contested: number
}

export const SHARE_LIMITS: ShareLimits = { maxWaiting: 450, contested: 150 }

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
  #open: ReadonlyMap<string, number> = new Map()
  #share = 0

  constructor(limits: ShareLimits = SHARE_LIMITS) {
    this.#limits = limits
  }

  /** `open`: crawls that are not at their end; `hereOf`: tasks of a crawl that this process holds. */
  learn(open: readonly OpenCrawl[], hereOf: (crawl: string) => number): void {
    const { maxWaiting, contested } = this.#limits
    this.#elsewhere = new Set(open.filter(({ crawlId, open: count }) => count > hereOf(crawlId)).map(({ crawlId }) => crawlId))
    this.#open = new Map(open.map(({ crawlId, open: count }) => [crawlId, count]))
    this.#share = Math.max(LEAST_SHARE, Math.floor((maxWaiting - contested) / Math.max(1, open.length)))
  }

  /**
   * Starts in all for each start of this crawl, over the time that it takes to end where every crawl has its equal share: one that is
   * far larger than the others is alone for most of that time. At least 1.
   */
  startsPerOwn(crawl: string): number {
    const own = this.#open.get(crawl)
    if (own === undefined) return this.#open.size + 1
    let all = 0
    for (const count of this.#open.values()) all += Math.min(count, own)
    return all / own
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
