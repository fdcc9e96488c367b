import { HEADER, headerTime, headerValue, NOT_BEFORE, type OriginalMessage } from '../message/header-names.ts'
import { overridable } from '../politeness/policy.ts'
import { bareHost, registrableDomainOfHost } from '../url/registrable-domain.ts'

/**
 * Epoch ms of who said so. What was put aside before comes back before its time: of `resumedAt` what waits for the end of a pause, of
 * `fasterAt` what waits for its turn too, of `resetAt` all else as well.
 */
export interface LiftedFrom {
  /** What its answers had earned was forgotten (`sites reset`). */
  readonly resetAt?: number | undefined
  /** Its pace became a faster one (`sites rate`). */
  readonly fasterAt?: number | undefined
  /** It was resumed (`sites resume`). */
  readonly resumedAt?: number | undefined
}

/** A worker that had not heard of it yet may have written the message again since; and the clocks of two machines differ a little. */
const GRACE_MS = 5_000
/** Slots behind a pause lie as far apart as the pace said. Those behind a closure of the site's own lie behind that, whatever the pace. */
const TURN_REASONS: ReadonlySet<string | undefined> = new Set(['spill', 'paused'])

/**
 * Sites of which an operator has said something by which what was put aside before waits for a time that counts no more: it comes back at
 * once, and the limiter gives it its turn. What finds no place then is put aside once more, and says by a header that its worker knew:
 * so it is not brought back again. What its producer does not want before a time still waits.
 */
export class LiftedSites {
  readonly #byName = new Map<string, LiftedFrom>()
  /** The latest of each registrable domain, which is the key of the messages: most are of domains of which nothing was ever said. */
  readonly #byDomain = new Map<string, LiftedFrom>()

  /** `name`: a domain, with all hosts below it, or a host. */
  add(name: string, from: LiftedFrom): void {
    this.#byName.set(name, from)
    const domain = registrableDomainOfHost(name)
    const latest = this.#byDomain.get(domain)
    this.#byDomain.set(domain, {
      resetAt: Math.max(from.resetAt ?? 0, latest?.resetAt ?? 0),
      fasterAt: Math.max(from.fasterAt ?? 0, latest?.fasterAt ?? 0),
      resumedAt: Math.max(from.resumedAt ?? 0, latest?.resumedAt ?? 0),
    })
  }

  /** True where the message was put aside before that. `urlOf` is asked for messages of domains in question; undefined: it has none. */
  isLifted(message: OriginalMessage, urlOf: () => string | undefined): boolean {
    const latest = this.#byDomain.get(message.key?.toString() ?? '')
    if (latest === undefined || !isBefore(message, latest)) return false
    const url = urlOf()
    if (url === undefined || !URL.canParse(url)) return false
    return overridable(bareHost(new URL(url).hostname)).some((name) => isBefore(message, this.#byName.get(name) ?? {}))
  }
}

function isBefore(message: OriginalMessage, { resetAt = 0, fasterAt = 0, resumedAt = 0 }: LiftedFrom): boolean {
  const reason = headerValue(message.headers, HEADER.reason)
  if (reason === NOT_BEFORE) return false
  const at = Math.max(resetAt, TURN_REASONS.has(reason) ? fasterAt : 0, reason === 'paused' ? resumedAt : 0)
  const known = headerTime(message.headers, HEADER.slotsMs) ?? 0
  return message.timestamp < at + GRACE_MS && known < at
}
