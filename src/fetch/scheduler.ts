import type { PartitionId, PolitenessKey } from '../kernel/brand.ts'
import { TimeHeap } from '../kernel/time-heap.ts'
import type { Lane } from '../message/generated/types.ts'
import { LANES } from '../message/topics.ts'
import { crawlOf } from './crawl-queues.ts'
import { LaneRing } from './lane-ring.ts'
import { type LaneWeights, SiteQueue } from './site-queue.ts'
import type { SiteTask } from './site-task.ts'
import { WindowCounts } from './window-counts.ts'

export interface SchedulerOptions {
  /** Requests at the same time, over all sites. */
  readonly maxInFlight: number
  /** Bytes of answers held at the same time; a start needs room, what it then brings is counted when it is known. */
  readonly maxBytes: number
  readonly weights?: LaneWeights
  /** This process has other things to do just now: how long a site takes says nothing of the site. */
  readonly isBusy?: () => boolean
}

/** What may start now. wait: nothing before `ms`. idle: nothing until a task comes or something ends. */
export type Next<T> =
  | { readonly kind: 'start'; readonly task: T }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'idle' }

/** Starts of high to normal to low while all three have tasks: low is sure of one in thirteen. */
export const LANE_WEIGHTS: LaneWeights = { high: 8, normal: 4, low: 1 }
/** Share of all requests that lower lanes leave free, so that a task of a higher one finds a place at once. */
const RESERVED = { high: 0, normal: 0.05, low: 0.15 } as const
/** Nothing is left free for lanes that had no task for so long: who never uses them gets all places. */
const RESERVED_FOR_MS = 600_000
/** Lanes above each. */
const HIGHER = { high: [], normal: ['high'], low: ['high', 'normal'] } as const
/** Share of all requests that each lane is sure of while it has tasks, however slow the sites of the others are. */
const FLOOR = 0.02
/** Of fewer there is nothing to be shared out. */
const LEAST_WITH_FLOORS = 10
/** Share that is left to the low lane while it is held. */
const HELD_LOW = 0.1
/** The mean of web pages, decoded and as received. */
const MEAN_ANSWER_BYTES = 131_072
/** Crawls with which one site stands in a ring at the same time: their number is not bounded, and each costs a step. */
const CRAWLS_OFFERED = 16

/**
 * Decides which request starts next. Pure: time is an argument, nothing is awaited, nothing is called back.
 *
 * Guarantees: tasks of one site, lane and crawl come out in the order they were put in, but for those that are set aside; crawls take
 * turns, over all sites and within each, and so do the sites of a crawl; each lane has its share by weight, over all sites and within each,
 * a floor of places that no other lane takes, and places that lower ones leave free while it is used at all; at most `maxInFlight` tasks
 * are out. A site that waits costs one entry in a heap, no timer. It knows nothing of the limiter: whoever takes a task says what became of
 * it.
 *
 * The life of a task: `add` -> `next` (the site is probing) -> `admitted`, then `ended`; or `putBack`; or `setAside`; or `dropped`.
 */
