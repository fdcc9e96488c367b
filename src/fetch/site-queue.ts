import type { PartitionId, PolitenessKey } from '../kernel/brand.ts'
import type { Lane } from '../message/generated/types.ts'
import { LANES } from '../message/topics.ts'
import { CrawlQueues, crawlOf } from './crawl-queues.ts'
import type { SiteTask } from './site-task.ts'
import { moveCount } from './window-counts.ts'

export type LaneWeights = Readonly<Record<Lane, number>>

/** Share of an old value in the mean of start intervals. */
const INTERVAL_MEMORY = 0.7

/**
 * What waits for one site in this process: queues per lane and crawl, what is in flight, and when the next request may be asked for.
 *
 * One task at a time is *probing*: taken out, asking robots and the limiter. While it does, no other of the site starts, so that tasks
 * of a lane and crawl start in the order in which they came, whatever the limiter answers. Time is an argument; nothing waits here.
 */
export class SiteQueue<T extends SiteTask> {
  readonly key: PolitenessKey
  /** Requests that the pace of the site allows at the same time. */
  concurrency = 1
  /** Between two starts as the pace of the site allows it, its robots.txt included; ms. 0 until it is known. */
  paceIntervalMs = 0
  probing = false
  inFlight = 0
  /** What the limiter said when it last said wait; undefined: it never did. */
  waitReason: string | undefined
  /** Monotonic ms before which nothing of the site starts. */
  wakeAt = 0
  /** Time at which the scheduler's heap holds the site; so each wait is held once. */
  sleepingUntil = 0
  /** Lane and crawl of each offer with which the site stands in the rings of the scheduler. */
  readonly offered = new Set<string>()
  readonly #lanes: Readonly<Record<Lane, CrawlQueues<T>>> = { high: new CrawlQueues(), normal: new CrawlQueues(), low: new CrawlQueues() }
  readonly #aside = new Set<T>()
  readonly #held = new Map<PartitionId, number>()
  readonly #crawls = new Map<string, number>()
  readonly #passes: Record<Lane, number> = { high: 0, normal: 0, low: 0 }
  #virtual = 0
  #lastStartAt: number | undefined
  /** When the task that is out could have been taken, as far as the site is concerned. */
  #readyAt = 0
  /** When a place of the site was last given back. */
  #freedAt = 0
  #interval = 0
  #ownInterval = 0
  #slotsFrom = 0

  constructor(key: PolitenessKey) {
    this.key = key
  }

  get size(): number {
    return this.#lanes.high.size + this.#lanes.normal.size + this.#lanes.low.size
  }

  /** Nothing waits and nothing is out: the queue can be forgotten. */
  get isIdle(): boolean {
    return !this.probing && this.inFlight === 0 && this.size === 0 && this.#aside.size === 0
  }

  /** Mean time between starts while others waited, ms; 0 where it was never seen. */
  get observedIntervalMs(): number {
    return this.#interval
  }

  /**
   * The part of that mean for which the site itself was the reason: its pace, its closures, requests that take long. The rest is time in
   * which it could have been asked and this process had no place, or other things to do.
   */
  get ownIntervalMs(): number {
    return this.#ownInterval
  }

  isReady(now: number): boolean {
    return !this.probing && this.inFlight < this.concurrency && this.wakeAt <= now
  }

  /** Crawls with tasks in the lane, in the order of their turns. */
  crawls(lane: Lane): IterableIterator<string> {
    return this.#lanes[lane].crawls()
  }

  has(lane: Lane, crawl: string): boolean {
    return this.#lanes[lane].has(crawl)
  }

  /** Crawls with tasks that wait here. */
  get crawlCount(): number {
    return this.#crawls.size
  }

  /** Tasks of one crawl that wait here, in any lane. */
  waitingOf(crawl: string): number {
    return this.#crawls.get(crawl) ?? 0
  }

