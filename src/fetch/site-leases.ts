import type { PolitenessKey } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import type { SitePolicy } from '../politeness/policy.ts'
import type {
  HealthRules,
  KnownHealth,
  LeaseOwner,
  LimiterKey,
  ReleasedState,
  StateStore,
  StoreBirth,
  StoreServer,
  WaitReason,
} from '../state/state-store.ts'
import type { PaceReport } from './pace-report.ts'
import { isSpaced, TIMER_SLACK_MS } from './send-spacing.ts'
import type { StoreGate } from './store-gate.ts'

export interface SiteLeasesOptions {
  readonly state: Pick<StateStore, 'acquire' | 'release' | 'reassert' | 'reportLate' | 'startAgain'>
  readonly gate: StoreGate
  readonly owner: LeaseOwner
  /** Longest request, with all its timeouts. */
  readonly leaseMs: number
  readonly rules: HealthRules
  readonly clock: Clock
  readonly observer: Observer
}

/** Leave to make one request. */
export interface SiteLease {
  readonly kind: 'lease'
  readonly leaseId: string
  /** The site first, then its address where that is paced as well. */
  readonly keys: readonly [LimiterKey, ...LimiterKey[]]
  /** The last reset of the site that was known when it was asked for. */
  readonly resetAt: number
  /** The address that is paced as well: the request goes there and nowhere else. */
  readonly address: string | undefined
  /** Monotonic ms before which the request must not leave. */
  readonly startMono: number
  /** The earliest moment that the store may have meant by that: what leaves later than this is late. */
  readonly beatMono: number
  /** Requests of the site at the same time that are allowed now. */
  readonly concurrency: number
}

export interface SiteWait {
  readonly kind: 'wait'
  readonly waitMs: number
  readonly reason: WaitReason
  readonly concurrency?: number
}

/** What the site must be left alone for now, as far as this answer says. */
export interface SiteClosed {
  readonly forMs: number
  readonly reason: 'back-off' | 'retry-after' | 'breaker'
}

interface Remembered {
  readonly backOffUntil: number
  readonly isAsked: boolean
  readonly allowed: number | null
  readonly rateFactor: number
  readonly trips: number
  readonly parkedUntil: number
  /** The last reset that was known then. */
  readonly resetAt: number
}

/**
 * A start that is due within this is taken now, and waited for here: so that requests leave on their beat, not a way to the store later.
 */
const AHEAD_MS = 20
/** So long before a start the turn of its task comes: it has to ask the store for more than its lease. */
export const WAKE_AHEAD_MS = 15
/** A start that is so late, and by so much of the gap between two, is asked for again. */
const STALE_MS = 10
const STALE_SHARE = 0.1
/** Keys of which anything is remembered. */
const SITES_KEPT = 20_000
const REASSERT_AT_ONCE = 200

/**
 * The limiter as the fetch stage uses it: a lease before each request, and what came of it afterwards. What answers have taught lies in
 * the store, for all workers; what this worker was told of it is remembered as well, so that a store that comes back empty learns it
 * again before a site is asked, and a back-off that we know of is kept whatever the store says.
 */
export class SiteLeases {
  readonly #options: SiteLeasesOptions
  readonly #known = new RecentMap<PolitenessKey, Remembered>(SITES_KEPT)
  /** The memory of the store that has heard what is known here. */
  #birth: StoreBirth | undefined
  #server: StoreServer | undefined
  #reasserting: Promise<void> = Promise.resolve()

  constructor(options: SiteLeasesOptions) {
    this.#options = options
  }

