import type { AnswerReport, FailureKind, HealthRules, KnownHealth } from './state-store.ts'

/**
 * What the answers of a site say about the pace that it bears: fewer requests at the same time after "too many" or when it gets slow
 * (AIMD), and none at all while it does not answer (a breaker). Pure: time is an argument; LMDB runs these rules as they stand,
 * redis/scripts/site-health.ts holds the same in Lua.
 *
 * AIMD: 429 and 503 halve the requests at the same time; where there is one at most they halve the rate, down to a sixteenth of it. A
 * latency that has doubled against its slow mean halves the requests at the same time and leaves the rate alone, for a slow site that
 * is asked one by one slows us down by itself. Each good answer gives a part of a step back. Answers to requests that started before
 * the last cut say nothing about the pace after it.
 *
 * A site that asked for patience (429, 503 with a back-off) is tried with one request at a time behind it, until one that started after
 * that was answered well.
 *
 * Breaker: answers that do not come, one after the other, open it. Open, nothing starts; each opening is twice as long as the one
 * before. Then it is half open: one request at a time, and its answer closes it, or opens it again.
 */
export interface SiteHealth {
  /** Requests at the same time that the site bears, with a fraction; undefined: as many as the policy has. */
  allowed: number | undefined
  /** Share of the rate that the site bears. */
  rateFactor: number
  /** Slow and quick mean of the latency, over so many answers. */
  baselineMs: number
  recentMs: number
  samples: number
  /** Last cut. */
  cutAt: number
  /** Failures in a row, as a share of those that open the breaker. */
  strain: number
  /** Openings of the breaker since the last answer; 0: it is closed. */
  trips: number
  /** The breaker is half open from then on. */
  openUntil: number
  openForMs: number
  /** First failure since the last answer. */
  failingSince: number | undefined
  /** When the site last asked for patience, and has not answered well since; undefined: it did not. */
  triedSince: number | undefined
}

export function newSiteHealth(): SiteHealth {
  return {
    allowed: undefined,
    rateFactor: 1,
    baselineMs: 0,
    recentMs: 0,
    samples: 0,
    cutAt: 0,
    strain: 0,
    trips: 0,
    openUntil: 0,
    openForMs: 0,
    failingSince: undefined,
    triedSince: undefined,
  }
}

/** slowed: a cut. opened, closed: of the breaker. */
export type HealthChange = 'none' | 'slowed' | 'opened' | 'closed'

/** Share of `breakerFailures` that one failure counts for: a server that answers 500 is more alive than one that is not there. */
const WEIGHTS: Readonly<Record<FailureKind, number>> = { connect: 1, timeout: 1, server: 0.25 }
const LEAST_RATE = 1 / 16
const RATE_STEP = 1 / 16
/** Answers until a latency is known well enough to be compared: their plain mean. */
const SAMPLES_BEFORE_CUT = 16
/** Answers over which the slow mean moves from then on, and the quick one. */
const SLOW_SAMPLES = 256
const QUICK_SAMPLES = 8
/** One answer that hangs is no trend: it counts as this many times the mean at most. */
const MOST_OF_MEAN = 4
/** Where the quick mean stands after a score of answers that take twice as long. */
const DOUBLED = 1.75
/** Below this, more time says more about the network and about us than about the site. */
const LEAST_RISE_MS = 50

export interface AnsweredRequest {
  /** When the request started; the store's clock, like `now`. */
  readonly startedAt: number
  readonly now: number
  /** Requests at the same time as the policy has it. */
  readonly concurrency: number
}

/** Learns from an answer, or from its absence. */
export function learn(health: SiteHealth, report: AnswerReport, request: AnsweredRequest, rules: HealthRules): HealthChange {
  if (report.kind === 'none') return 'none'
  if (report.kind === 'overload' && report.backOffMs !== undefined) health.triedSince = request.now
  else if (report.kind === 'success' && request.startedAt >= (health.triedSince ?? 0)) health.triedSince = undefined
  const broke = report.failure === undefined ? close(health) : strain(health, report.failure, request, rules)
  // What was learnt before that was turned off would slow the site down for ever: nothing gives it back.
  if (!rules.isAdaptive) [health.allowed, health.rateFactor] = [undefined, 1]
  if (broke !== 'none' || !rules.isAdaptive) return broke
  if (report.kind === 'overload') return cut(health, request, true) ? 'slowed' : 'none'
  if (report.kind !== 'success') return 'none'
  if (isSlow(health, report.latencyMs)) return cut(health, request, false) ? 'slowed' : 'none'
  if (report.latencyMs === undefined || report.latencyMs <= 2 * health.baselineMs) raise(health, request.concurrency)
  return 'none'
}

