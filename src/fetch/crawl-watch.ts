import type { Clock } from '../kernel/clock.ts'
import type { StateStore } from '../state/state-store.ts'
import { crawlOf } from './crawl-queues.ts'
import { type CrawlShares, SHARE_LIMITS } from './crawl-shares.ts'
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
  readonly clock: Clock
}

/** Share of the old value in the mean of requests at the same time, and in that of starts where there are fewer than before. */
const MEMORY = 0.7
const SLOW_MEMORY = 0.97

/** Asks the store which crawls are open, while some window holds much; and how many tasks start in a second, of how many that may. */
export class CrawlWatch {
  readonly #options: CrawlWatchOptions
  #isLooking = false
  #startRate = 0
  #allowedPerSecond = 0
  #inFlight = 0
  #lastStarts = 0
  #lastMono: number

  constructor(options: CrawlWatchOptions) {
    this.#options = options
    this.#lastMono = options.clock.mono()
  }

  /** Requests that could start in a second if all places were taken, by how long they took in good times; undefined until one has started. */
  get startsPerSecond(): number | undefined {
    if (this.#startRate === 0) return undefined
    const { maxInFlight } = this.#options.scheduler
    return (this.#startRate * maxInFlight) / Math.min(maxInFlight, Math.max(1, this.#inFlight))
  }

  /** How many times more starts the paces of all sites allow than this process could make; below 1 where it could make more. */
  get overload(): number {
    const { startsPerSecond } = this
    return startsPerSecond === undefined ? 0 : this.#allowedPerSecond / startsPerSecond
  }

  /** To be called every second or so. Resolves when the shares are those of now. */
  async look(): Promise<void> {
    this.#measure()
    const { state, gate, scheduler, turns, shares } = this.#options
    if (this.#isLooking) return
    const { counts } = scheduler
    if (![...counts.windows()].some((window) => counts.total(window) >= SHARE_LIMITS.contested)) return shares.learn([], () => 0)
    this.#isLooking = true
    try {
      const open = await gate.run(() => state.openCrawls())
      const out = new Map<string, number>()
      for (const queued of turns) out.set(crawlOf(queued), (out.get(crawlOf(queued)) ?? 0) + 1)
      shares.learn(open, (crawl) => counts.ofCrawl(crawl) + (out.get(crawl) ?? 0))
    } finally {
      this.#isLooking = false
    }
  }

  #measure(): void {
    const { scheduler, clock } = this.#options
    const [now, starts] = [clock.mono(), scheduler.startCount]
    const seconds = (now - this.#lastMono) / 1_000
    if (seconds <= 0) return
    const rate = (starts - this.#lastStarts) / seconds
    // Reading through a backlog takes time from the requests: what was possible before will be possible again.
    this.#startRate = rate > this.#startRate ? rate : this.#startRate * SLOW_MEMORY + rate * (1 - SLOW_MEMORY)
    this.#allowedPerSecond = scheduler.allowedPerSecond
    this.#inFlight = this.#inFlight * MEMORY + scheduler.inFlight * (1 - MEMORY)
    this.#lastMono = now
    this.#lastStarts = starts
  }
}