  /** Errors: those of the store other than STATE_UNAVAILABLE, which is waited out. */
  async acquire(pace: SitePolicy, countsForRate: boolean, address?: string): Promise<SiteLease | SiteWait> {
    const { state, gate, owner, leaseMs, clock } = this.#options
    const { key, ratePerSecond, burst, concurrency, crawlDelayMs, resetAt } = pace
    const limits = { ratePerSecond, burst, concurrency, crawlDelayMs }
    const own: LimiterKey = { key, ...limits }
    const keys: SiteLease['keys'] = address === undefined ? [own] : [own, { key: addressKey(address), ...limits }]
    const closed = this.#backOffOf(keys, resetAt)
    if (closed !== undefined) return closed
    let askedMono = clock.mono()
    const answer = await gate.run(() => {
      askedMono = clock.mono()
      return state.acquire({ keys, leaseMs, owner, countsForRate, aheadMs: AHEAD_MS, resetAt })
    })
    await this.#reassert(answer)
    if (answer.kind === 'lease') {
      const { leaseId, startInMs } = answer
      // The store said it at some moment between the question and now.
      const [beatMono, startMono] = [askedMono + startInMs, clock.mono() + startInMs]
      return { kind: 'lease', leaseId, keys, resetAt, address, startMono, beatMono, concurrency: answer.concurrency }
    }
    // A place that another request holds is free when it is free.
    const aheadMs = answer.reason === 'concurrency' ? 0 : WAKE_AHEAD_MS
    return { kind: 'wait', waitMs: Math.max(1, answer.waitMs - aheadMs), reason: answer.reason, concurrency: answer.concurrency }
  }

  /**
   * The lease has ended by `mono`, as far as this process can know: it may have stood still for longer than its lease lives, and another
   * one have the place. The wall clock has no part in it.
   */
  endsBefore({ beatMono }: SiteLease, mono: number): boolean {
    return beatMono + this.#options.leaseMs < mono
  }

  /**
   * The request has not left at its moment, by more than a little: this process stood still. Others of the site may have been given the
   * moments behind it.
   */
  isStale({ keys, beatMono }: SiteLease): boolean {
    return mayOthersStart(keys) && this.#options.clock.mono() - beatMono > Math.max(STALE_MS, intervalOf(keys) * STALE_SHARE)
  }

  /** The same where a connection had to be made: others may have been given moments, or are before the store learns of this one. */
  isOvertaken({ keys, beatMono }: SiteLease): boolean {
    return mayOthersStart(keys) && this.#options.clock.mono() - beatMono > Math.max(TIMER_SLACK_MS, (intervalOf(keys) - AHEAD_MS) / 2)
  }

  /**
   * Takes another moment. Shape: the lease as it counts from then on. Errors: those of the store other than STATE_UNAVAILABLE, which is
   * waited out.
   */
  async startAgain(lease: SiteLease): Promise<SiteLease> {
    const { state, gate, clock } = this.#options
    let askedMono = clock.mono()
    const inMs = await gate.run(() => {
      askedMono = clock.mono()
      return state.startAgain(lease.leaseId, lease.keys)
    })
    return { ...lease, beatMono: askedMono + inMs, startMono: clock.mono() + inMs }
  }

  /**
   * The request has left. Where others of the site may start meanwhile the store learns at once how late that was, else with the release.
   */
  sent({ leaseId, keys, beatMono }: SiteLease): void {
    const lateMs = this.#options.clock.mono() - beatMono
    if (!mayOthersStart(keys) || lateMs < TIMER_SLACK_MS) return
    const names = keys.map(({ key }) => key)
    // A store that is away learns it with the release.
    this.#options.state.reportLate(leaseId, names, lateMs - TIMER_SLACK_MS).catch(() => undefined)
  }

  /** Ends the lease and tells what came of the request, in one step. Resolves with why the site must be left alone now, if it must. */
  async release(lease: SiteLease, report: PaceReport, sentMono?: number): Promise<SiteClosed | undefined> {
    const { state, gate, rules, clock } = this.#options
    const endMono = clock.mono()
    const lateMs = sentMono === undefined ? 0 : sentMono - lease.beatMono
    const late = lateMs < TIMER_SLACK_MS || !isSpaced(lease.keys[0]) ? {} : { sentLateMs: lateMs - TIMER_SLACK_MS }
    const learnt = { ...report, ...late, resetAt: lease.resetAt, rules }
    // A store that is away for a while counts from the end of the request all the same.
    const states = await gate.run(() => state.release(lease.leaseId, lease.keys, { ...learnt, endedAgoMs: clock.mono() - endMono }))
    const closed = lease.keys.map(({ key }, index) => this.#learn(key, states[index], lease.resetAt))
    return closed.reduce((longest, each) => ((each?.forMs ?? 0) > (longest?.forMs ?? 0) ? each : longest), undefined)
  }

  #learn(key: PolitenessKey, state: ReleasedState | undefined, resetAt: number): SiteClosed | undefined {
    if (state === undefined) return undefined
    const { observer, clock } = this.#options
    const { backOffMs, isAsked, allowed, rateFactor, trips, parkedMs, change } = state
    if (change === 'slowed') observer.emit('SiteSlowed', { key, concurrency: Math.floor(allowed ?? 1), rateFactor })
    if (change === 'opened') observer.emit('SiteBreakerOpened', { key, trips, forMs: parkedMs })
    if (change === 'closed') observer.emit('SiteBreakerClosed', { key })
    if (backOffMs > 0 || allowed !== null || rateFactor < 1 || trips > 0) {
      const now = clock.mono()
      const [backOffUntil, parkedUntil] = [now + backOffMs, now + parkedMs]
      this.#known.set(key, { backOffUntil, isAsked, allowed, rateFactor, trips, parkedUntil, resetAt })
    } else this.#known.delete(key)
    if (backOffMs === 0 && parkedMs === 0) return undefined
    if (parkedMs > backOffMs) return { forMs: parkedMs, reason: 'breaker' }
    return { forMs: backOffMs, reason: isAsked ? 'retry-after' : 'back-off' }
  }

