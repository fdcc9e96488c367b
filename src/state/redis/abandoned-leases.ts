import type { Clock } from '../../kernel/clock.ts'
import { isMillraceError } from '../../kernel/errors.ts'
import type { RedisLink } from './redis-link.ts'

/**
 * Ends the leases that a server may have given after their asker had given it up: the one thing that nobody asks for again, since nobody
 * knows of them. (A release is repeated by whoever ends its request.) Without this a site would stand still until such a lease expires.
 * Best effort and bounded: what is dropped expires by itself.
 */
const RETRY_MS = 1_000
const MOST_LEASES = 2_000
/** The first success may come before the question itself, which may still lie in the buffers of an older connection. */
const SUCCESSES = 2

interface LateEnd {
  readonly keys: readonly string[]
  readonly leaseIds: readonly string[]
  /** Successes that are still wanted. */
  left: number
}

export class AbandonedLeases {
  readonly #link: RedisLink
  readonly #clock: Clock
  #ends: LateEnd[] = []
  #disarm: (() => void) | undefined
  #isStopped = false

  constructor(link: RedisLink, clock: Clock) {
    this.#link = link
    this.#clock = clock
  }

  /** `leaseIds`: one per key. Tries after a while, again and again. */
  end(keys: readonly string[], leaseIds: readonly string[]): void {
    if (this.#isStopped || this.#ends.length >= MOST_LEASES) return
    this.#ends.push({ keys, leaseIds, left: SUCCESSES })
    this.#arm()
  }

  stop(): void {
    this.#isStopped = true
    this.#ends = []
    this.#disarm?.()
    this.#disarm = undefined
  }

  #arm(): void {
    if (this.#isStopped) return
    this.#disarm ??= this.#clock.timer(RETRY_MS, () => void this.#run(), { unref: true })
  }

  /** Never rejects: each call's failure is looked at on its own. */
  async #run(): Promise<void> {
    this.#disarm = undefined
    const results = await Promise.allSettled(this.#ends.map((end) => this.#link.script('endGoneLeases', end.keys, end.leaseIds)))
    const refused = new Set<LateEnd>()
    results.forEach((result, index) => {
      const end = this.#ends[index]
      if (end === undefined) return
      if (result.status === 'fulfilled') end.left -= 1
      // Away once more is a reason to try again; a refusal is not.
      else if (!isMillraceError(result.reason, 'STATE_UNAVAILABLE')) refused.add(end)
    })
    this.#ends = this.#ends.filter((end) => end.left > 0 && !refused.has(end))
    if (this.#ends.length > 0) this.#arm()
  }
}
