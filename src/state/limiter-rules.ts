import type { PolitenessKey } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import { atOnce, learn, mergeHealth, newSiteHealth, paceInForce, type SiteHealth } from './site-health.ts'
import type {
  AnswerReport,
  KnownHealth,
  LeaseOwner,
  LimiterKey,
  LimiterRequest,
  LimiterState,
  ReleasedState,
  WaitReason,
} from './state-store.ts'

/**
 * The rules of the limiter for one key, pure: state and time are arguments. LMDB runs them as they stand here; redis/scripts/limiter.ts
 * holds the same rules in Lua, and the contract suite asks both the same questions.
 *
 * Rate is kept as a debt of requests that drains at `ratePerSecond` (GCRA counted in requests, not in time), because the rate of a
 * key may change between two requests: the debt then drains at the new rate, and neither an old slow rate nor an old fast one lives on.
 *
 * Times are ms of the store's clock. Beside each end of a wait its whole length is kept, for files on LMDB of an older format
 * (lmdb/file-time.ts).
 */
export interface KeyPace {
  /** Requests not yet drained at `debtAt`. */
  debt: number
  debtAt: number
  /** Pace of the last request, for who asks without one (`limiterState`). */
  ratePerSecond: number
  burst: number
  concurrency: number
  /** End of the last request that counted; undefined: none is known. */
  lastEndAt: number | undefined
  delayUntil: number
  delayForMs: number
  backOffUntil: number
  backOffForMs: number
  /** The site named the end of the back-off. */
  isAsked: boolean
  health: SiteHealth
  /** The last reset that was heard of, epoch ms of who gave it: an ordinal, never compared with the store's clock; 0: none. */
  resetAt: number
  leases: Lease[]
}

export interface Lease {
  readonly id: string
  readonly until: number
  readonly forMs: number
  /** Crawl delay that follows its end; 0 for robots.txt. */
  readonly crawlDelayMs: number
  /** False for robots.txt: its end starts no crawl delay. */
  readonly counts: boolean
  readonly owner: LeaseOwner
}

export interface Wait {
  /** 0: nothing keeps it. */
  readonly waitMs: number
  /** Of a start that may be given out ahead of its time; 0: at once. */
  readonly startInMs: number
  /** Requests at the same time that are allowed now. */
  readonly concurrency: number
  readonly reason: WaitReason
  readonly key: PolitenessKey
}

/** While all places are taken one asks again after this, for a release tells nobody. */
export const LEASE_POLL_MS = 250

/** A key is forgotten this long after its last wait has ended: until then a longer crawl delay can still count from its last end. */
export const KEY_IDLE_MS = 600_000
/** One that is parked does not answer: since when counts on over a night in which nobody may ask, but not over days in which nobody did. */
export const PARKED_IDLE_MS = 86_400_000

export function newKeyPace(): KeyPace {
  return {
    debt: 0,
    debtAt: 0,
    ratePerSecond: 1,
    burst: 1,
    concurrency: 1,
    lastEndAt: undefined,
    delayUntil: 0,
    delayForMs: 0,
    backOffUntil: 0,
    backOffForMs: 0,
    isAsked: false,
    health: newSiteHealth(),
    resetAt: 0,
    leases: [],
  }
}

/** A request that nobody could answer. Errors: INTERNAL, naming the value. */
export function checkLimiterRequest(request: LimiterRequest): void {
  for (const key of request.keys) {
    check(key.ratePerSecond > 0 && Number.isFinite(key.ratePerSecond), key, 'ratePerSecond', key.ratePerSecond, 'a number above 0')
    check(key.burst >= 1, key, 'burst', key.burst, 'at least 1')
    check(key.concurrency >= 1, key, 'concurrency', key.concurrency, 'at least 1')
    check(key.crawlDelayMs >= 0 && Number.isFinite(key.crawlDelayMs), key, 'crawlDelayMs', key.crawlDelayMs, 'at least 0')
  }
  if (!(request.leaseMs > 0)) throw new MillraceError('INTERNAL', `a lease of ${request.leaseMs} ms was asked for; it must be above 0`)
}

function check(holds: boolean, key: LimiterKey, name: string, value: number, expected: string): void {
  if (!holds) throw new MillraceError('INTERNAL', `the limiter was asked for ${key.key} with ${name} ${value}; expected ${expected}`)
}

/** Ends the leases whose time is up: their crawl delay counts from their expiry, not from now. */
export function endExpiredLeases(pace: KeyPace, now: number): void {
  if (!pace.leases.some((lease) => lease.until <= now)) return
  for (const lease of pace.leases) if (lease.until <= now && lease.counts) endRequest(pace, lease.until, lease.crawlDelayMs)
  pace.leases = pace.leases.filter((lease) => lease.until > now)
}

/** A request ended at `at`: the next one starts no sooner than the crawl delay later. Never shortens. */
export function endRequest(pace: KeyPace, at: number, crawlDelayMs: number): void {
  pace.lastEndAt = Math.max(pace.lastEndAt ?? at, at)
  if (at + crawlDelayMs > pace.delayUntil) {
    pace.delayUntil = at + crawlDelayMs
    pace.delayForMs = crawlDelayMs
  }
}

