import type { WindowEntry } from '../kafka/window-entry.ts'
import type { PartitionId, PolitenessKey } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { grouped } from '../kernel/grouped.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import { LANES } from '../message/topics.ts'
import { spacingOf } from '../politeness/crawl-delay.ts'
import { liftedAt, type SitePolicy, slotsFrom } from '../politeness/policy.ts'
import { crawlOf } from './crawl-queues.ts'
import type { CrawlShares } from './crawl-shares.ts'
import type { QueuedTask } from './queued-task.ts'
import type { Scheduler } from './scheduler.ts'
import type { SiteQueue } from './site-queue.ts'
import { expectedWaitMs, isClosure, SPILL_LIMITS, type SpillLimits, type SpillReason, spillReason } from './spill.ts'
import type { StartRate } from './start-rate.ts'
import type { SpillSlots } from './task-endings.ts'

export interface SpillerOptions {
  readonly scheduler: Scheduler<QueuedTask>
  /** Puts them aside. Resolves with where the clock stands then, epoch ms. */
  readonly putAside: (tasks: readonly QueuedTask[], slots: SpillSlots) => Promise<number>
  readonly paceOf: (url: URL, at?: number) => SitePolicy
  /** When after a moment a site has other hours; not given: its pace is the same at all of them. Units: epoch ms. */
  readonly hoursEnd?: (url: URL, at: number) => number | undefined
  readonly shares: Pick<CrawlShares, 'isSurplus' | 'surplusIn' | 'startsPerOwn'>
  readonly rate: Pick<StartRate, 'startsPerSecond' | 'overload'>
  readonly limits?: SpillLimits
  readonly clock: Clock
}

/** Tasks that leave their window together, and why. */
interface Spill {
  readonly tasks: QueuedTask[]
  readonly reason: SpillReason
}

/** With so many of all places taken the process has no use for further sites. */
const BUSY_SHARE = 0.8
const CROWDED_MS = 2_000
/** Surplus comes back so many times faster than the turns of its crawl. */
const SURPLUS_HEADROOM = 3
/** Tasks of a site come back so many times faster than this process seems to be able to take them, as far as its pace allows. */
const HEADROOM = 2
/** The same where it is the site that seems slow. A process that is slow for a moment sees its sites as slow, so this says less. */
const SITE_HEADROOM = 4
/** Starts per second until they were measured: what comes back too soon leaves once more, what comes too late leaves places empty. */
const UNKNOWN_STARTS = 1_000
/** Spill clocks of which it is remembered where they stand: a name and a number each. */
const CLOCKS_KEPT = 10_000

/** Finds what has to leave its window, and sends it to the delay topics in the order of its site. */
export class Spiller {
  readonly #options: SpillerOptions
  readonly #limits: SpillLimits
  /** Where spill clocks stood when they were last asked, epoch ms; of the last that were. */
  readonly #standing = new RecentMap<PolitenessKey, number>(CLOCKS_KEPT)
  #leaving = 0
  /** Since when windows have been crowded while there were free places. At most as many as this worker ever owned. */
  readonly #crowdedSinceMono = new Map<PartitionId, number>()

  constructor(options: SpillerOptions) {
    this.#options = options
    this.#limits = options.limits ?? SPILL_LIMITS
  }

  /** Tasks that are on their way out. */
  get leaving(): number {
    return this.#leaving
  }

  /** A wait that is not worth a place in a window. */
  isLong(waitMs: number): boolean {
    return waitMs > this.#limits.maxWaitMs
  }

  /**
   * Queues what has room, in order. Shape: what has to leave its window instead, in the order of its site and crawl: the task itself,
   * or the last one of a crawl that has more than its share of the places there.
   */
  admit(tasks: readonly QueuedTask[], enqueue: (task: QueuedTask) => void): readonly Spill[] {
    const spills = new Map<string, Spill>()
    // What is surplus leaves by the clock of its window, whatever its site: all of it together, and in order.
    const surplus: Spill = { tasks: [], reason: 'crawl-full' }
    const spillOf = (task: QueuedTask, reason: SpillReason): QueuedTask[] => {
      const spill = spills.get(lineOf(task)) ?? (reason === 'crawl-full' ? surplus : { tasks: [], reason })
      spills.set(lineOf(task), spill)
      return spill.tasks
    }
    for (const task of tasks) {
      // Once one of a site and crawl is spilled, so are those behind it: they must not overtake it.
      const reason = spills.get(lineOf(task))?.reason ?? this.#reasonFor(task)
      const displaced = reason === 'site-full' && !spills.has(lineOf(task)) ? this.#displacedBy(task) : undefined
      if (reason === undefined || displaced !== undefined) enqueue(task)
      else spillOf(task, reason).push(task)
      // It stood before all that have left.
      if (displaced !== undefined) spillOf(displaced, 'site-full').unshift(displaced)
    }
    return [...new Set(spills.values())]
  }

