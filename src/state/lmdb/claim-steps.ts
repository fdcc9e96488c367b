import type { AttemptId, Claim, ClaimVerdict, FinishedAttempt } from '../state-store.ts'
import type { Timed } from './file-time.ts'
import { digest, groupDigest, type Keys, taskDigest } from './keys.ts'
import type { LmdbFile } from './lmdb-file.ts'
import type { Sweep } from './sweep.ts'

/** The seen set and the finished attempts on LMDB. Every function is called within a step of the file. */
export class ClaimSteps {
  readonly #file: LmdbFile
  readonly #keys: Keys
  readonly #sweep: Sweep

  constructor(file: LmdbFile, keys: Keys, sweep: Sweep) {
    this.#file = file
    this.#keys = keys
    this.#sweep = sweep
  }

  claim(claims: readonly Claim[], now: number): ClaimVerdict[] {
    let timed = 0
    // A list is nearly always of one crawl.
    let crawlId: string | undefined
    let group: Buffer = Buffer.alloc(0)
    const verdicts = claims.map((claim) => {
      if (claim.crawlId !== crawlId) {
        crawlId = claim.crawlId
        group = groupDigest(crawlId)
      }
      const parts = [group, digest([claim.canonicalUrl, claim.round], 16)] as const
      const key = this.#keys.of('claim', ...parts)
      const timedKey = this.#keys.of('timedClaim', ...parts)
      const holder = this.#file.get<string>(key) ?? this.#timedHolder(timedKey, now)
      if (holder !== undefined) return holder === claim.claimant ? 'own' : 'known'
      if (claim.ttlMs === undefined) {
        this.#file.put(key, claim.claimant)
      } else {
        this.#file.put(timedKey, [this.#file.time.timed(now, claim.ttlMs), claim.claimant])
        timed += 1
      }
      return 'new'
    })
    this.#sweep.afterAdding('timedClaim', timed, now)
    return verdicts
  }

  lookUp({ crawlId, canonicalUrl, round, claimant }: Claim, now: number): ClaimVerdict {
    const parts = [groupDigest(crawlId), digest([canonicalUrl, round], 16)] as const
    const holder = this.#file.get<string>(this.#keys.of('claim', ...parts)) ?? this.#timedHolder(this.#keys.of('timedClaim', ...parts), now)
    return holder === undefined ? 'new' : holder === claimant ? 'own' : 'known'
  }

  markFinished(attempts: readonly FinishedAttempt[], ttlMs: number, now: number): void {
    // A task that is finished as a whole needs no note of its attempts: either note completes a copy.
    for (const { taskId, attempt, final } of attempts) {
      this.#file.put(this.#finishedKey(taskId, final ? undefined : attempt), [this.#file.time.timed(now, ttlMs)])
    }
    this.#sweep.afterAdding('finished', attempts.length, now)
  }

  noteUnderWay(attempts: readonly AttemptId[], ttlMs: number, now: number): void {
    for (const attempt of attempts) this.#file.put(this.#underWayKey(attempt), [this.#file.time.timed(now, ttlMs)])
    this.#sweep.afterAdding('underWay', attempts.length, now)
  }

  isUnderWay(attempt: AttemptId, now: number): boolean {
    return this.#isNoted(this.#underWayKey(attempt), now)
  }

  isFinished(taskId: string, attempt: number, now: number): boolean {
    return this.#isNoted(this.#finishedKey(taskId, undefined), now) || this.#isNoted(this.#finishedKey(taskId, attempt), now)
  }

  #timedHolder(key: Buffer, now: number): string | undefined {
    const found = this.#file.get<readonly [Timed, string]>(key)
    return found !== undefined && this.#file.time.until(found[0]) > now ? found[1] : undefined
  }

  #isNoted(key: Buffer, now: number): boolean {
    const found = this.#file.get<readonly [Timed]>(key)
    return found !== undefined && this.#file.time.until(found[0]) > now
  }

  #underWayKey({ taskId, attempt }: AttemptId): Buffer {
    return this.#keys.of('underWay', digest([taskId, attempt], 16))
  }

  #finishedKey(taskId: string, attempt: number | undefined): Buffer {
    return this.#keys.of('finished', attempt === undefined ? taskDigest(taskId) : digest([taskId, attempt], 16))
  }
}
