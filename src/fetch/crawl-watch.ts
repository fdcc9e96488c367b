import type { StateStore } from '../state/state-store.ts'
import { crawlOf } from './crawl-queues.ts'
import { type CrawlShares, NONE_OPEN, SHARE_LIMITS } from './crawl-shares.ts'
import type { QueuedTask } from './queued-task.ts'
import type { Scheduler } from './scheduler.ts'
import type { StoreGate } from './store-gate.ts'

export interface CrawlWatchOptions {
  readonly state: Pick<StateStore, 'openCrawls'>
  readonly gate: Pick<StoreGate, 'run'>
  readonly scheduler: Scheduler<QueuedTask>
  /** Tasks that have left the queues and are not at their end. */
  readonly turns: Iterable<QueuedTask>
  readonly shares: CrawlShares
}

/** Only a crawl with many tasks here can have too many. */
const NAMED = 256
/** Of those that are elsewhere a sample tells as much: a deployment may have a hundred thousand. */
const OTHERS = 256

/** Asks the store which crawls are open, while some window holds much. */
export class CrawlWatch {
  readonly #options: CrawlWatchOptions
  #isLooking = false

  constructor(options: CrawlWatchOptions) {
    this.#options = options
  }

  /** To be called every second or so. Resolves when the shares are those of now. */
  async look(): Promise<void> {
    const { state, gate, scheduler, turns, shares } = this.#options
    if (this.#isLooking) return
    const { counts } = scheduler
    if (![...counts.windows()].some((window) => counts.total(window) >= SHARE_LIMITS.contested)) return shares.learn(NONE_OPEN, () => 0)
    this.#isLooking = true
    try {
      const named = counts.largestCrawls(NAMED)
      const open = await gate.run(() => state.openCrawls(named, OTHERS))
      const out = new Map<string, number>()
      for (const queued of turns) out.set(crawlOf(queued), (out.get(crawlOf(queued)) ?? 0) + 1)
      shares.learn(open, (crawl) => counts.ofCrawl(crawl) + (out.get(crawl) ?? 0))
    } finally {
      this.#isLooking = false
    }
  }
}