  /** What crawls have beyond their share of windows that are full, window by window, in order: those that came last. */
  takeSurplus(): QueuedTask[][] {
    const { scheduler, shares } = this.#options
    const { counts } = scheduler
    const surplus = new Map<string, { readonly count: number; readonly own: QueuedTask[] }>()
    for (const window of counts.windows()) {
      let waiting = counts.total(window)
      for (const [crawl, own] of counts.crawls(window)) {
        const count = shares.surplusIn(crawl, { waiting, own })
        if (count <= 0) continue
        surplus.set(`${window} ${crawl}`, { count, own: [] })
        waiting -= count
      }
    }
    if (surplus.size === 0) return []
    // Once for all of them: there may be tens of thousands of tasks, and this is one turn of the event loop.
    for (const site of scheduler.sites()) {
      for (const lane of LANES) {
        for (const queued of site.waitingIn(lane)) {
          if (queued.walk.hops === 0) surplus.get(`${queued.window} ${crawlOf(queued)}`)?.own.push(queued)
        }
      }
    }
    const taken = [...surplus.values()].map(({ count, own }) =>
      own.sort((a, b) => Number(a.entry.message.offset - b.entry.message.offset)).slice(-count),
    )
    const leaving = new Set(taken.flat())
    for (const key of new Set([...leaving].map((queued) => queued.key))) scheduler.takeOut(key, (queued) => leaving.has(queued))
    return taken
  }

  #reasonFor(queued: QueuedTask): SpillReason | undefined {
    const { scheduler, shares, clock } = this.#options
    const { counts } = scheduler
    const [waiting, own] = [counts.total(queued.window), counts.of(queued.window, crawlOf(queued))]
    const other = shares.isSurplus(crawlOf(queued), { waiting, own }) ? 'crawl-full' : undefined
    const site = this.#siteOf(queued)
    if (site === undefined) return other
    const view = {
      waiting: startsBefore(site, queued),
      heldInWindow: site.heldIn(queued.window),
      wakeInMs: site.wakeAt - clock.mono(),
      intervalMs: this.#intervalMs(queued),
      isCrowded: this.#isCrowded(queued.window, waiting),
    }
    return spillReason(view, this.#limits) ?? other
  }

  /** For some time already: a process that has just started, or drained its queues, has free places as well. */
  #isCrowded(window: PartitionId, waiting: number): boolean {
    const { scheduler, clock } = this.#options
    // A full window is read on when it is half empty.
    if (waiting < this.#limits.crowded / 2 || scheduler.inFlight >= scheduler.maxInFlight * BUSY_SHARE) {
      this.#crowdedSinceMono.delete(window)
      return false
    }
    if (waiting < this.#limits.crowded) return false
    const since = this.#crowdedSinceMono.get(window) ?? clock.mono()
    this.#crowdedSinceMono.set(window, since)
    return clock.mono() - since >= CROWDED_MS
  }

