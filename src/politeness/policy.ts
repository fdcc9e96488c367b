import type { PolitenessKey } from '../kernel/brand.ts'
import { memo } from '../kernel/memo.ts'
import { compileHostGlob } from '../url/glob.ts'
import { type PolitenessKeyKind, politenessKey } from '../url/politeness-key.ts'
import { bareHost, registrableDomainOfHost } from '../url/registrable-domain.ts'
import { type DayWindow, WallClock, windowAt } from './schedule.ts'

/** What can be said of the pace of a site, each by itself. */
export interface PaceValues {
  readonly ratePerSecond?: number
  readonly burst?: number
  readonly concurrency?: number
  /** From the end of a request to the start of the next; ms. robots.txt may ask for more. */
  readonly crawlDelayMs?: number
  readonly isPaused?: boolean
  /** What its answers had taught until then was forgotten; epoch ms of who said so. */
  readonly resetAt?: number
  /** It became faster then; epoch ms of who said so. Never compared with another clock. */
  readonly fasterAt?: number
}

/** The pace owed to a site. */
export interface SitePolicy extends Required<PaceValues> {
  readonly key: PolitenessKey
  /** The address of the site is paced as well: what is admitted is a request of the host to this address. */
  readonly byAddress?: boolean
}

export interface PolicyRule extends Omit<PaceValues, 'isPaused' | 'resetAt' | 'fasterAt'> {
  /** Host pattern; `*.example.com` means example.com too. */
  readonly match: string
  readonly key?: PolitenessKeyKind
  /** Other values at some hours of the day; the first window that holds the moment counts. */
  readonly schedule?: readonly (PaceValues & DayWindow & { readonly text: string })[]
}

export interface PolicyOptions {
  readonly key: PolitenessKeyKind
  readonly default: { readonly ratePerSecond: number; readonly burst: number; readonly concurrency: number }
  /** The first that matches counts. */
  readonly rules: readonly PolicyRule[]
  /** Live override of a domain: the payload of `site:DOMAIN` on control, unchecked. */
  readonly overrideOf?: (domain: string) => unknown
  /** Epoch ms. */
  readonly now: () => number
}

/** Where a value comes from, and what it says there. */
export interface PaceLayer {
  readonly source: 'default' | 'rule' | 'schedule' | 'override'
  /** Pattern of the rule, hours of the schedule, domain of the override; empty for the default. */
  readonly name: string
  readonly values: PaceValues
}

export interface ExplainedPolicy {
  readonly policy: SitePolicy
  /** From the weakest to the strongest: each value is that of the last layer that has it. */
  readonly layers: readonly PaceLayer[]
  /** The hours of the rule that matches. */
  readonly schedule: NonNullable<PolicyRule['schedule']>
}

export interface Policy {
  readonly paceOf: (url: URL) => SitePolicy
  /** The same, with the reasons. */
  readonly explain: (url: URL) => ExplainedPolicy
}

/** Hosts whose rule is remembered. */
const MAX_HOSTS = 20_000

/**
 * Pace by URL, value by value: the default, then the first rule that matches, then the hours of its schedule, then live overrides, of
 * the registrable domain first and of the host itself last. Of resets, and of moments in which it became faster, the latest counts, wherever it was said. Total.
 */
export function createPolicy(options: PolicyOptions): Policy {
  const rules = options.rules.map((rule) => ({ rule, matches: compileHostGlob(rule.match) }))
  // Asked several times for each URL, and there may be hundreds of rules.
  const factsOf = memo((host: string) => {
    const rule = rules.find(({ matches }) => matches(host))?.rule
    return { rule, names: options.overrideOf === undefined ? [] : overridable(host) }
  }, MAX_HOSTS)
  const wallClock = new WallClock()
  const base: PaceLayer = { source: 'default', name: '', values: { ...options.default, crawlDelayMs: 0, isPaused: false } }

  const explain = (url: URL): ExplainedPolicy => {
    const host = bareHost(url.hostname)
    const { rule, names } = factsOf(host)
    const layers = [base]
    if (rule !== undefined) layers.push({ source: 'rule', name: rule.match, values: paceValues(rule) })
    const window = rule?.schedule === undefined ? undefined : windowAt(rule.schedule, options.now(), wallClock)
    if (window !== undefined) layers.push({ source: 'schedule', name: window.text, values: paceValues(window) })
    for (const domain of names) {
      const values = siteOverride(options.overrideOf?.(domain))
      if (values !== undefined) layers.push({ source: 'override', name: domain, values })
    }
    const kind = rule?.key ?? options.key
    const values = Object.assign({}, ...layers.map((layer) => layer.values)) as Required<PaceValues>
    const resetAt = Math.max(...layers.map((layer) => layer.values.resetAt ?? 0))
    const fasterAt = Math.max(...layers.map((layer) => layer.values.fasterAt ?? 0))
    const policy = { key: politenessKey(url, kind), ...values, resetAt, fasterAt, ...(kind === 'ip' ? { byAddress: true } : {}) }
    return { policy, layers, schedule: rule?.schedule ?? [] }
  }
  return { explain, paceOf: (url) => explain(url).policy }
}

/**
 * Since when slots of tasks that were put aside count: those that were given out before lie behind a closure that was lifted, or as far apart
 * as a slower pace said. Units: epoch ms; 0: always.
 */
export function slotsFrom({ resetAt, fasterAt }: Pick<SitePolicy, 'resetAt' | 'fasterAt'>): number {
  return Math.max(resetAt, fasterAt)
}

/**
 * Names under which an override of the host may stand: its registrable domain, and every name between that and the host. Shape: the
 * host last.
 */
export function overridable(host: string): string[] {
  const domain = registrableDomainOfHost(host)
  const names = [host]
  for (let name = host; name !== domain && name.includes('.'); ) {
    name = name.slice(name.indexOf('.') + 1)
    names.push(name)
  }
  return names.reverse()
}

function paceValues({ ratePerSecond, burst, concurrency, crawlDelayMs, isPaused }: PaceValues): PaceValues {
  return {
    ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
    ...(burst === undefined ? {} : { burst }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(crawlDelayMs === undefined ? {} : { crawlDelayMs }),
    ...(isPaused === undefined ? {} : { isPaused }),
  }
}

/**
 * Reads what somebody wrote to control; a value that makes no sense is left out, so that it can't make a site faster than configured.
 * Shape: undefined where nothing is left.
 */
export function siteOverride(payload: unknown): PaceValues | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined
  const { paused, ratePerSecond, burst, concurrency, crawlDelayMs, reset, faster } = payload as Record<string, unknown>
  const [resetAt, fasterAt] = [momentOf(reset), momentOf(faster)]
  const values: PaceValues = {
    ...(typeof paused === 'boolean' ? { isPaused: paused } : {}),
    ...(isPositive(ratePerSecond) ? { ratePerSecond } : {}),
    ...(isPositive(burst) && Number.isSafeInteger(burst) ? { burst } : {}),
    ...(isPositive(concurrency) && Number.isSafeInteger(concurrency) ? { concurrency } : {}),
    ...(isPositive(crawlDelayMs) || crawlDelayMs === 0 ? { crawlDelayMs } : {}),
    ...(isPositive(resetAt) ? { resetAt } : {}),
    ...(isPositive(fasterAt) ? { fasterAt } : {}),
  }
  return Object.keys(values).length === 0 ? undefined : values
}

function momentOf(said: unknown): unknown {
  return typeof said === 'object' && said !== null && 'at' in said ? said.at : undefined
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value)
}