export class Scheduler<T extends SiteTask> {
  readonly #options: Required<SchedulerOptions>
  readonly #sites = new Map<PolitenessKey, SiteQueue<T>>()
  readonly #rings: Readonly<Record<Lane, LaneRing>> = { high: new LaneRing(), normal: new LaneRing(), low: new LaneRing() }
  readonly #sleeping = new TimeHeap<SiteQueue<T>>()
  readonly #aside = new TimeHeap<T>()
  readonly #passes: Record<Lane, number> = { high: 0, normal: 0, low: 0 }
  readonly #out: Record<Lane, number> = { high: 0, normal: 0, low: 0 }
  /** When the last task of each lane came. */
  readonly #cameAt: Record<Lane, number> = {
    high: Number.NEGATIVE_INFINITY,
    normal: Number.NEGATIVE_INFINITY,
    low: Number.NEGATIVE_INFINITY,
  }
  /** What waits, by window and crawl. */
  readonly counts = new WindowCounts()
  #virtual = 0
  #bytes = 0
  #waiting = 0
  #startCount = 0
  #maxInFlight: number
  #holdsLow = false

  constructor(options: SchedulerOptions) {
    this.#options = { weights: LANE_WEIGHTS, isBusy: () => false, ...options }
    this.#maxInFlight = options.maxInFlight
  }

  /** Tasks in all site queues. */
  get waiting(): number {
    return this.#waiting
  }

  /** Requests that have been started. */
  get startCount(): number {
    return this.#startCount
  }

  /** Starts per second that the paces of all sites with tasks here allow together, as far as they are known. Cost: O(sites). */
  get allowedPerSecond(): number {
    let allowed = 0
    for (const { paceIntervalMs } of this.#sites.values()) if (paceIntervalMs > 0) allowed += 1_000 / paceIntervalMs
    return allowed
  }

  /** Tasks taken and not given back. */
  get inFlight(): number {
    return this.#out.high + this.#out.normal + this.#out.low
  }

  /** Requests at the same time that are allowed now. */
  get maxInFlight(): number {
    return this.#maxInFlight
  }

  get siteCount(): number {
    return this.#sites.size
  }

  site(key: PolitenessKey): SiteQueue<T> | undefined {
    return this.#sites.get(key)
  }

  sites(): IterableIterator<SiteQueue<T>> {
    return this.#sites.values()
  }

  /** Requests at the same time from now on; at most as many as it was made with. What is out stays out. */
  setMaxInFlight(count: number): void {
    this.#maxInFlight = Math.max(1, Math.min(this.#options.maxInFlight, count))
  }

  /** True: the low lane keeps a tenth of all places, whatever else is free. */
  holdLow(isHeld: boolean): void {
    this.#holdsLow = isHeld
  }

  /** `head`: the next hop of a chain goes before what waits. */
  add(task: T, now: number, place: 'head' | 'tail' = 'tail'): void {
    const site = this.#siteOf(task.key)
    site.add(task, place)
    this.#cameAt[task.lane] = now
    this.#count(task, 1)
    this.#offer(site, now)
  }

  setConcurrency(key: PolitenessKey, concurrency: number, now: number): void {
    const site = this.#sites.get(key)
    if (site === undefined || site.concurrency === concurrency) return
    site.concurrency = concurrency
    this.#offer(site, now)
  }

  next(now: number): Next<T> {
    this.#wake(now)
    if (this.inFlight >= this.#maxInFlight || this.isFull) return { kind: 'idle' }
    for (;;) {
      const lane = this.#nextLane(now)
      if (lane === undefined) break
      const task = this.#takeFrom(lane, now)
      if (task !== undefined) return { kind: 'start', task }
    }
    const at = Math.min(this.#sleeping.nextAt ?? Number.POSITIVE_INFINITY, this.#aside.nextAt ?? Number.POSITIVE_INFINITY)
    return at === Number.POSITIVE_INFINITY ? { kind: 'idle' } : { kind: 'wait', ms: Math.max(0, at - now) }
  }

  /** The limiter gave a lease: the request of the task starts, and the next one of the site may be asked for. */
  admitted(task: T, now: number): void {
    const site = this.#siteOf(task.key)
    site.probing = false
    site.inFlight += 1
    this.#startCount += 1
    if (this.#options.isBusy()) site.interrupted()
    else site.started(now)
    this.#offer(site, now)
  }

  /** The request of an admitted task is over. */
  ended(task: T, now: number): void {
    const site = this.#siteOf(task.key)
    site.ended(now)
    this.#leave(task, site, now)
  }

  /** The probing task goes back to the head, and the site sleeps until then. */
  putBack(task: T, wakeAt: number, now: number): void {
    const site = this.#siteOf(task.key)
    site.probing = false
    site.add(task, 'head')
    this.#count(task, 1)
    site.wakeAt = Math.max(site.wakeAt, wakeAt)
    // It had no request for its turn.
    this.#rings[task.lane].refund(crawlOf(task))
    this.#leave(task, site, now)
  }

  /** The probing task waits for something of its own: it is at the head again then, and its site goes on without it meanwhile. */
  setAside(task: T, until: number, now: number): void {
    const site = this.#siteOf(task.key)
    site.probing = false
    site.setAside(task)
    this.#aside.push(until, task)
    this.#count(task, 1)
    this.#rings[task.lane].refund(crawlOf(task))
    this.#leave(task, site, now)
  }

  /** The probing task needs no request. */
  dropped(task: T, now: number): void {
    const site = this.#siteOf(task.key)
    site.probing = false
    this.#leave(task, site, now)
  }

  /** Nothing of the site starts before `wakeAt`. Extends, never shortens. */
  sleep(key: PolitenessKey, wakeAt: number, now: number): void {
    const site = this.#sites.get(key)
    if (site === undefined || wakeAt <= site.wakeAt) return
    site.wakeAt = wakeAt
    this.#offer(site, now)
  }

  /** What a site slept for may be over: it is asked for now. */
  wake(key: PolitenessKey, now: number): void {
    const site = this.#sites.get(key)
    if (site === undefined || site.wakeAt <= now) return
    site.wakeAt = now
    this.#offer(site, now)
  }

  /** Takes tasks of a site out of its queue, lane by lane in order. */
  takeOut(key: PolitenessKey, matches: (task: T) => boolean): T[] {
    const site = this.#sites.get(key)
    if (site === undefined) return []
    const taken = site.takeAll(matches)
    for (const task of taken) this.#count(task, -1)
    this.#forget(site)
    return taken
  }

  /** Takes the last task of a crawl out of a site's queue, among those of one window. */
  takeLast(key: PolitenessKey, crawl: string, window: PartitionId): T | undefined {
    const site = this.#sites.get(key)
    const task = site?.takeLast(crawl, window)
    if (site === undefined || task === undefined) return undefined
    this.#count(task, -1)
    this.#forget(site)
    return task
  }

  /** Starts go on after a pause of the whole process: it says nothing of any site. */
  resumed(): void {
    for (const site of this.#sites.values()) site.interrupted()
  }

  /** Bytes of an answer that is in memory; a negative number when it is gone. */
  hold(bytes: number): void {
    this.#bytes += bytes
  }

  /**
   * What a request is taken to bring until its answer is known. However many there may be: what is only expected takes half of the room at
   * most, or fewer would run than were asked for, and bodies that come would wait for those that may never be large.
   */
  get expectedBytes(): number {
    const { maxBytes, maxInFlight } = this.#options
    return Math.min(MEAN_ANSWER_BYTES, Math.floor(maxBytes / (2 * maxInFlight)))
  }

  /** As many bytes are in memory as may be. */
  get isFull(): boolean {
    return this.#bytes >= this.#options.maxBytes
  }

  #takeFrom(lane: Lane, now: number): T | undefined {
    const { weights } = this.#options
    const offer = this.#rings[lane].take(({ key, crawl }) => {
      const site = this.#sites.get(key)
      if (site?.offered.has(offerName(lane, crawl)) !== true) return false
      if (site.isReady(now) && site.has(lane, crawl)) return true
      site.offered.delete(offerName(lane, crawl))
      // There may be tasks of other crawls by now.
      this.#offer(site, now)
      return false
    })
    const site = offer === undefined ? undefined : this.#sites.get(offer.key)
    if (offer === undefined || site === undefined) return undefined
    site.offered.delete(offerName(lane, offer.crawl))
    // Which lane of the site it is, the site's own turns decide: else a busy high lane would starve its low one.
    const served = site.chooseLane((other) => this.#hasRoom(other, now)) ?? lane
    const task = site.take(served, weights, served === lane ? offer.crawl : undefined)
    if (task === undefined) return undefined
    if (served !== lane) {
      this.#rings[lane].refund(offer.crawl)
      this.#rings[served].charge(crawlOf(task))
    }
    site.probing = true
    this.#count(task, -1)
    this.#out[served] += 1
    this.#virtual = this.#passes[served]
    this.#passes[served] += 1 / weights[served]
    return task
  }

  /** Of the lanes with an offer and room, the one that is furthest behind its share. */
  #nextLane(now: number): Lane | undefined {
    let chosen: Lane | undefined
    for (const lane of LANES) {
      if (this.#rings[lane].isEmpty || !this.#hasRoom(lane, now)) continue
      if (chosen === undefined || this.#passes[lane] < this.#passes[chosen]) chosen = lane
    }
    return chosen
  }

  #hasRoom(lane: Lane, now: number): boolean {
    const max = this.#maxInFlight
    const { high, normal, low } = this.#out
    if (lane === 'low' && this.#holdsLow && low >= Math.max(1, Math.floor(max * HELD_LOW))) return false
    if (this.inFlight + this.#owedToOthers(lane) >= max) return false
    const isShared = HIGHER[lane].some((other) => now - this.#cameAt[other] < RESERVED_FOR_MS)
    const room = isShared ? max - Math.floor(max * RESERVED[lane]) : max
    const counted = lane === 'high' ? high + normal + low : lane === 'normal' ? normal + low : low
    return counted < room
  }

  /** Places that other lanes are sure of, have tasks for, and do not have yet. */
  #owedToOthers(lane: Lane): number {
    const max = this.#maxInFlight
    if (max < LEAST_WITH_FLOORS) return 0
    const floor = Math.ceil(max * FLOOR)
    let owed = 0
    for (const other of LANES) {
      if (other !== lane && !this.#rings[other].isEmpty) owed += Math.max(0, floor - this.#out[other])
    }
    return owed
  }

  #leave(task: T, site: SiteQueue<T>, now: number): void {
    this.#out[task.lane] -= 1
    this.#offer(site, now)
    this.#forget(site)
  }

  /** Puts a site that may start into the rings of its lanes, or into the heap until it may. */
  #offer(site: SiteQueue<T>, now: number): void {
    if (site.size === 0 || site.probing || site.inFlight >= site.concurrency) return
    if (site.wakeAt > now) {
      if (site.sleepingUntil === site.wakeAt) return
      site.sleepingUntil = site.wakeAt
      this.#sleeping.push(site.wakeAt, site)
      return
    }
    for (const lane of LANES) {
      let offered = 0
      for (const crawl of site.crawls(lane)) {
        if (offered++ >= CRAWLS_OFFERED) break
        if (site.offered.has(offerName(lane, crawl))) continue
        const ring = this.#rings[lane]
        if (ring.isEmpty) this.#passes[lane] = Math.max(this.#passes[lane], this.#virtual)
        site.offered.add(offerName(lane, crawl))
        ring.offer({ key: site.key, crawl })
      }
    }
  }

  #wake(now: number): void {
    for (let site = this.#sleeping.popDue(now); site !== undefined; site = this.#sleeping.popDue(now)) {
      if (this.#sites.get(site.key) === site) this.#offer(site, now)
    }
    const back = new Set<SiteQueue<T>>()
    for (let task = this.#aside.popDue(now); task !== undefined; task = this.#aside.popDue(now)) {
      const site = this.#sites.get(task.key)
      if (site?.aside.has(task) === true) back.add(site)
    }
    for (const site of back) {
      // With one of a site all of it: they were set aside some ms apart, and keep their order.
      site.recall()
      this.#offer(site, now)
    }
  }

  #siteOf(key: PolitenessKey): SiteQueue<T> {
    let site = this.#sites.get(key)
    if (site === undefined) {
      site = new SiteQueue<T>(key)
      this.#sites.set(key, site)
    }
    return site
  }

  #count(task: T, by: 1 | -1): void {
    this.#waiting += by
    this.counts.move(task, by)
  }

  #forget(site: SiteQueue<T>): void {
    if (site.isIdle) this.#sites.delete(site.key)
  }
}

function offerName(lane: Lane, crawl: string): string {
  return `${lane} ${crawl}`
}
