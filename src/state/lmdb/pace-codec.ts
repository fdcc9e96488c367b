import type { KeyPace, Lease } from '../limiter-rules.ts'
import type { BootTime } from './boot-time.ts'
import type { Json } from './lmdb-file.ts'

/**
 * A key's pace as it lies in the file: short arrays, owners once each, all times of one boot. Reading under another boot starts every
 * wait anew from its full length (boot-time.ts); leases too, whose processes are then found to be gone.
 */
export type StoredPace = readonly [
  boot: number,
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
]
type StoredLease = readonly [id: string, until: number, forMs: number, crawlDelayMs: number, counts: 0 | 1, owner: number]
type StoredOwner = readonly [workerId: string, host: string, pid: number, pidStartedAt: string]

export function encodePace(pace: KeyPace, time: BootTime): Json {
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
  return [
    time.boot,
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
  ]
}

export function decodePace(stored: StoredPace, time: BootTime): KeyPace {
  const [boot, debt, debtAt, ratePerSecond, burst, lastEndAt, delayUntil, delayForMs, backOffUntil, backOffForMs, leases, owners] = stored
  const until = (end: number, forMs: number): number => time.until([boot, end, forMs])
  return {
    debt,
    debtAt: time.at(boot, debtAt),
    ratePerSecond,
    burst,
    lastEndAt: lastEndAt === null ? undefined : time.at(boot, lastEndAt),
    delayUntil: until(delayUntil, delayForMs),
    delayForMs,
    backOffUntil: until(backOffUntil, backOffForMs),
    backOffForMs,
    leases: leases.map(([id, end, forMs, crawlDelayMs, counts, owner]) => {
      const [workerId, host, pid, pidStartedAt] = owners[owner] ?? ['', '', 0, '']
      return { id, until: until(end, forMs), forMs, crawlDelayMs, counts: counts === 1, owner: { workerId, host, pid, pidStartedAt } }
    }),
  }
}
