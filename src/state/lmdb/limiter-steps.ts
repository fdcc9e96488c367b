import type { PolitenessKey } from '../../kernel/brand.ts'
import {
  endExpiredLeases,
  endGoneLease,
  endLease,
  hearReset,
  isIdle,
  type KeyPace,
  knownHealthOf,
  leftLate,
  limiterStateOf,
  moveStart,
  newKeyPace,
  startAgainIn,
  startRequest,
  takeOver,
  type Wait,
  waitOf,
} from '../limiter-rules.ts'
import { paceInForce } from '../site-health.ts'
import type {
  AnswerReport,
  KnownHealth,
  LeaseOwner,
  LimiterAnswer,
  LimiterKey,
  LimiterRequest,
  LimiterState,
  ReleasedKey,
  ReleasedState,
} from '../state-store.ts'
import type { Timed } from './file-time.ts'
import type { Keys } from './keys.ts'
import type { LmdbFile } from './lmdb-file.ts'
import { decodePace, encodePace, type StoredPace } from './pace-codec.ts'
import type { Sweep } from './sweep.ts'

/** The limiter and the spill clocks on LMDB: reads paces, applies limiter-rules.ts, writes them. Called within a step of the file. */
export class LimiterSteps {
  readonly #file: LmdbFile
  readonly #keys: Keys
  readonly #sweep: Sweep
  readonly #bornAt: Timed | undefined
  readonly #isGone: (owner: LeaseOwner) => boolean

  constructor(parts: {
    file: LmdbFile
    keys: Keys
    sweep: Sweep
    /** When the store was found empty, where that calls for a warm-up. */
    bornAt: Timed | undefined
    isGone: (owner: LeaseOwner) => boolean
  }) {
    this.#file = parts.file
    this.#keys = parts.keys
    this.#sweep = parts.sweep
    this.#bornAt = parts.bornAt
    this.#isGone = parts.isGone
  }

