import type { PolitenessKey } from '../kernel/brand.ts'
import { TimeHeap } from '../kernel/time-heap.ts'
import type { Lane } from '../message/generated/types.ts'
import { LANES } from '../message/topics.ts'
import { LaneRing } from './lane-ring.ts'
import { type LaneWeights, SiteQueue, type SiteTask } from './site-queue.ts'

export interface SchedulerOptions {
  /** Requests at the same time, over all sites. */
  readonly maxInFlight: number
  /** Bytes of answers held at the same time; a start needs room, what it then brings is counted when it is known. */
  readonly maxBytes: number
  readonly weights?: LaneWeights
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

/**
 * Decides which request starts next. Pure: time is an argument, nothing is awaited, nothing is called back.
 *
 * Guarantees: tasks of one site and lane come out in the order they were put in; crawls take turns, and so do the sites of a crawl;
 * each lane has its share by weight, over all sites and within each; at most `maxInFlight` tasks are out. A site that waits costs one
 * entry in a heap, no timer. It knows nothing of the limiter: whoever takes a task says what became of it.
 *
 * The life of a task: `add` -> `next` (the site is probing) -> `admitted`, then `ended`; or `putBack`; or `dropped`.
 */
export class Scheduler<T extends SiteTask> {
  readonly #options: Required<SchedulerOptions>
  readonly #sites = new Map<PolitenessKey, SiteQueue<T>>()
  readonly #rings: Readonly<Record<Lane, LaneRing>> = { high: new LaneRing(), normal: new LaneRing(), low: new LaneRing() }
  readonly #sleeping = new TimeHeap<SiteQueue<T>>()
  readonly #passes: Record<Lane, number> = { high: 0, normal: 0, low: 0 }
  readonly #out: Record<Lane, number> = { high: 0, normal: 0, low: 0 }
  #virtual = 0
  #bytes = 0
  #waiting = 0

  constructor(options: SchedulerOptions) {
    this.#options = { weights: LANE_WEIGHTS, ...options }
  }

  /** Tasks in all site queues. */
  get waiting(): number {
    return this.#waiting
  }

  /** Tasks taken and not given back. */
  get inFlight(): number {
    return this.#out.high + this.#out.normal + this.#out.low
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

  /** `head`: the next hop of a chain goes before what waits. */
  add(task: T, now: number, place: 'head' | 'tail' = 'tail'): void {
    const site = this.#siteOf(task.key)
    site.add(task, place)
    this.#waiting += 1
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
    if (this.inFlight >= this.#options.maxInFlight || this.#bytes >= this.#options.maxBytes) return { kind: 'idle' }
    for (;;) {
      const lane = this.#nextLane()
      if (lane === undefined) break
      const task = this.#takeFrom(lane, now)
      if (task !== undefined) return { kind: 'start', task }
    }
    const at = this.#sleeping.nextAt
    return at === undefined ? { kind: 'idle' } : { kind: 'wait', ms: Math.max(0, at - now) }
  }

  /** The limiter gave a lease: the request of the task starts, and the next one of the site may be asked for. */
  admitted(task: T, now: number): void {
    const site = this.#siteOf(task.key)
    site.probing = false
    site.inFlight += 1
    site.started(now)
    this.#offer(site, now)
  }

  /** The request of an admitted task is over. */
  ended(task: T, now: number): void {
    const site = this.#siteOf(task.key)
    site.inFlight -= 1
    this.#leave(task, site, now)
  }

  /** The probing task goes back to the head, and the site sleeps until then. */
  putBack(task: T, wakeAt: number, now: number): void {
    const site = this.#siteOf(task.key)
    site.probing = false
    site.add(task, 'head')
    this.#waiting += 1
    site.wakeAt = Math.max(site.wakeAt, wakeAt)
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
    this.#waiting -= taken.length
    this.#forget(site)
    return taken
  }

  /** Bytes of an answer that is in memory; a negative number when it is gone. */
  hold(bytes: number): void {
    this.#bytes += bytes
  }

  #takeFrom(lane: Lane, now: number): T | undefined {
    const { weights } = this.#options
    const offer = this.#rings[lane].take(({ key, crawl }) => {
      const site = this.#sites.get(key)
      if (site === undefined || !site.offered.has(lane)) return false
      const head = site.head(lane)
      if (site.isReady(now) && head !== undefined && crawlOf(head) === crawl) return true
      site.offered.delete(lane)
      // The head may be of another crawl by now: then it stands there.
      this.#offer(site, now)
      return false
    })
    const site = offer === undefined ? undefined : this.#sites.get(offer.key)
    if (site === undefined) return undefined
    site.offered.delete(lane)
    // Which lane of the site it is, the site's own turns decide: else a busy high lane would starve its low one.
    const served = site.chooseLane((other) => this.#hasRoom(other)) ?? lane
    const task = site.take(served, weights)
    if (task === undefined) return undefined
    site.probing = true
    this.#waiting -= 1
    this.#out[served] += 1
    this.#virtual = this.#passes[served]
    this.#passes[served] += 1 / weights[served]
    return task
  }

  /** Of the lanes with an offer and room, the one that is furthest behind its share. */
  #nextLane(): Lane | undefined {
    let chosen: Lane | undefined
    for (const lane of LANES) {
      if (this.#rings[lane].isEmpty || !this.#hasRoom(lane)) continue
      if (chosen === undefined || this.#passes[lane] < this.#passes[chosen]) chosen = lane
    }
    return chosen
  }

  #hasRoom(lane: Lane): boolean {
    const { maxInFlight } = this.#options
    const room = maxInFlight - Math.floor(maxInFlight * RESERVED[lane])
    const { high, normal, low } = this.#out
    const counted = lane === 'high' ? high + normal + low : lane === 'normal' ? normal + low : low
    return counted < room
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
      const head = site.head(lane)
      if (head === undefined || site.offered.has(lane)) continue
      const ring = this.#rings[lane]
      if (ring.isEmpty) this.#passes[lane] = Math.max(this.#passes[lane], this.#virtual)
      site.offered.add(lane)
      ring.offer({ key: site.key, crawl: crawlOf(head) })
    }
  }

  #wake(now: number): void {
    for (let site = this.#sleeping.popDue(now); site !== undefined; site = this.#sleeping.popDue(now)) {
      if (this.#sites.get(site.key) === site) this.#offer(site, now)
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

  #forget(site: SiteQueue<T>): void {
    if (site.isIdle) this.#sites.delete(site.key)
  }
}

/** Tasks without a crawl share one turn. */
function crawlOf(task: SiteTask): string {
  return task.crawlId ?? ''
}
