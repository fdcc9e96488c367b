import { grouped } from '../../src/kernel/grouped.ts'
import type { SiteRequest } from './linked-site.ts'

/**
 * What a site's own log says of those who ask it. Times are ms of `performance.now()`; robots.txt counts for no pace.
 */
export interface PaceOfSite {
  readonly ratePerSecond: number
  readonly concurrency: number
  /** Requests that may come late into a window, on a busy machine; 2 where not given. */
  readonly lateArrivals?: number
  /** From the end of a request to the start of the next. Shape: 0 for a host that has none; none has where not given. */
  readonly crawlDelayMsOf?: (host: string) => number
  /** Whoever asked was gone before it could have told others how it was answered. Nobody was where not given. */
  readonly isLost?: (request: SiteRequest) => boolean
}

const WINDOWS_SECONDS = [1, 3, 10]
/** Starts keep the pace; on a busy machine some arrive late and close to those behind them. Requests, and share of the rate. */
const LATE_ARRIVALS = 2
const JITTER_SHARE = 0.15
/** Between the clock of the store, or the wall clock, and ours. */
export const CLOCK_SLACK_MS = 5
/** An answer is on its way to the store, while another request of the same host may start. */
const HEARD_MS = 500
/** From the start of a request to its arrival, where a machine has 20 times the work that it can do. */
const LATE_MS = 2_000

/**
 * Where a host was asked faster than the pace allows: over windows of several lengths, since a short burst and a slightly wrong rate show
 * in different ones; sooner than its crawl delay; or while it had asked to be left alone. Shape: empty where all was kept.
 */
export function paceViolations(requests: readonly SiteRequest[], pace: PaceOfSite): string[] {
  const { ratePerSecond, concurrency, lateArrivals = LATE_ARRIVALS } = pace
  const violations: string[] = []
  for (const [host, own] of byHost(requests)) {
    for (const seconds of WINDOWS_SECONDS) {
      const { count, at } = mostWithin(own, seconds * 1_000)
      const allowed = ratePerSecond * (seconds + JITTER_SHARE) + lateArrivals
      if (count > allowed)
        violations.push(`${host} was asked ${count} times within ${seconds} s (from ${Math.round(at)}), at a rate of ${ratePerSecond}`)
    }
    const most = mostOpen(own)
    if (most > concurrency) violations.push(`${host} was asked ${most} times at once, at a concurrency of ${concurrency}`)
    violations.push(...crawlDelayViolations(host, own, pace), ...backOffViolations(host, own, pace))
  }
  return violations
}

/** No load can make a violation of what was none: the end of a request is taken from before its answer left, the start from its arrival. */
function crawlDelayViolations(host: string, own: readonly SiteRequest[], { crawlDelayMsOf, isLost }: PaceOfSite): string[] {
  const delayMs = crawlDelayMsOf?.(host) ?? 0
  if (delayMs === 0) return []
  const violations: string[] = []
  let lastEnd = Number.NEGATIVE_INFINITY
  for (const request of own) {
    if (request.at - lastEnd < delayMs - CLOCK_SLACK_MS)
      violations.push(`${host} was asked ${Math.round(request.at - lastEnd)} ms after it had answered, at a crawl delay of ${delayMs}`)
    // When a process that was killed had an answer, and whether it had it, nobody knows.
    const end = isLost?.(request) === true ? request.at : (request.sentAt ?? request.at)
    lastEnd = Math.max(lastEnd, end)
  }
  return violations
}

function backOffViolations(host: string, own: readonly SiteRequest[], { concurrency, isLost }: PaceOfSite): string[] {
  const violations: string[] = []
  for (const answered of own) {
    const { sentAt, retryAfterMs } = answered
    if (sentAt === undefined || retryAfterMs === undefined || isLost?.(answered) === true) continue
    // Where one request runs at a time the next can't start before the store has learnt how this one ended. Where several do, the others
    // may have started before that, however late they arrive on a busy machine.
    const from = sentAt + (concurrency > 1 ? HEARD_MS : 0)
    const within = own.filter((other) => other.at > from && other.at < sentAt + retryAfterMs - CLOCK_SLACK_MS)
    const started = within.slice(0, concurrency - 1).filter((other) => other.at < sentAt + LATE_MS)
    for (const { at } of within.slice(started.length))
      violations.push(`${host} was asked ${Math.round(at - sentAt)} ms after a 429 with a Retry-After of ${retryAfterMs} ms`)
  }
  return violations
}

/** Of the busiest host. */
export function mostPerSecond(requests: readonly SiteRequest[]): number {
  return Math.max(0, ...[...byHost(requests).values()].map((own) => mostWithin(own, 1_000).count))
}

/** Of the busiest host. */
export function mostAtOnce(requests: readonly SiteRequest[]): number {
  return Math.max(0, ...[...byHost(requests).values()].map(mostOpen))
}

/** Requests that began within [from, to), per second. */
export function speed(requests: readonly SiteRequest[], from: number, to: number): number {
  return (tasks(requests).filter(({ at }) => at >= from && at < to).length * 1_000) / (to - from)
}

/** Share of the speed before that counts as full speed: the machine has other work. */
export const FULL_SPEED = 0.7
/** Of the speed before a fault. */
export const SPEED_WINDOW_MS = 2_000

/** ms from `from` until a second begins in which the site is asked at least at `perSecond`; undefined: never. */
export function msUntilSpeed(requests: readonly SiteRequest[], from: number, perSecond: number): number | undefined {
  const starts = tasks(requests).map(({ at }) => at)
  const first = starts
    .filter((at) => at >= from)
    .find((at) => starts.filter((other) => other >= at && other < at + 1_000).length >= perSecond)
  return first === undefined ? undefined : first - from
}

/** ms from a fault until the sites were asked about as often as before it; null: never, the crawl had ended before. */
export function msUntilFullSpeedAgain(requests: readonly SiteRequest[], at: number): number | null {
  const ms = msUntilSpeed(requests, at, FULL_SPEED * speed(requests, at - SPEED_WINDOW_MS, at))
  return ms === undefined ? null : Math.round(ms)
}

/** ms from `from` until the last request before the site was left alone; `until` bounds the look. */
export function msUntilQuiet(requests: readonly SiteRequest[], from: number, until: number): number {
  const within = tasks(requests).filter(({ at }) => at >= from && at < until)
  return Math.max(0, ...within.map(({ at }) => at - from))
}

/** Requests that count for the pace. */
export function tasks(requests: readonly SiteRequest[]): SiteRequest[] {
  return requests.filter(({ path }) => path !== '/robots.txt')
}

const byHost = (requests: readonly SiteRequest[]): Map<string, SiteRequest[]> => grouped(tasks(requests), ({ host }) => host)

function mostWithin(own: readonly SiteRequest[], ms: number): { count: number; at: number } {
  let most = { count: 0, at: 0 }
  for (let first = 0, next = 0; first < own.length; first += 1) {
    const at = own[first]?.at ?? 0
    while (next < own.length && (own[next]?.at ?? 0) < at + ms) next += 1
    if (next - first > most.count) most = { count: next - first, at }
  }
  return most
}

function mostOpen(own: readonly SiteRequest[]): number {
  return Math.max(0, ...own.map(({ at }) => own.filter((other) => other.at <= at && (other.endedAt ?? Infinity) > at).length))
}