function extendBackOff(pace: KeyPace, now: number, forMs: number, isAsked = false): void {
  if (now + forMs <= pace.backOffUntil) return
  pace.isAsked = isAsked
  pace.backOffUntil = now + forMs
  pace.backOffForMs = forMs
}

/**
 * What keeps a request of this key from starting, the longest wait where there are several. Shape: expired leases have been ended
 * before. `bornAt`: when the store was found empty; undefined: it was not. Units: whole ms.
 */
export function waitOf(
  pace: KeyPace,
  key: LimiterKey,
  request: Pick<LimiterRequest, 'countsForRate' | 'aheadMs'>,
  now: number,
  bornAt: number | undefined,
): Wait {
  const { ratePerSecond, burst, concurrency, crawlDelayMs } = paceInForce(pace.health, key)
  let waitMs = 0
  let reason: WaitReason = 'rate'
  const consider = (ms: number, because: WaitReason): void => {
    if (ms <= waitMs) return
    waitMs = ms
    reason = because
  }
  consider(pace.backOffUntil - now, pace.isAsked ? 'retry-after' : 'back-off')
  consider(pace.health.openUntil - now, 'breaker')
  if (bornAt !== undefined) consider(bornAt + Math.max(crawlDelayMs, 1_000 / ratePerSecond) - now, 'warm-up')
  if (request.countsForRate) {
    consider(crawlDelayLeft(pace, crawlDelayMs, now), 'crawl-delay')
    consider(rateLeft(pace, ratePerSecond, burst, now), 'rate')
  }
  const startInMs = waitMs <= (request.aheadMs ?? 0) ? waitMs : 0
  if (startInMs > 0) waitMs = 0
  if (pace.leases.length >= concurrency) {
    const soonest = Math.min(...pace.leases.map((lease) => lease.until))
    consider(Math.max(1, Math.min(soonest - now, LEASE_POLL_MS)), 'concurrency')
  }
  return { waitMs: waitMs > 0 ? Math.max(1, Math.ceil(waitMs)) : 0, startInMs, reason, concurrency, key: key.key }
}

function crawlDelayLeft(pace: KeyPace, crawlDelayMs: number, now: number): number {
  const since = pace.lastEndAt === undefined ? 0 : pace.lastEndAt + crawlDelayMs
  return Math.max(since, pace.delayUntil) - now
}

/** ms until the debt leaves room for one more request. The slack takes up what is lost in floating point, far below a microsecond. */
function rateLeft(pace: KeyPace, ratePerSecond: number, burst: number, now: number): number {
  const over = debtNow(pace, ratePerSecond, now) + 1 - burst
  return over <= 1e-9 ? 0 : (over / ratePerSecond) * 1_000
}

function debtNow(pace: KeyPace, ratePerSecond: number, now: number): number {
  return Math.max(0, pace.debt - ((now - pace.debtAt) * ratePerSecond) / 1_000)
}

/** Takes a place, and a turn where the request counts for the rate. `startAt`: now, or a little later. */
export function startRequest(pace: KeyPace, key: LimiterKey, lease: Lease, startAt: number): void {
  pace.leases.push(lease)
  pace.concurrency = key.concurrency
  if (lease.counts) takeTurn(pace, key, startAt)
}

function takeTurn(pace: KeyPace, key: LimiterKey, startAt: number): void {
  const { ratePerSecond, burst } = paceInForce(pace.health, key)
  pace.debt = debtNow(pace, ratePerSecond, startAt) + 1
  pace.debtAt = startAt
  pace.ratePerSecond = ratePerSecond
  pace.burst = burst
}

/** Gives a place back, and learns from the answer; a lease that is not known (it has expired) still ends a request. */
export function endLease(
  pace: KeyPace,
  leaseId: string,
  crawlDelayMs: number,
  report: AnswerReport | undefined,
  now: number,
): ReleasedState['change'] {
  hearReset(pace, report?.resetAt ?? 0)
  const lease = pace.leases.find((candidate) => candidate.id === leaseId)
  pace.leases = pace.leases.filter((candidate) => candidate.id !== leaseId)
  const endedAt = Math.max(0, now - (report?.endedAgoMs ?? 0))
  if (lease === undefined || lease.counts) endRequest(pace, endedAt, crawlDelayMs / pace.health.rateFactor)
  if (report?.backOffMs !== undefined) extendBackOff(pace, endedAt, report.backOffMs, report.isAsked)
  // A report that comes twice, since the first answer of the store was lost, teaches once.
  if (report === undefined || lease === undefined) return 'none'
  const startedAt = lease.until - lease.forMs
  if (report.sentLateMs !== undefined) countFromSend(pace, lease, report.sentLateMs)
  return learn(pace.health, report, { startedAt, now, concurrency: pace.concurrency }, report.rules)
}

/**
 * The process that held the lease is gone: its request may have left a moment before its end, later than it was to leave, and nobody told
 * so. The next one keeps its distance from now.
 */