  /** Shape: forgets what was reset since it was learnt. */
  #backOffOf(keys: readonly LimiterKey[], resetAt: number): SiteWait | undefined {
    const now = this.#options.clock.mono()
    for (const { key } of keys) {
      const known = this.#known.get(key)
      if (known !== undefined && known.resetAt < resetAt) this.#known.delete(key)
      else if (known !== undefined && known.backOffUntil > now)
        return { kind: 'wait', waitMs: Math.ceil(known.backOffUntil - now), reason: known.isAsked ? 'retry-after' : 'back-off' }
    }
    return undefined
  }

  /**
   * Once for each time that the store has lost its memory, or that another server has it, which may not have the last moments of it;
   * whoever asks meanwhile waits for it. Errors: those of the store other than STATE_UNAVAILABLE.
   */
  #reassert({ birth, server }: { readonly birth: StoreBirth; readonly server?: StoreServer }): Promise<void> {
    const isLost = birth !== this.#birth
    if (!isLost && server === this.#server) return this.#reasserting
    this.#birth = birth
    this.#server = server
    this.#reasserting = this.#reasserting.then(() => this.#reassertAll(isLost))
    return this.#reasserting
  }

  async #reassertAll(isLost: boolean): Promise<void> {
    const { state, gate, clock, observer } = this.#options
    const begunMono = clock.mono()
    // Of a memory that is there, what others have learnt since counts, but for what a site has asked for: that ends by time, or by a reset.
    const known = [...this.#known].filter(([, { backOffUntil }]) => isLost || backOffUntil > begunMono)
    for (let start = 0; start < known.length; start += REASSERT_AT_ONCE) {
      const now = clock.mono()
      const calls = known.slice(start, start + REASSERT_AT_ONCE).map(([key, { backOffUntil, parkedUntil, resetAt, ...rest }]) => {
        const backOff = { backOffMs: ceilLeft(backOffUntil, now), isAsked: rest.isAsked }
        const left: KnownHealth = isLost ? { ...rest, ...backOff, parkedMs: ceilLeft(parkedUntil, now) } : { ...NOTHING_LEARNT, ...backOff }
        return gate.run(() => state.reassert(key, left, resetAt))
      })
      await Promise.all(calls)
    }
    if (known.length > 0) observer.emit('SitesReasserted', { count: known.length })
  }
}

const NOTHING_LEARNT = { allowed: null, rateFactor: 1, trips: 0, parkedMs: 0 } as const

/** Others of the site may start while a request is on its way, and are spaced. */
function mayOthersStart(keys: readonly LimiterKey[]): boolean {
  return keys.some((key) => isSpaced(key) && key.concurrency > 1)
}

function intervalOf(keys: readonly LimiterKey[]): number {
  return Math.max(...keys.map(({ ratePerSecond }) => 1_000 / ratePerSecond))
}

function ceilLeft(until: number, now: number): number {
  return Math.max(0, Math.ceil(until - now))
}

/** A colon is in no host, but for an IPv6 address, which has brackets. */
function addressKey(address: string): PolitenessKey {
  return `ip:${address}` as PolitenessKey
}