  /** The last task of the crawl with most tasks, where it has more than its share and the new one's crawl has less. */
  #displacedBy(queued: QueuedTask): QueuedTask | undefined {
    const site = this.#options.scheduler.site(queued.key)
    if (site === undefined) return undefined
    const { crawl, count } = site.largestCrawl
    const share = this.#limits.maxPerWindow / (site.crawlCount + (site.waitingOf(crawlOf(queued)) === 0 ? 1 : 0))
    if (count <= share || site.waitingOf(crawlOf(queued)) + 1 > share) return undefined
    return this.#options.scheduler.takeLast(queued.key, crawl, queued.window)
  }

  /** Shape: tasks of one site. `atLeastMs`: the site is known to be closed for so long. */
  async spill(tasks: readonly QueuedTask[], reason: SpillReason, atLeastMs = 0): Promise<void> {
    this.#leaving += tasks.length
    try {
      await (reason === 'crawl-full' ? this.#spillSurplus(tasks) : this.#spillSite(tasks, reason, atLeastMs))
    } finally {
      this.#leaving -= tasks.length
    }
  }

  async #spillSite(tasks: readonly QueuedTask[], reason: SpillReason, atLeastMs: number): Promise<void> {
    // Hosts of a domain that is one site may differ in their paces, and one be paused while the others are not.
    const alike = grouped(tasks, (task) => `${lineOf(task)} ${slotsKind(this.#options.paceOf(task.target))}`)
    await Promise.all([...alike.values()].map((own) => this.#spillCrawl(own, reason, atLeastMs)))
  }

  /**
   * Shape: tasks of one pace. Each crawl of a site has a clock of its own, which goes slower the more crawls want the site: so their tasks
   * come back in turn. Those whose slots would lie in other hours get them by the pace of these.
   */
  async #spillCrawl(tasks: readonly QueuedTask[], reason: SpillReason, atLeastMs: number): Promise<void> {
    const [first] = tasks
    if (first === undefined) return
    const { putAside, paceOf, clock } = this.#options
    const now = clock.now()
    const { pausedUntil = 0 } = paceOf(first.target)
    // Whatever it leaves for, it comes back when the hours end, or when the site is resumed.
    if (pausedUntil > now && !isClosure(reason)) return this.#spillCrawl(tasks, 'paused', pausedUntil - now)
    for (let left = tasks; left.length > 0; ) {
      const { count, ...slots } = this.#slotsOf(first, reason, atLeastMs)
      this.#standing.set(slots.clock, await putAside(left.slice(0, count), slots))
      left = left.slice(count)
    }
  }

  /** The next slots of the clock of a task. Shape: how many of them lie in the hours of the first, at least one. */
  #slotsOf(first: QueuedTask, reason: SpillReason, atLeastMs: number): SpillSlots & { readonly count: number } {
    const { paceOf, hoursEnd, clock } = this.#options
    const site = this.#siteOf(first)
    const now = clock.now()
    const endsAt = now + atLeastMs
    // Tasks come back at the end of each closure, and may find the next one: the slots behind the end of the last are nobody's then, so
    // each has a clock of its own. On one clock they would pile up, and the site would get a trickle for long after it is back.
    const name = isClosure(reason) ? closureClockOf(first, endsAt, liftedAt(paceOf(first.target))) : this.#clockOf(first)
    const crawls = Math.max(1, site?.crawlCount ?? 1)
    // What waits here of a site that is closed for long leaves as well.
    const leaves = isClosure(reason) && this.isLong(atLeastMs)
    const waiting = site === undefined || leaves ? 0 : startsBefore(site, first)
    const wakesInMs = (site?.wakeAt ?? 0) - clock.mono()
    const hereMs = expectedWaitMs({ waiting, wakeInMs: wakesInMs, intervalMs: this.#spacingMs(first, now) })
    // The slots may lie in other hours, which have another pace; hours that pause the site are passed over.
    const at = Math.max(endsAt, this.#standing.get(name) ?? 0)
    const inHoursOf = (from: number): { opensAt: number; intervalMs: number; count: number } => {
      const opensAt = paceOf(first.target, from).pausedUntil ?? from
      const intervalMs = this.#spacingMs(first, opensAt) * crawls
      const until = hoursEnd?.(first.target, opensAt) ?? Number.POSITIVE_INFINITY
      return { opensAt, intervalMs, count: Math.floor((until - Math.max(opensAt, now + hereMs)) / intervalMs) }
    }
    const present = inHoursOf(at)
    const { opensAt, intervalMs, count } = present.count > 0 ? present : inHoursOf(hoursEnd?.(first.target, present.opensAt) ?? at)
    const wakeInMs = Math.max(opensAt > at ? opensAt - now : atLeastMs, wakesInMs)
    const localWaitMs = expectedWaitMs({ waiting, wakeInMs, intervalMs: intervalMs / crawls })
    return { reason, clock: name, localWaitMs, intervalMs, count: Math.max(1, count) }
  }

  /**
   * Each crawl of a window has a clock of its own: its tasks come back a little faster than its turn comes, so that it never runs dry
   * and few have to leave again. The paces of sites are left to the clocks of sites, if a task that came back has to wait for one.
   */
  async #spillSurplus(tasks: readonly QueuedTask[]): Promise<void> {
    const { scheduler, putAside, shares, rate } = this.#options
    const { counts } = scheduler
    const byClock = grouped(tasks, (queued) => `${queued.window} ${crawlOf(queued)}` as PolitenessKey)
    const windows = Math.max(1, [...counts.windows()].length)
    const perWindow = ((rate.startsPerSecond ?? UNKNOWN_STARTS) * SURPLUS_HEADROOM) / windows
    const spills = [...byClock].flatMap(([clock, own]) => {
      if (own[0] === undefined) return []
      // Crawls that have nothing in this window take no turns of it.
      const turns = Math.min(shares.startsPerOwn(crawlOf(own[0])), Math.max(1, counts.crawls(own[0].window).size))
      return [putAside(own, { reason: 'crawl-full', clock, localWaitMs: 0, intervalMs: (1_000 * turns) / perWindow })]
    })
    await Promise.all(spills)
  }

  /** The site is closed for so long: everything that waits for it. */
  takeSite(key: PolitenessKey, closedMs: number): QueuedTask[] {
    const { scheduler, clock } = this.#options
    const now = clock.mono()
    const taken = scheduler.takeOut(key, () => true)
    // After that: a site with nothing left is forgotten, and would lie among the sleeping ones until it opens, once for each time it is
    // met.
    scheduler.sleep(key, now + closedMs, now)
    return taken
  }

  /** The host of a task is paused, and not its whole site: everything that waits for that pause. */
  takePaused({ key, target }: QueuedTask): QueuedTask[] {
    const { scheduler, paceOf } = this.#options
    const { pausedUntil } = paceOf(target)
    return scheduler.takeOut(key, (other) => {
      const pace = paceOf(other.target)
      return pace.isPaused && pace.pausedUntil === pausedUntil
    })
  }

  /** What has held back a commit for too long without being on the wire; site by site. */
  takeOld(bases: readonly WindowEntry[]): QueuedTask[][] {
    const { scheduler, clock } = this.#options
    const now = clock.mono()
    const old = new Set(bases.filter(({ takenMono }) => now - takenMono > this.#limits.maxBaseAgeMs))
    if (old.size === 0) return []
    return [...scheduler.sites()]
      .map(({ key }) => scheduler.takeOut(key, ({ entry }) => old.has(entry)))
      .filter((tasks) => tasks.length > 0)
  }

  /** Between two starts of the site: as its pace allows, or as it was seen where that is longer. */
  #intervalMs(queued: QueuedTask): number {
    return Math.max(this.#paceMs(queued), this.#options.scheduler.site(queued.key)?.observedIntervalMs ?? 0)
  }

  /**
   * Between two of its tasks that come back at a time. That it was asked less because this process was busy for a while (reading a backlog
   * through) does not count: these are slots for hours to come, and it would be asked less for as long. Nor does what was learnt where that
   * is but its pace of now, which may not be that of then.
   */
  #spacingMs(queued: QueuedTask, at: number): number {
    const { scheduler, rate, paceOf } = this.#options
    const site = scheduler.site(queued.key)
    const [nowMs, thenMs] = [spacingOf(paceOf(queued.target)), spacingOf(paceOf(queued.target, at))]
    const learntMs = site?.paceIntervalMs ?? 0
    const ownMs = (site?.ownIntervalMs ?? 0) / SITE_HEADROOM
    const paceMs = Math.max(thenMs, learntMs > nowMs ? learntMs : 0)
    return Math.max(paceMs * Math.max(1, rate.overload / HEADROOM), ownMs > Math.max(nowMs, learntMs) ? ownMs : 0)
  }

  /** The site of a task. What it was seen to do before slots began anew says nothing of those: it was the old pace, or the closure. */
  #siteOf(queued: QueuedTask): SiteQueue<QueuedTask> | undefined {
    const site = this.#options.scheduler.site(queued.key)
    site?.slotsBeginAt(slotsFrom(this.#options.paceOf(queued.target)))
    return site
  }

  /** Name of the spill clock of a site and crawl: another one once slots begin anew, for the old one may lie far ahead. */
  #clockOf(queued: QueuedTask): PolitenessKey {
    const from = slotsFrom(this.#options.paceOf(queued.target))
    return from === 0 ? lineOf(queued) : (`${lineOf(queued)} ${from}` as PolitenessKey)
  }

  #paceMs(queued: QueuedTask): number {
    return Math.max(spacingOf(this.#options.paceOf(queued.target)), this.#options.scheduler.site(queued.key)?.paceIntervalMs ?? 0)
  }
}

/** All of a pace that decides on which slots a task comes back. */
function slotsKind(pace: SitePolicy): string {
  return [pace.isPaused, pace.pausedUntil, spacingOf(pace), slotsFrom(pace), liftedAt(pace)].join(' ')
}

/** Starts of a site before a new task of the crawl: those of its own crawl, and as many of each other one. */
function startsBefore(site: SiteQueue<QueuedTask>, queued: QueuedTask): number {
  const crawl = crawlOf(queued)
  const crawls = site.crawlCount + (site.waitingOf(crawl) === 0 ? 1 : 0)
  return Math.min(site.size, site.waitingOf(crawl) * crawls + crawls - 1)
}

/** What ends within the same time is one closure to all workers. */
const CLOSURE_GRAIN_MS = 10_000

/** Name of the spill clock of a site and crawl behind the end of a closure: another one once what has slots there was called back. */
function closureClockOf(queued: QueuedTask, endsAt: number, lifted: number): PolitenessKey {
  const name = `${lineOf(queued)} ${Math.round(endsAt / CLOSURE_GRAIN_MS)}`
  return (lifted === 0 ? name : `${name} ${lifted}`) as PolitenessKey
}

/** Tasks of one site and crawl keep their order. */
function lineOf({ key, crawlId }: QueuedTask): PolitenessKey {
  return crawlId === null ? key : (`${key} ${crawlId}` as PolitenessKey)
}