  /** The crawl with most tasks that wait here. Cost: O(crawls). */
  get largestCrawl(): { readonly crawl: string; readonly count: number } {
    let largest = { crawl: '', count: 0 }
    for (const [crawl, count] of this.#crawls) if (count > largest.count) largest = { crawl, count }
    return largest
  }

  /** Takes out the last task of a crawl among those of one window, the lowest lane first. Cost: O(its tasks). */
  takeLast(crawl: string, window: PartitionId): T | undefined {
    for (const lane of LANES.toReversed()) {
      const task = this.#lanes[lane].takeLast(crawl, (other) => other.window === window)
      if (task === undefined) continue
      this.#count(task, -1)
      return task
    }
    return undefined
  }

  /** What waits in a lane, crawl by crawl, each in order. */
  waitingIn(lane: Lane): Iterable<T> {
    return this.#lanes[lane]
  }

  /** Tasks that wait for something of their own: the site goes on without them. */
  get aside(): ReadonlySet<T> {
    return this.#aside
  }

  setAside(task: T): void {
    this.#aside.add(task)
    moveCount(this.#held, task.window, 1)
  }

  /** All that was set aside goes to the head, in the order in which it was. */
  recall(): void {
    for (const task of [...this.#aside].toReversed()) {
      this.#leaveAside(task)
      this.add(task, 'head')
    }
  }

  /** Tasks of one window that wait here, those that were set aside too. */
  heldIn(window: PartitionId): number {
    return this.#held.get(window) ?? 0
  }

  add(task: T, place: 'head' | 'tail' = 'tail'): void {
    const queues = this.#lanes[task.lane]
    // A lane that was empty must not have saved up turns.
    if (queues.size === 0) this.#passes[task.lane] = Math.max(this.#passes[task.lane], this.#virtual)
    queues.add(task, place)
    this.#count(task, 1)
  }

  /** The lane whose turn it is, of those allowed that have a task. */
  chooseLane(isAllowed: (lane: Lane) => boolean): Lane | undefined {
    let chosen: Lane | undefined
    for (const lane of LANES) {
      if (this.#lanes[lane].size === 0 || !isAllowed(lane)) continue
      if (chosen === undefined || this.#passes[lane] < this.#passes[chosen]) chosen = lane
    }
    return chosen
  }

  /** Takes the next task of a lane and counts its turn: of the crawl that is named, else of the one whose turn it is. */
  take(lane: Lane, weights: LaneWeights, crawl?: string): T | undefined {
    const task = this.#lanes[lane].take(crawl)
    if (task === undefined) return undefined
    this.#count(task, -1)
    this.#readyAt = Math.max(this.wakeAt, this.#freedAt)
    this.#virtual = this.#passes[lane]
    this.#passes[lane] += 1 / weights[lane]
    return task
  }

  /** A request of the site starts. */
  started(now: number): void {
    if (this.#lastStartAt !== undefined) {
      const last = this.#lastStartAt
      this.#interval = meanOf(this.#interval, now - last)
      this.#ownInterval = meanOf(this.#ownInterval, Math.min(now, Math.max(last, this.#readyAt)) - last)
    }
    // A gap is the site's only while something waits for it.
    this.#lastStartAt = this.size > 0 ? now : undefined
  }

  /** A request of the site is over, and with it its place is free. */
  ended(now: number): void {
    if (this.inFlight >= this.concurrency) this.#freedAt = now
    this.inFlight -= 1
  }

  /** Forgets its pace, once for each of these moments; it is learnt again from the next start. `from`: epoch ms, to tell them apart. */
  slotsBeginAt(from: number): void {
    if (from <= this.#slotsFrom) return
    this.#slotsFrom = from
    this.paceIntervalMs = 0
    this.#interval = 0
    this.#ownInterval = 0
    this.#lastStartAt = undefined
  }

  /** Nothing at all was started for some time, and not for the site's sake: the gap is not its own. */
  interrupted(): void {
    this.#lastStartAt = undefined
  }

  /** Takes out what matches: of what was set aside, then lane by lane, in order. Cost: O(size). */
  takeAll(matches: (task: T) => boolean): T[] {
    const taken = LANES.flatMap((lane) => this.#lanes[lane].takeAll(matches))
    for (const task of taken) this.#count(task, -1)
    const aside = [...this.#aside].filter(matches)
    for (const task of aside) this.#leaveAside(task)
    return [...aside, ...taken]
  }

  #leaveAside(task: T): void {
    this.#aside.delete(task)
    moveCount(this.#held, task.window, -1)
  }

  #count(task: T, by: 1 | -1): void {
    moveCount(this.#held, task.window, by)
    moveCount(this.#crawls, crawlOf(task), by)
  }
}

function meanOf(before: number, gapMs: number): number {
  return before === 0 ? gapMs : before * INTERVAL_MEMORY + gapMs * (1 - INTERVAL_MEMORY)
}
