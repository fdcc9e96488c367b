import type { Clock } from '../../kernel/clock.ts'
import { isMillraceError } from '../../kernel/errors.ts'
import type { RedisLink, ScriptName } from './redis-link.ts'

/**
 * Calls that must reach the server in the end, though nobody waits for them any more: the release of a lease while the server was away,
 * and the end of a lease that a hanging server may have given after its asker had gone. Without them a site would stand still until the
 * lease expires. Best effort and bounded: what is dropped expires by itself.
 */
const RETRY_MS = 1_000
const MOST_CALLS = 2_000

interface LateCall {
  readonly name: ScriptName
  readonly keys: readonly string[]
  readonly args: readonly (string | number)[]
  /** Successes that are still wanted. */
  left: number
}

export class RetryLater {
  readonly #link: RedisLink
  readonly #clock: Clock
  #calls: LateCall[] = []
  #disarm: (() => void) | undefined
  #isStopped = false

  constructor(link: RedisLink, clock: Clock) {
    this.#link = link
    this.#clock = clock
  }

  /**
   * Calls the script after a while, again and again until it has succeeded `times` times. Twice where the call must come after one that
   * may still lie in the buffers of an older connection.
   */
  add(name: ScriptName, keys: readonly string[], args: readonly (string | number)[], times: number): void {
    if (this.#isStopped || this.#calls.length >= MOST_CALLS) return
    this.#calls.push({ name, keys, args, left: times })
    this.#arm()
  }

  stop(): void {
    this.#isStopped = true
    this.#calls = []
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
    const results = await Promise.allSettled(this.#calls.map((call) => this.#link.script(call.name, call.keys, call.args).then(() => call)))
    const refused = new Set<LateCall>()
    results.forEach((result, index) => {
      const call = this.#calls[index]
      if (call === undefined) return
      if (result.status === 'fulfilled') call.left -= 1
      // Away once more is a reason to try again; a refusal is not.
      else if (!isMillraceError(result.reason, 'STATE_UNAVAILABLE')) refused.add(call)
    })
    this.#calls = this.#calls.filter((call) => call.left > 0 && !refused.has(call))
    if (this.#calls.length > 0) this.#arm()
  }
}
