import type { PolitenessKey } from '../kernel/brand.ts'
import { memo } from '../kernel/memo.ts'
import type { SiteOverride } from '../message/site-override.ts'
import { compileHostGlob } from '../url/glob.ts'
import { type PolitenessKeyKind, politenessKey } from '../url/politeness-key.ts'
import { bareHost, registrableDomainOfHost } from '../url/registrable-domain.ts'
import { type DayWindow, endOf, WallClock, windowAt, windowsOfWeek } from './schedule.ts'

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
  /** It was resumed then; epoch ms of who said so. */
  readonly resumedAt?: number
}

/** The pace owed to a site. */
export interface SitePolicy extends Required<PaceValues> {
  readonly key: PolitenessKey
  /** The address of the site is paced as well: what is admitted is a request of the host to this address. */
  readonly byAddress?: boolean
  /** All hosts of the domain are one site, and still each has its own rule, hours and override: one may be paused and the others not. */
  readonly byDomain?: boolean
  /** When the hours end that pause it, epoch ms; not given where something else pauses it, or all hours of a week do. */
  readonly pausedUntil?: number
}

export interface PolicyRule extends Omit<PaceValues, 'isPaused' | 'resetAt' | 'fasterAt' | 'resumedAt'> {
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
  /** Live override of a domain. */
  readonly overrideOf?: (domain: string) => SiteOverride | undefined
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
}

export interface Policy {
  /** `at`: as the hours are then, epoch ms; now where not given. */
  readonly paceOf: (url: URL, at?: number) => SitePolicy
  /** The same, with the reasons. */
  readonly explain: (url: URL, at?: number) => ExplainedPolicy
  /** The first moment after `at` in which other hours of its schedule are in force; undefined: none. Units: epoch ms. */
  readonly hoursEnd: (url: URL, at: number) => number | undefined
  /**
   * The hours of its schedule, and undefined for those beside them, each with a moment in it; those of now first. One where it has no
   * schedule.
   */
  readonly hoursOf: (url: URL) => readonly { readonly hours: string | undefined; readonly at: number }[]
}

interface HostFacts {
  readonly rule: PolicyRule | undefined
  /** Under which an override may stand. */
  readonly names: readonly string[]
  /** Its policy as long as nothing is said of it but by the default and a rule without hours. */
  standing: SitePolicy | undefined
}

/** Hosts whose rule is remembered. */
const MAX_HOSTS = 20_000
/** That hours pause a site all week is looked at again after this. */
const ALL_WEEK_MS = 3_600_000

/**
 * Pace by URL, value by value: the default, then the first rule that matches, then the hours of its schedule, then live overrides, of the
 * registrable domain first and of the host itself last. Of resets, and of moments in which it became faster or was resumed, the latest
 * counts, wherever it was said. Total.
 */
