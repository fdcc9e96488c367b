import type { PolitenessKey } from '../kernel/brand.ts'
import { compileHostGlob } from '../url/glob.ts'
import { type PolitenessKeyKind, politenessKey } from '../url/politeness-key.ts'
import { bareHost, registrableDomainOfHost } from '../url/registrable-domain.ts'

/** The pace owed to a site. */
export interface SitePolicy {
  readonly key: PolitenessKey
  readonly ratePerSecond: number
  readonly burst: number
  readonly concurrency: number
  /** From the end of a request to the start of the next; ms. robots.txt may ask for more. */
  readonly crawlDelayMs: number
  readonly isPaused: boolean
}

export interface PolicyRule {
  /** Host pattern; `*.example.com` means example.com too. */
  readonly match: string
  readonly ratePerSecond?: number
  readonly burst?: number
  readonly concurrency?: number
  readonly crawlDelayMs?: number
}

export interface PolicyOptions {
  readonly key: PolitenessKeyKind
  readonly default: { readonly ratePerSecond: number; readonly burst: number; readonly concurrency: number }
  /** The first that matches counts. */
  readonly rules: readonly PolicyRule[]
  /** Live override of a host or registrable domain: the payload of `site:DOMAIN` on control, unchecked. */
  readonly overrideOf?: (domain: string) => unknown
}

/** Pace by URL: default, then the first rule that matches, then a live override of the host or of its domain. Total. */
export function createPolicy(options: PolicyOptions): (url: URL) => SitePolicy {
  const rules = options.rules.map((rule) => ({ rule, matches: compileHostGlob(rule.match) }))
  return (url) => {
    const host = bareHost(url.hostname)
    const rule = rules.find(({ matches }) => matches(host))?.rule
    // Each value by itself: a rate that was set for one host must not hide that its whole domain is paused.
    const override = { ...siteOverride(options.overrideOf?.(registrableDomainOfHost(host))), ...siteOverride(options.overrideOf?.(host)) }
    const base = options.default
    return {
      key: politenessKey(url, options.key),
      ratePerSecond: override.ratePerSecond ?? rule?.ratePerSecond ?? base.ratePerSecond,
      burst: rule?.burst ?? base.burst,
      concurrency: override.concurrency ?? rule?.concurrency ?? base.concurrency,
      crawlDelayMs: rule?.crawlDelayMs ?? 0,
      isPaused: override.isPaused ?? false,
    }
  }
}

export interface SiteOverride {
  readonly isPaused?: boolean
  readonly ratePerSecond?: number
  readonly concurrency?: number
}

/** Reads what somebody wrote to control; a value that makes no sense is left out, so that it can't make a site faster than configured. */
export function siteOverride(payload: unknown): SiteOverride | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined
  const { paused, ratePerSecond, concurrency } = payload as Record<string, unknown>
  return {
    ...(typeof paused === 'boolean' ? { isPaused: paused } : {}),
    ...(typeof ratePerSecond === 'number' && ratePerSecond > 0 && Number.isFinite(ratePerSecond) ? { ratePerSecond } : {}),
    ...(typeof concurrency === 'number' && Number.isSafeInteger(concurrency) && concurrency > 0 ? { concurrency } : {}),
  }
}
