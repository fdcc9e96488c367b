import type { Clock } from '../kernel/clock.ts'
import { countText } from '../kernel/count-text.ts'
import type { Observer } from '../kernel/observe.ts'
import type { UrlTask } from '../message/generated/types.ts'
import { effectiveCrawlDelay, requestsAtOnce } from '../politeness/crawl-delay.ts'
import type { SitePolicy } from '../politeness/policy.ts'
import type { RobotsDecision } from '../politeness/robots-gate.ts'
import type { Budget, StateStore, WaitReason } from '../state/state-store.ts'
import type { AddressOf } from './address-book.ts'
import type { Handover } from './handover.ts'
import type { HttpExchange, HttpFailure } from './http-exchange.ts'
import type { QueuedTask } from './queued-task.ts'
import { failedOnTheWay } from './retry-class.ts'
import type { SiteLease, SiteLeases } from './site-leases.ts'
import type { StoreGate } from './store-gate.ts'
import type { EndWithoutRequest } from './task-intake.ts'

/** Why a site is not asked yet: what the limiter says, a pause, or that no proxy of it works. */
export type DeferReason = WaitReason | 'paused' | 'proxies-out'

/** The site can't be asked for its robots.txt yet. */
export interface RobotsWait {
  readonly kind: 'wait'
  readonly waitMs: number
  readonly reason: DeferReason
}

export type RobotsAnswer = RobotsDecision<RobotsWait>

/** May the request of a task start, and under which pace. */
export type Admission =
  | {
      readonly kind: 'admitted'
      readonly lease: SiteLease
      readonly robots: { verdict: string; rule: string | null }
    }
  /** Not before `waitMs`. */
  | {
      readonly kind: 'wait'
      readonly waitMs: number
      readonly reason: DeferReason
      /** Requests of the site at the same time that are allowed now, where the limiter was asked. */
      readonly concurrency?: number
    }
  /** The partition went to another member, which has the task as well. */
  | { readonly kind: 'gone' }
  /** The partition came from another member, which has the task on the wire. */
  | { readonly kind: 'elsewhere' }
  /** The site has not answered for so long that nobody waits for it any more. */
  | { readonly kind: 'dead'; readonly detail: string }
  /** Places in a page budget are held by tasks that may yet give one back. */
  | { readonly kind: 'no-place' }
  /** A copy of what is finished. */
  | { readonly kind: 'repeat' }
  | { readonly kind: 'ended'; readonly end: EndWithoutRequest }
  /** This attempt is over without a request: the site has no address by which it could be paced, or no way leads to it. */
  | { readonly kind: 'unresolved'; readonly failure: HttpFailure }
  /** This attempt is over without a request. */
  | { readonly kind: 'robots-unreachable'; readonly detail: string }

export interface PageBudget extends Budget {
  /** Bounded code of the outcome of a task that finds it full. */
  readonly reason: string
}

export interface AdmissionOptions {
  readonly handover: Pick<Handover, 'isElsewhere'>
  readonly paceOf: (url: URL) => SitePolicy
  readonly robotsOf: (url: URL) => Promise<RobotsAnswer>
  readonly exchange: Pick<HttpExchange, 'proxiesBackInMs'>
  readonly budgetsOf: (task: UrlTask) => readonly PageBudget[]
  /** Places in a page budget count as kept once nobody has reserved in it for so long. */
  readonly holdMs: number
  readonly isCrawlStopped: (crawlId: string) => boolean
  readonly state: Pick<StateStore, 'isFinished' | 'reserve' | 'limiterState'>
  readonly gate: StoreGate
  readonly leases: SiteLeases
  /** For sites that are paced by their address. */
  readonly addressOf: AddressOf
  /** A site that asks for a longer crawl delay is parked. */
  readonly crawlDelayMaxMs: number
  /** Tasks of a site that is parked and has not answered for so long fail; 0: they wait for it. */
  readonly giveUpMs: number
  readonly observer: Observer
  readonly clock: Clock
}

/**
 * Tasks of a site that an operator has paused stay in memory for so long, since the pause may be short and then ends at once for them.
 * Where a line is that of a whole domain, those of a paused host leave it at once, or they would hold up the others.
 */
const PAUSED_KEPT_MS = 30_000
/** What has waited for longer leaves its window, and comes again after this. */
const PAUSED_SPILL_MS = 60_000
/** Answers of the store that a task is finished are good for so long. */
const CHECK_AGE_MS = 1_000

/**
 * All that is asked between the turn of a task and its request, cheapest first: is it still ours and still wanted, is it finished
 * already, does robots.txt allow it, is a place in the page budgets left, and last the limiter, whose lease starts the clock of the site.
 *
 * Nothing here waits for the pace of a site: that is an answer.
 */