export function endGoneLease(pace: KeyPace, lease: Lease, now: number): void {
  pace.leases = pace.leases.filter((other) => other !== lease)
  if (!lease.counts) return
  endRequest(pace, now, lease.crawlDelayMs)
  pace.debtAt = Math.max(pace.debtAt, now)
}

/** The next request keeps its distance from the moment in which this one left, not from the one in which it was to leave. */
function countFromSend(pace: KeyPace, lease: Lease, lateMs: number): void {
  if (lease.counts) pace.debtAt = Math.max(pace.debtAt, lease.until - lease.forMs + lateMs)
}

/** The same while the request is under way; nothing for a lease that is not known. */
export function leftLate(pace: KeyPace, leaseId: string, lateMs: number): void {
  const lease = pace.leases.find(({ id }) => id === leaseId)
  if (lease !== undefined) countFromSend(pace, lease, lateMs)
}

/**
 * The request of a lease did not leave at its start. ms until it may: nothing, unless the start of another one was given out meanwhile, or
 * counted from a later moment; then it takes another turn.
 */
export function startAgainIn(pace: KeyPace, key: LimiterKey, leaseId: string, now: number): number {
  const startedAt = countedStart(pace, leaseId)
  if (startedAt === undefined) return 0
  if (startedAt >= now) return startedAt - now
  if (pace.debtAt <= startedAt) return 0
  const { ratePerSecond, burst, crawlDelayMs } = paceInForce(pace.health, key)
  return Math.max(0, rateLeft(pace, ratePerSecond, burst, now), crawlDelayLeft(pace, crawlDelayMs, now))
}

/** Moves the start of a lease to `startAt`. Where another request has started since, the turn that was let go is not given back. */
export function moveStart(pace: KeyPace, key: LimiterKey, leaseId: string, startAt: number): void {
  const startedAt = countedStart(pace, leaseId)
  if (startedAt === undefined || startAt <= startedAt) return
  if (pace.debtAt > startedAt) takeTurn(pace, key, startAt)
  else pace.debtAt = startAt
  pace.leases = pace.leases.map((lease) => (lease.id === leaseId ? { ...lease, until: startAt + lease.forMs } : lease))
}

function countedStart(pace: KeyPace, leaseId: string): number | undefined {
  const lease = pace.leases.find(({ id }) => id === leaseId)
  return lease?.counts === true ? lease.until - lease.forMs : undefined
}

/**
 * Somebody says that the key was reset at `resetAt`. Where that is news, what answers have taught is forgotten: the back-off, the breaker
 * and the slow-down. What is owed by the pace itself stays: leases, the rate, the crawl delay. Shape: true where it was news.
 */
export function hearReset(pace: KeyPace, resetAt: number): boolean {
  if (resetAt <= pace.resetAt) return false
  pace.resetAt = resetAt
  pace.backOffUntil = 0
  pace.backOffForMs = 0
  pace.isAsked = false
  pace.health = newSiteHealth()
  return true
}

/** Takes over what a worker knew, where that is stricter; nothing of what was reset since it learnt it. */
export function takeOver(pace: KeyPace, known: KnownHealth, resetAt: number, now: number): void {
  if (resetAt < pace.resetAt) return
  hearReset(pace, resetAt)
  if (known.backOffMs > 0) extendBackOff(pace, now, known.backOffMs, known.isAsked)
  mergeHealth(pace.health, known, now)
}

export function limiterStateOf(pace: KeyPace, now: number): LimiterState {
  const nextMs = Math.max(rateLeft(pace, pace.ratePerSecond, pace.burst, now), crawlDelayLeft(pace, 0, now), 0)
  const { baselineMs, failingSince } = pace.health
  return {
    leases: pace.leases.length,
    nextMs: Math.ceil(nextMs),
    ...knownHealthOf(pace, now),
    latencyMs: Math.round(baselineMs),
    failingMs: failingSince === undefined ? 0 : Math.ceil(now - failingSince),
    atOnce: atOnce(pace.health) ?? null,
  }
}

export function knownHealthOf(pace: KeyPace, now: number): KnownHealth {
  const { allowed, rateFactor, trips, openUntil } = pace.health
  const backOffMs = Math.ceil(Math.max(0, pace.backOffUntil - now))
  return {
    backOffMs,
    isAsked: backOffMs > 0 && pace.isAsked,
    allowed: allowed ?? null,
    rateFactor,
    trips,
    parkedMs: Math.ceil(Math.max(0, openUntil - now)),
  }
}

/** True where nothing of the key matters any more. */
export function isIdle(pace: KeyPace, now: number): boolean {
  const drainedAt = pace.debtAt + (pace.debt / pace.ratePerSecond) * 1_000
  const lastWait = Math.max(pace.backOffUntil, pace.health.openUntil, pace.delayUntil, pace.lastEndAt ?? 0, drainedAt)
  return pace.leases.length === 0 && lastWait + (pace.health.trips > 0 ? PARKED_IDLE_MS : KEY_IDLE_MS) < now
}