export function createPolicy(options: PolicyOptions): Policy {
  const rules = options.rules.map((rule) => ({ rule, matches: compileHostGlob(rule.match) }))
  // Asked several times for each URL, and there may be hundreds of rules.
  const factsOf = memo((host: string) => {
    const rule = rules.find(({ matches }) => matches(host))?.rule
    const facts: HostFacts = { rule, names: options.overrideOf === undefined ? [] : overridable(host), standing: undefined }
    return facts
  }, MAX_HOSTS)
  // Each remembers one minute.
  const [presentClock, otherClock] = [new WallClock(), new WallClock()]
  const openingOf = rememberedOpening()
  const base: PaceLayer = { source: 'default', name: '', values: { ...options.default, crawlDelayMs: 0, isPaused: false } }

  const explain = (url: URL, at?: number): ExplainedPolicy => {
    const host = bareHost(url.hostname)
    const { rule, names } = factsOf(host)
    const layers = [base]
    if (rule !== undefined) layers.push({ source: 'rule', name: rule.match, values: paceValues(rule) })
    const now = at ?? options.now()
    const schedule = rule?.schedule ?? []
    const window = windowAt(schedule, now, at === undefined ? presentClock : otherClock)
    if (window !== undefined) layers.push({ source: 'schedule', name: window.text, values: paceValues(window) })
    for (const domain of names) {
      const override = options.overrideOf?.(domain)
      if (override !== undefined) layers.push({ source: 'override', name: domain, values: overrideValues(override) })
    }
    const kind = rule?.key ?? options.key
    const values = Object.assign({}, ...layers.map((layer) => layer.values)) as Required<PaceValues>
    const resetAt = Math.max(...layers.map((layer) => layer.values.resetAt ?? 0))
    const fasterAt = Math.max(...layers.map((layer) => layer.values.fasterAt ?? 0))
    const resumedAt = Math.max(...layers.map((layer) => layer.values.resumedAt ?? 0))
    const isByHours = values.isPaused && layers.findLast((layer) => layer.values.isPaused !== undefined)?.source === 'schedule'
    const pausedUntil = isByHours ? openingOf(schedule, now) : undefined
    const policy = {
      key: politenessKey(url, kind),
      ...values,
      resetAt,
      fasterAt,
      resumedAt,
      ...(kind === 'ip' ? { byAddress: true } : {}),
      ...(kind === 'domain' ? { byDomain: true } : {}),
      ...(pausedUntil === undefined ? {} : { pausedUntil }),
    }
    return { policy, layers }
  }
  return {
    explain,
    paceOf: (url, at) => {
      const facts = factsOf(bareHost(url.hostname))
      if (facts.rule?.schedule !== undefined || facts.names.some((name) => options.overrideOf?.(name) !== undefined))
        return explain(url, at).policy
      facts.standing ??= explain(url, at).policy
      return facts.standing
    },
    hoursEnd: (url, at) => {
      const schedule = factsOf(bareHost(url.hostname)).rule?.schedule ?? []
      if (schedule.length === 0) return undefined
      const present = windowAt(schedule, at, otherClock)
      return endOf(schedule, at, (window) => window === present)
    },
    hoursOf: (url) => {
      const schedule = factsOf(bareHost(url.hostname)).rule?.schedule ?? []
      return [...windowsOfWeek(schedule, options.now())].map(([window, at]) => ({ hours: window?.text, at }))
    },
  }
}

type Schedule = NonNullable<PolicyRule['schedule']>

/** When the hours end that pause a site, remembered until then: it is asked for each of its tasks. */
function rememberedOpening(): (schedule: Schedule, now: number) => number | undefined {
  const known = new Map<Schedule, { readonly from: number; readonly until: number; readonly opening: number | undefined }>()
  return (schedule, now) => {
    const last = known.get(schedule)
    if (last !== undefined && now >= last.from && now < last.until) return last.opening
    const opening = endOf(schedule, now, (window) => window?.isPaused === true)
    known.set(schedule, { from: now, until: opening ?? now + ALL_WEEK_MS, opening })
    return opening
  }
}

/**
 * Since when slots of tasks that were put aside count: those that were given out before lie behind a closure that was lifted, or as far
 * apart as a slower pace said. Units: epoch ms; 0: always.
 */
export function slotsFrom({ resetAt, fasterAt }: Pick<SitePolicy, 'resetAt' | 'fasterAt'>): number {
  return Math.max(resetAt, fasterAt)
}

/** The last moment from which on something came back that had been put aside. Units: epoch ms; 0: there was none. */
export function liftedAt({ resetAt, fasterAt, resumedAt }: Pick<SitePolicy, 'resetAt' | 'fasterAt' | 'resumedAt'>): number {
  return Math.max(resetAt, fasterAt, resumedAt)
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

function overrideValues({ paused, reset, faster, resumed, ...pace }: SiteOverride): PaceValues {
  return {
    ...pace,
    ...(paused === undefined ? {} : { isPaused: paused }),
    ...(reset === undefined ? {} : { resetAt: reset.at }),
    ...(faster === undefined ? {} : { fasterAt: faster.at }),
    ...(resumed === undefined ? {} : { resumedAt: resumed.at }),
  }
}
