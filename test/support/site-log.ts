import type { SiteRequest } from './linked-site.ts'

/**
 * What a site's own log says of those who ask it. Times are ms of `performance.now()`; robots.txt counts for no pace.
 */
export interface PaceOfSite {
  readonly ratePerSecond: number
  readonly concurrency: number
}

const WINDOWS_SECONDS = [1, 3, 10]
/** Starts keep the pace; on a busy machine some arrive late and close to those behind them. Requests, and share of the rate. */
const LATE_ARRIVALS = 2
const JITTER_SHARE = 0.15

/**
 * Where a host was asked faster than the pace allows: over windows of several lengths, since a short burst and a slightly wrong rate show
 * in different ones. Shape: empty where it was kept.
 */
export function paceViolations(requests: readonly SiteRequest[], pace: PaceOfSite): string[] {
  const violations: string[] = []
  for (const [host, own] of byHost(requests)) {
    for (const seconds of WINDOWS_SECONDS) {
      const { count, at } = mostWithin(own, seconds * 1_000)
      const allowed = pace.ratePerSecond * (seconds + JITTER_SHARE) + LATE_ARRIVALS
      if (count > allowed)
        violations.push(`${host} was asked ${count} times within ${seconds} s (from ${Math.round(at)}), at a rate of ${pace.ratePerSecond}`)
    }
    const most = mostOpen(own)
    if (most > pace.concurrency) violations.push(`${host} was asked ${most} times at once, at a concurrency of ${pace.concurrency}`)
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

/** ms from `from` until a second begins in which the site is asked at least at `perSecond`; undefined: never. */
export function msUntilSpeed(requests: readonly SiteRequest[], from: number, perSecond: number): number | undefined {
  const starts = tasks(requests).map(({ at }) => at)
  const first = starts
    .filter((at) => at >= from)
    .find((at) => starts.filter((other) => other >= at && other < at + 1_000).length >= perSecond)
  return first === undefined ? undefined : first - from
}

/** ms from `from` until the last request before the site was left alone; `until` bounds the look. */
export function msUntilQuiet(requests: readonly SiteRequest[], from: number, until: number): number {
  const within = tasks(requests).filter(({ at }) => at >= from && at < until)
  return Math.max(0, ...within.map(({ at }) => at - from))
}

function tasks(requests: readonly SiteRequest[]): SiteRequest[] {
  return requests.filter(({ path }) => path !== '/robots.txt')
}

function byHost(requests: readonly SiteRequest[]): Map<string, SiteRequest[]> {
  const hosts = new Map<string, SiteRequest[]>()
  for (const request of tasks(requests)) {
    const own = hosts.get(request.host)
    if (own === undefined) hosts.set(request.host, [request])
    else own.push(request)
  }
  return hosts
}

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
