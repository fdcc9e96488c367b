import { HEADER, headerValue, type OriginalMessage } from '../message/header-names.ts'
import { overridable } from '../politeness/policy.ts'
import { bareHost, registrableDomainOfHost } from '../url/registrable-domain.ts'

/** A worker that had not heard of the reset yet may have written the message again since; and the clocks of two machines differ a little. */
const GRACE_MS = 5_000

/**
 * Sites of which an operator had forgotten what their answers had earned (`sites reset`). What was put aside before that waits for a time
 * that counts no more: it comes back at once, and the limiter gives it its turn. What its producer does not want before a time still waits.
 */
export class ResetSites {
  readonly #byName = new Map<string, number>()
  /** The latest of each registrable domain, which is the key of the messages: most are of domains that were never reset. */
  readonly #byDomain = new Map<string, number>()

  /** `name`: a domain, with all hosts below it, or a host. `at`: epoch ms. */
  add(name: string, at: number): void {
    this.#byName.set(name, at)
    const domain = registrableDomainOfHost(name)
    this.#byDomain.set(domain, Math.max(at, this.#byDomain.get(domain) ?? 0))
  }

  /** True where the message was put aside before its site was reset. `urlOf` is asked for messages of domains that were; undefined: it has none. */
  isLifted(message: OriginalMessage, urlOf: () => string | undefined): boolean {
    const latest = this.#byDomain.get(message.key?.toString() ?? '')
    if (latest === undefined || message.timestamp >= latest + GRACE_MS) return false
    if (headerValue(message.headers, HEADER.reason) === 'not-before') return false
    const url = urlOf()
    if (url === undefined || !URL.canParse(url)) return false
    const names = overridable(bareHost(new URL(url).hostname))
    return names.some((name) => message.timestamp < (this.#byName.get(name) ?? Number.NEGATIVE_INFINITY) + GRACE_MS)
  }
}