function close(health: SiteHealth): HealthChange {
  const wasOpen = health.trips > 0
  health.strain = 0
  health.trips = 0
  health.openUntil = 0
  health.openForMs = 0
  health.failingSince = undefined
  return wasOpen ? 'closed' : 'none'
}

function strain(health: SiteHealth, failure: FailureKind, { startedAt, now }: AnsweredRequest, rules: HealthRules): HealthChange {
  if (rules.breakerFailures === 0) return 'none'
  health.failingSince ??= now
  // A request of the time before the opening: it is known by now.
  if (now < health.openUntil || startedAt < health.openUntil) return 'none'
  if (health.trips === 0) {
    health.strain += WEIGHTS[failure] / rules.breakerFailures
    if (health.strain < 1 - 1e-9) return 'none'
  }
  health.trips += 1
  health.strain = 0
  health.openForMs = Math.min(rules.maxParkMs, rules.firstParkMs * 2 ** Math.min(30, health.trips - 1))
  health.openUntil = now + health.openForMs
  return 'opened'
}

function cut(health: SiteHealth, { startedAt, now, concurrency }: AnsweredRequest, alsoRate: boolean): boolean {
  if (startedAt < health.cutAt) return false
  const present = Math.min(health.allowed ?? concurrency, concurrency)
  if (present > 1) health.allowed = Math.max(1, present / 2)
  else if (alsoRate && health.rateFactor > LEAST_RATE) {
    health.allowed = 1
    health.rateFactor = Math.max(LEAST_RATE, health.rateFactor / 2)
  } else return false
  health.cutAt = now
  return true
}

function raise(health: SiteHealth, concurrency: number): void {
  if (health.rateFactor < 1) health.rateFactor = Math.min(1, health.rateFactor + RATE_STEP)
  else if (health.allowed !== undefined) {
    // One more when as many have answered as may be under way.
    health.allowed += 1 / health.allowed
    if (health.allowed >= concurrency) health.allowed = undefined
  }
}

/** Takes a latency into the means. Shape: true once where it has doubled. */
function isSlow(health: SiteHealth, latencyMs: number | undefined): boolean {
  if (latencyMs === undefined) return false
  health.samples = Math.min(SAMPLES_BEFORE_CUT + 1, health.samples + 1)
  const isKnown = health.samples > SAMPLES_BEFORE_CUT
  const ms = health.samples === 1 ? latencyMs : Math.min(latencyMs, MOST_OF_MEAN * Math.max(1, health.baselineMs))
  health.baselineMs += (ms - health.baselineMs) / (isKnown ? SLOW_SAMPLES : health.samples)
  health.recentMs += (ms - health.recentMs) / Math.min(QUICK_SAMPLES, health.samples)
  if (!isKnown) return false
  if (health.recentMs <= DOUBLED * health.baselineMs || health.recentMs - health.baselineMs < LEAST_RISE_MS) return false
  // Begins anew, so that one rise is one cut.
  health.recentMs = health.baselineMs
  return true
}

/** True where the answers ask for less than the policy, or for nothing at all. */
export function isStrained({ allowed, rateFactor, trips, triedSince }: SiteHealth): boolean {
  return allowed !== undefined || rateFactor < 1 || trips > 0 || triedSince !== undefined
}

export interface PaceInForce {
  readonly ratePerSecond: number
  readonly burst: number
  readonly concurrency: number
  readonly crawlDelayMs: number
}

/** Requests at the same time that the answers leave, whatever the policy has; undefined: they ask for no less. */
export function atOnce({ allowed, trips, triedSince }: SiteHealth): number | undefined {
  if (trips > 0 || triedSince !== undefined) return 1
  return allowed === undefined ? undefined : Math.max(1, Math.floor(allowed + 1e-9))
}

/** The pace of the policy as far as the site bears it. Never above the policy. */
export function paceInForce(health: SiteHealth, policy: PaceInForce): PaceInForce {
  const { rateFactor } = health
  return {
    ratePerSecond: policy.ratePerSecond * rateFactor,
    burst: rateFactor < 1 ? 1 : policy.burst,
    concurrency: Math.max(1, Math.floor(Math.min(policy.concurrency, atOnce(health) ?? policy.concurrency) + 1e-9)),
    crawlDelayMs: policy.crawlDelayMs / rateFactor,
  }
}

/** What another worker knew of the key: of each the stricter one counts. */
export function mergeHealth(health: SiteHealth, known: KnownHealth, now: number): void {
  if (known.allowed !== null) health.allowed = Math.min(health.allowed ?? known.allowed, known.allowed)
  health.rateFactor = Math.min(health.rateFactor, known.rateFactor)
  if (known.trips > health.trips) {
    health.trips = known.trips
    health.failingSince ??= now
  }
  if (known.parkedMs > 0 && now + known.parkedMs > health.openUntil) {
    health.openUntil = now + known.parkedMs
    health.openForMs = known.parkedMs
  }
}
