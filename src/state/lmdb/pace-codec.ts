import type { KeyPace, Lease } from '../limiter-rules.ts'
import { isStrained, newSiteHealth, type SiteHealth } from '../site-health.ts'
import type { FileTime } from './file-time.ts'
import type { Json } from './lmdb-file.ts'

/**
 * A key's pace as it lies in the file: short arrays, owners once each, all times of one clock (file-time.ts). Leases outlive a
 * start of the machine too; their processes are then found to be gone.
 */
export type StoredPace = readonly [
  clock: number,
  debt: number,
  debtAt: number,
  ratePerSecond: number,
  burst: number,
  lastEndAt: number | null,
  delayUntil: number,
  delayForMs: number,
  backOffUntil: number,
  backOffForMs: number,
  leases: readonly StoredLease[],
  owners: readonly StoredOwner[],
  concurrency: number,
  isAsked: 0 | 1,
  health: StoredHealth | null,
  resetAt?: number,
]
type StoredHealth = readonly [
  allowed: number | null,
  rateFactor: number,
  baselineMs: number,
  recentMs: number,
  samples: number,
  cutAt: number,
  strain: number,
  trips: number,
  openUntil: number,
  openForMs: number,
  failingSince: number | null,
  triedSince: number | null,
]
type StoredLease = readonly [id: string, until: number, forMs: number, crawlDelayMs: number, counts: 0 | 1, owner: number]
type StoredOwner = readonly [workerId: string, host: string, pid: number, pidStartedAt: string]

export function encodePace(pace: KeyPace, time: FileTime): Json {
  const owners: StoredOwner[] = []
  const index = new Map<string, number>()
  const ownerIndex = ({ owner }: Lease): number => {
    const key = `${owner.workerId}\n${owner.host}\n${owner.pid}\n${owner.pidStartedAt}`
    const known = index.get(key)
    if (known !== undefined) return known
    index.set(key, owners.length)
    return owners.push([owner.workerId, owner.host, owner.pid, owner.pidStartedAt]) - 1
  }
  const leases = pace.leases.map(
    (lease): StoredLease => [lease.id, lease.until, lease.forMs, lease.crawlDelayMs, lease.counts ? 1 : 0, ownerIndex(lease)],
  )
  const stored = [
    time.clock,
    pace.debt,
    pace.debtAt,
    pace.ratePerSecond,
    pace.burst,
    pace.lastEndAt ?? null,
    pace.delayUntil,
    pace.delayForMs,
    pace.backOffUntil,
    pace.backOffForMs,
    leases,
    owners,
    pace.concurrency,
    pace.isAsked ? 1 : 0,
    encodeHealth(pace.health),
  ]
  return pace.resetAt === 0 ? stored : [...stored, pace.resetAt]
}

/** Shape: null for a site of which nothing is known. */
function encodeHealth(health: SiteHealth): StoredHealth | null {
  const { allowed, rateFactor, baselineMs, recentMs, samples, cutAt, strain, trips, openUntil, openForMs, failingSince, triedSince } =
    health
  if (samples === 0 && strain === 0 && failingSince === undefined && !isStrained(health)) return null
  // A hundredth of a ms is exact enough for a mean, and short.
  const [baseline, recent] = [Math.round(baselineMs * 100) / 100, Math.round(recentMs * 100) / 100]
  const times = [openUntil, openForMs, failingSince ?? null, triedSince ?? null] as const
  return [allowed ?? null, rateFactor, baseline, recent, samples, cutAt, strain, trips, ...times]
}

export function decodePace(stored: StoredPace, time: FileTime): KeyPace {
  const [clock, debt, debtAt, ratePerSecond, burst, lastEndAt, delayUntil, delayForMs, backOffUntil, backOffForMs, leases, owners] = stored
  const [, , , , , , , , , , , , concurrency = 1, isAsked, health, resetAt = 0] = stored
  const until = (end: number, forMs: number): number => time.until([clock, end, forMs])
  return {
    debt,
    debtAt: time.at(clock, debtAt),
    ratePerSecond,
    burst,
    lastEndAt: lastEndAt === null ? undefined : time.at(clock, lastEndAt),
    delayUntil: until(delayUntil, delayForMs),
    delayForMs,
    backOffUntil: until(backOffUntil, backOffForMs),
    backOffForMs,
    concurrency,
    isAsked: isAsked === 1,
    health: decodeHealth(health, clock, time),
    resetAt,
    leases: leases.map(([id, end, forMs, crawlDelayMs, counts, owner]) => {
      const [workerId, host, pid, pidStartedAt] = owners[owner] ?? ['', '', 0, '']
      return { id, until: until(end, forMs), forMs, crawlDelayMs, counts: counts === 1, owner: { workerId, host, pid, pidStartedAt } }
    }),
  }
}

/** Shape: paces of an older release have none. */
function decodeHealth(stored: StoredHealth | null | undefined, clock: number, time: FileTime): SiteHealth {
  if (stored === null || stored === undefined) return newSiteHealth()
  const [allowed, rateFactor, baselineMs, recentMs, samples, cutAt, strain, trips, openUntil, openForMs, failingSince, triedSince] = stored
  return {
    allowed: allowed ?? undefined,
    rateFactor,
    baselineMs,
    recentMs,
    samples,
    cutAt: time.at(clock, cutAt),
    strain,
    trips,
    openUntil: openForMs === 0 ? 0 : time.until([clock, openUntil, openForMs]),
    openForMs,
    failingSince: failingSince === null ? undefined : time.at(clock, failingSince),
    triedSince: typeof triedSince === 'number' ? time.at(clock, triedSince) : undefined,
  }
}