  acquire(request: LimiterRequest, leaseId: string, now: number): { answer: LimiterAnswer; ended: number } {
    const paces = new Map<PolitenessKey, KeyPace>()
    const stored = new Set<PolitenessKey>()
    let longest: Wait | undefined
    let startInMs = 0
    let concurrency = Number.POSITIVE_INFINITY
    let ended = 0
    for (const key of request.keys) {
      const found = paces.get(key.key) ?? this.#load(key.key, now)
      if (found !== undefined) stored.add(key.key)
      const pace = found ?? newKeyPace()
      paces.set(key.key, pace)
      const gone = this.#endGone(pace, key, request.owner, now)
      ended += gone
      // Written even if the answer is to wait: else the crawl delay of what is gone would count anew from each time it is found.
      if (hearReset(pace, request.resetAt ?? 0) || gone > 0) this.#save(key.key, pace)
      const wait = waitOf(pace, key, request, now, this.#birth())
      startInMs = Math.max(startInMs, wait.startInMs)
      concurrency = Math.min(concurrency, wait.concurrency)
      if (wait.waitMs > (longest?.waitMs ?? 0)) longest = wait
    }
    if (longest !== undefined) {
      const { waitMs, reason, key } = longest
      return { answer: { kind: 'wait', waitMs, reason, key, concurrency, birth: String(this.#birth() ?? 'none') }, ended }
    }
    this.#start(request, leaseId, paces, now + startInMs)
    this.#sweep.afterAdding('pace', paces.size - stored.size, now)
    return { answer: { kind: 'lease', leaseId, startInMs, concurrency, birth: String(this.#birth() ?? 'none') }, ended }
  }

  release(leaseId: string, keys: readonly ReleasedKey[], report: AnswerReport | undefined, now: number): ReleasedState[] {
    return keys.map(({ key, crawlDelayMs }) =>
      this.#change(key, now, (pace) => {
        const change = endLease(pace, leaseId, crawlDelayMs, report, now)
        return { ...knownHealthOf(pace, now), change }
      }),
    )
  }

  startAgain(leaseId: string, keys: readonly LimiterKey[], now: number): number {
    const paces = keys.map((key) => ({ key, pace: this.#load(key.key, now) ?? newKeyPace() }))
    const inMs = Math.max(0, ...paces.map(({ key, pace }) => startAgainIn(pace, key, leaseId, now)))
    for (const { key, pace } of paces) {
      moveStart(pace, key, leaseId, now + inMs)
      this.#save(key.key, pace)
    }
    return inMs
  }

  reportLate(leaseId: string, keys: readonly PolitenessKey[], lateMs: number, now: number): void {
    for (const key of keys) this.#change(key, now, (pace) => leftLate(pace, leaseId, lateMs))
  }

  reset(key: PolitenessKey, resetAt: number, now: number): void {
    this.#change(key, now, (pace) => hearReset(pace, resetAt))
  }

  reassert(key: PolitenessKey, known: KnownHealth, resetAt: number, now: number): void {
    this.#change(key, now, (pace) => takeOver(pace, known, resetAt, now))
  }

  limiterState(key: PolitenessKey, now: number): LimiterState {
    const pace = this.#load(key, now)
    return limiterStateOf(pace ?? newKeyPace(), now)
  }

  spillSlot(key: PolitenessKey, localWaitMs: number, intervalMs: number, now: number): number {
    const clockKey = this.#keys.named('spill', key)
    const found = this.#file.get<readonly [Timed]>(clockKey)
    const clock = found === undefined ? 0 : this.#file.time.until(found[0])
    const slotMs = Math.max(now + localWaitMs, clock) + intervalMs - now
    this.#file.put(clockKey, [this.#file.time.timed(now, slotMs)])
    this.#sweep.afterAdding('spill', found === undefined ? 1 : 0, now)
    return Math.ceil(slotMs)
  }

  #start(request: LimiterRequest, leaseId: string, paces: ReadonlyMap<PolitenessKey, KeyPace>, startAt: number): void {
    const policies = new Map<PolitenessKey, LimiterKey>(request.keys.map((key) => [key.key, key]))
    for (const [key, pace] of paces) {
      const policy = policies.get(key)
      if (policy === undefined) continue
      const counts = request.countsForRate
      const crawlDelayMs = counts ? policy.crawlDelayMs : 0
      const lease = { id: leaseId, until: startAt + request.leaseMs, forMs: request.leaseMs, crawlDelayMs, counts, owner: request.owner }
      startRequest(pace, policy, lease, startAt)
      this.#save(key, pace)
    }
  }

  /** Where all places are taken: ends the leases of processes of this host that are gone. Returns how many. */
  #endGone(pace: KeyPace, key: LimiterKey, asker: LeaseOwner, now: number): number {
    // As many as are allowed now: a site that was slowed down has fewer than its rule says.
    if (pace.leases.length < paceInForce(pace.health, key).concurrency) return 0
    const isSelf = (owner: LeaseOwner): boolean => owner.pid === asker.pid && owner.pidStartedAt === asker.pidStartedAt
    const gone = new Set(pace.leases.filter(({ owner }) => owner.host === asker.host && !isSelf(owner) && this.#isGone(owner)))
    for (const lease of gone) endGoneLease(pace, lease, now)
    return gone.size
  }

  #change<T>(key: PolitenessKey, now: number, change: (pace: KeyPace) => T): T {
    const found = this.#load(key, now)
    const pace = found ?? newKeyPace()
    const result = change(pace)
    this.#save(key, pace)
    this.#sweep.afterAdding('pace', found === undefined ? 1 : 0, now)
    return result
  }

  #birth(): number | undefined {
    return this.#bornAt === undefined ? undefined : this.#file.time.until(this.#bornAt)
  }

  #load(key: PolitenessKey, now: number): KeyPace | undefined {
    const found = this.#file.get<StoredPace>(this.#keys.named('pace', key))
    if (found === undefined) return undefined
    const pace = decodePace(found, this.#file.time)
    endExpiredLeases(pace, now)
    // As if it had been swept: when that happens is chance.
    return isIdle(pace, now) ? undefined : pace
  }

  #save(key: PolitenessKey, pace: KeyPace): void {
    this.#file.put(this.#keys.named('pace', key), encodePace(pace, this.#file.time))
  }
}