export class AdmissionDesk {
  readonly #options: AdmissionOptions

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  async ask(queued: QueuedTask): Promise<Admission> {
    const { entry, task, target, walk } = queued
    // A chain that has begun is followed to its end, or its first hops would be asked for again.
    if (!entry.isCurrent() && walk.hops === 0) return { kind: 'gone' }
    const end = this.#endOf(task)
    if (end !== undefined) return { kind: 'ended', end }
    if (await this.#isFinished(queued)) return { kind: 'repeat' }
    // Such a chain is under our own note, where its partition went and came back.
    if (walk.hops === 0 && (await this.#options.handover.isElsewhere(queued))) return { kind: 'elsewhere' }
    const before = this.#options.paceOf(target)
    if (before.isPaused) return this.#paused(queued, before)
    const noProxyMs = this.#options.exchange.proxiesBackInMs(target)
    if (noProxyMs > 0) return { kind: 'wait', waitMs: noProxyMs, reason: 'proxies-out' }
    const robots = await this.#options.robotsOf(target)
    if (robots.kind === 'refused') return { kind: 'ended', end: { kind: 'REFUSED', reason: 'robots' } }
    if (robots.kind === 'unreachable') {
      const { reason, detail } = robots
      if (!failedOnTheWay(reason)) return { kind: 'robots-unreachable', detail }
      return { kind: 'unresolved', failure: { kind: 'failure', reason, detail, totalMs: 0 } }
    }
    if (robots.kind === 'wait') return (await this.#dead(target, robots.reason)) ?? robots
    const full = await this.#reserve(task)
    if (full !== undefined) return full
    // robots.txt may have taken its time: what is in force is the pace of now.
    const pace = this.#options.paceOf(target)
    if (pace.isPaused) return this.#paused(queued, pace)
    const address = pace.byAddress === true ? await this.#options.addressOf(target) : undefined
    if (typeof address === 'object') return { kind: 'unresolved', failure: address }
    const crawlDelayMs = this.#crawlDelayMs(pace, robots.crawlDelayMs)
    const own = { ...pace, crawlDelayMs, concurrency: requestsAtOnce({ ...pace, crawlDelayMs }) }
    const answer = await this.#acquire(queued, own, robots, address)
    return answer.kind === 'wait' ? ((await this.#dead(target, answer.reason)) ?? answer) : answer
  }

  /** Asked for parked sites alone. Between two parkings one request still tries, so a site that is back is found whatever this says. */
  async #dead(target: URL, reason: string): Promise<Admission | undefined> {
    const { giveUpMs, paceOf, state, gate } = this.#options
    if (reason !== 'breaker' || giveUpMs === 0) return undefined
    const { key } = paceOf(target)
    const { failingMs } = await gate.run(() => state.limiterState(key))
    if (failingMs < giveUpMs) return undefined
    return { kind: 'dead', detail: `${key} has not answered for ${countText(Math.floor(failingMs / 60_000), 'minute')}` }
  }

  #paused({ entry }: QueuedTask, { pausedUntil }: SitePolicy): Admission {
    const { clock } = this.#options
    if (pausedUntil !== undefined) return { kind: 'wait', waitMs: Math.max(1, pausedUntil - clock.now()), reason: 'paused' }
    const keptMs = PAUSED_KEPT_MS - (clock.mono() - entry.takenMono)
    return { kind: 'wait', waitMs: keptMs > 0 ? keptMs : PAUSED_SPILL_MS, reason: 'paused' }
  }

  async #acquire(
    { entry, walk }: QueuedTask,
    pace: SitePolicy,
    robots: { verdict: string; rule: string | null },
    address: string | undefined,
  ): Promise<Admission> {
    const lease = await this.#options.leases.acquire(pace, true, address)
    if (lease.kind === 'wait') return lease
    if (entry.isCurrent() || walk.hops > 0) return { kind: 'admitted', lease, robots: { verdict: robots.verdict, rule: robots.rule } }
    // The partition went meanwhile, and its next owner was told nothing of this one.
    await this.#options.leases.release(lease, { kind: 'none' })
    return { kind: 'gone' }
  }

  /** A delay that is too long for a place in a window is kept all the same: its tasks spill, at the pace that the site asks for. */
  #crawlDelayMs({ key, crawlDelayMs: configuredMs }: SitePolicy, robotsMs: number): number {
    const { crawlDelayMaxMs, observer } = this.#options
    const { crawlDelayMs, isParked } = effectiveCrawlDelay(configuredMs, robotsMs, crawlDelayMaxMs)
    if (isParked) observer.emit('SiteParked', { key, reason: 'crawl-delay', forMs: crawlDelayMs })
    return crawlDelayMs
  }

  #endOf(task: UrlTask): EndWithoutRequest | undefined {
    const { clock, isCrawlStopped } = this.#options
    if (task.expiresAt !== null && task.expiresAt <= clock.now()) return { kind: 'EXPIRED', reason: 'expired' }
    if (task.crawlId !== null && isCrawlStopped(task.crawlId)) return { kind: 'REFUSED', reason: 'crawl-stopped' }
    return undefined
  }

  async #isFinished({ task, checkedMono }: QueuedTask): Promise<boolean> {
    const { state, gate, clock } = this.#options
    if (clock.mono() - checkedMono < CHECK_AGE_MS) return false
    const [finished] = await gate.run(() => state.isFinished([{ taskId: task.taskId, attempt: task.attempt }]))
    return finished === true
  }

  /** A budget that is full of pages ends the task. One whose places are held may have one for it yet: a failed task gives its own back. */
  async #reserve(task: UrlTask): Promise<Admission | undefined> {
    const { state, gate, budgetsOf, holdMs } = this.#options
    const budgets = budgetsOf(task)
    if (budgets.length === 0) return undefined
    const full = await gate.run(() => state.reserve(task.taskId, budgets, holdMs))
    if (full === undefined) return undefined
    if (full.isHeld) return { kind: 'no-place' }
    return { kind: 'ended', end: { kind: 'REFUSED', reason: budgets.find(({ id }) => id === full.id)?.reason ?? 'budget' } }
  }
}
