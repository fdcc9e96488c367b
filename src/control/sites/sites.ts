import type { ControlLog } from '../../kafka/control-log.ts'
import type { PolitenessKey } from '../../kernel/brand.ts'
import { productToken } from '../../kernel/product-token.ts'
import { subject } from '../../message/command.ts'
import { parseSiteOverride, type SiteOverride, type SiteReset } from '../../message/site-override.ts'
import { effectiveCrawlDelay, spacingOf } from '../../politeness/crawl-delay.ts'
import { type ExplainedPolicy, liftedAt, type PaceLayer, type PaceValues, type Policy, type SitePolicy } from '../../politeness/policy.ts'
import { parseRobots, robotsCrawlDelayMs } from '../../politeness/robots.ts'
import type { KnownHealth, LimiterState } from '../../state/state-store.ts'
import { isSuffix } from '../../url/registrable-domain.ts'
import { announce } from '../runtime/announce.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { overrideOf, overridePayload, paceRules } from './site-rules.ts'

/**
 * One value of the pace in force, and where it comes from: `default`, `rule PATTERN`, `schedule HOURS`, `override DOMAIN`, `robots.txt`.
 */
export interface PaceFact {
  readonly value: number | boolean
  readonly from: string
}

export interface SiteReport {
  readonly domain: string
  /** What is paced as one. */
  readonly key: string
  readonly pace: {
    readonly paused: PaceFact
    readonly ratePerSecond: PaceFact
    readonly burst: PaceFact
    readonly concurrency: PaceFact
    readonly crawlDelayMs: PaceFact
  }
  /** When the hours end that pause it, epoch ms; null: none do, or all of a week does. */
  readonly pausedUntil: number | null
  /** The live override of this very domain; null: none. */
  readonly override: SiteOverride | null
  /** The latest reset that counts for the domain, and where it was said; null: there was none. */
  readonly reset: { readonly at: number; readonly lifted: KnownHealth | null; readonly from: string } | null
  /** robots.txt as all workers know it, `unreachable` where it could not be read; null: nobody has asked for it, or it is too old. */
  readonly robots: { readonly origin: string; readonly verdict: string; readonly fetchedAt: number } | null
  readonly limiter: LimiterState
  /**
   * ms until the URLs of a parked site fail, as it has not answered for `politeness.breaker.giveUp`; 0: they fail now. Null: it is not
   * parked, or its URLs wait for it however long that takes.
   */
  readonly givenUpInMs: number | null
}

/** What a change does to the pace in some hours of the schedule; `hours` undefined: in those beside them, or where there is no schedule. */
export interface PaceChange {
  readonly hours: string | undefined
  readonly is: 'faster' | 'slower' | 'same'
}

/**
 * Whether more requests of the site may start in a time than before, in each of the hours of its schedule. Hours in which it pauses the
 * site are left out, unless it has no others: whatever the pace, nothing starts in them. Pure.
 */
export function paceChanges(
  { before, after }: { readonly before: Policy; readonly after: Policy },
  url: URL,
  robots: { readonly delayMs: number | undefined; readonly maxMs: number },
): readonly PaceChange[] {
  const all = before.hoursOf(url).map(({ hours, at }) => {
    const [was, is] = [before, after].map((policy) => paceFacts(policy.explain(url, at), robots.delayMs, robots.maxMs)) as [Pace, Pace]
    const [wasMs, isMs] = [siteSpacingMs(was), siteSpacingMs(is)]
    const change: PaceChange = { hours, is: isMs < wasMs ? 'faster' : isMs > wasMs ? 'slower' : 'same' }
    return { change, isOpen: !(was.paused.value === true && was.paused.from.startsWith('schedule')) }
  })
  const open = all.filter(({ isOpen }) => isOpen)
  return (open.length === 0 ? all : open).map(({ change }) => change)
}

type Pace = SiteReport['pace']

/** `spacingOf` of what is reported. */
export function siteSpacingMs(
  { ratePerSecond, crawlDelayMs }: Pick<SiteReport['pace'], 'ratePerSecond' | 'crawlDelayMs'>,
  rateFactor = 1,
): number {
  return spacingOf({ ratePerSecond: Number(ratePerSecond.value), crawlDelayMs: Number(crawlDelayMs.value) }, rateFactor)
}

/** Is what is said of the name no matter of the names below it, against what holds for a domain. */
export function coversItselfAlone(domain: string): boolean {
  return isSuffix(domain)
}

export type OverrideChange = { readonly [Name in keyof SiteOverride]: SiteOverride[Name] | undefined }

/**
 * Changes the live override of a domain and of all hosts below it: what is undefined in `change` is taken away, what is not named
 * stays. Resolves once it is stored; every worker follows the topic.
 */
export async function overrideSite(runtime: Runtime, domain: string, change: OverrideChange): Promise<void> {
  const control = await runtime.control()
  await control.readToEnd()
  const payload = mergedOverride(control, domain, change)
  await announce(
    runtime,
    payload === undefined ? { kind: 'delete', subject: subject.site(domain) } : { kind: 'set', subject: subject.site(domain), payload },
  )
}

/** Payload of the override with the change. What is not known here stays as it was written: a newer release may go by it. */
export function mergedOverride(control: Pick<ControlLog, 'get'>, domain: string, change: OverrideChange): object | undefined {
  const held = overridePayload(control, domain)
  const merged = Object.entries({ ...(typeof held === 'object' ? held : {}), ...change }).filter(([, value]) => value !== undefined)
  return merged.length === 0 ? undefined : Object.fromEntries(merged)
}

/**
 * Changes the pace of a domain as `overrideSite` does. Where it becomes faster in some hours, or that of a host below it, the moment is
 * said as well: so what was put aside at the slower one comes back. Shape: whether it was, and what becomes of the domain itself.
 */
export async function paceSite(
  runtime: Runtime,
  domain: string,
  change: OverrideChange,
  about: { readonly userAgent: string; readonly origins: readonly string[] },
): Promise<{ readonly hasFaster: boolean; readonly changes: readonly PaceChange[] }> {
  const { config, clock } = runtime
  const control = await runtime.control()
  await control.readToEnd()
  const override = parseSiteOverride(mergedOverride(control, domain, change))
  const rules = { before: paceRules(config, control, clock), after: paceRules(config, control, clock, { domain, override }) }
  const robots = await keptRobots(runtime, domain, about)
  const below = [`www.${domain}`, ...config['politeness.rules'].map(({ match }) => match.replace(/^\*\./, ''))]
  const hosts = [domain, ...below.filter((host) => isBelow(host, domain))]
  const maxMs = config['politeness.default.crawlDelayMax']
  const changesOf = (host: string): readonly PaceChange[] =>
    paceChanges(rules, new URL(`http://${host}/`), { delayMs: host === domain ? robots?.crawlDelayMs : undefined, maxMs })
  const hasFaster = hosts.some((host) => changesOf(host).some(({ is }) => is === 'faster'))
  const { policy } = rules.before.explain(new URL(`http://${domain}/`))
  const changes = changesOf(domain)
  await overrideSite(runtime, domain, hasFaster ? { ...change, faster: { at: nextMoment(runtime, policy) } } : change)
  return { hasFaster, changes }
}

/** An address has none. */
function isBelow(host: string, domain: string): boolean {
  return host.endsWith(`.${domain}`) && URL.canParse(`http://${host}/`)
}

/** Later than any before, whatever the clock of this machine says. */
function nextMoment({ clock }: Pick<Runtime, 'clock'>, policy: SitePolicy): number {
  return Math.max(clock.now(), liftedAt(policy) + 1)
}

/**
 * Takes back a pause of a domain. The moment is said as well, so that what was put aside for a pause comes back: its hours may be others by
 * now. Resolves once it is stored.
 */
export async function resumeSite(runtime: Runtime, domain: string): Promise<void> {
  const { config, clock } = runtime
  const control = await runtime.control()
  await control.readToEnd()
  const { policy } = paceRules(config, control, clock).explain(new URL(`http://${domain}/`))
  await overrideSite(runtime, domain, { paused: undefined, resumed: { at: nextMoment(runtime, policy) } })
}

/**
 * Forgets what the answers of a domain and of all hosts below it have taught: back-off, breaker, slow-down. The rule and the pause stay.
 * Resolves once it is stored; workers follow the topic, and each key is reset by whoever asks for it next, the domain's own at once.
 */
export async function resetSite(runtime: Runtime, domain: string): Promise<SiteReset> {
  const control = await runtime.control()
  await control.readToEnd()
  const { policy } = paceRules(runtime.config, control, runtime.clock).explain(new URL(`http://${domain}/`))
  const state = await runtime.state()
  const { backOffMs, isAsked, allowed, rateFactor, trips, parkedMs } = await state.limiterState(policy.key)
  const at = nextMoment(runtime, policy)
  const reset: SiteReset = { at, lifted: { backOffMs, isAsked, allowed, rateFactor, trips, parkedMs } }
  await overrideSite(runtime, domain, { reset })
  await state.reset(policy.key, at)
  return reset
}

/**
 * The pace in force for a domain now, why, and what the limiter remembers of it. Changes nothing. `origins`: those whose robots.txt
 * counts; where there is none the usual two of the domain.
 */
export async function showSite(runtime: Runtime, domain: string, userAgent: string, origins: readonly string[] = []): Promise<SiteReport> {
  return siteReport(runtime, domain, async (key) => {
    const state = await runtime.state()
    return { robots: await keptRobots(runtime, domain, { userAgent, origins }), limiter: await state.limiterState(key) }
  })
}

/** The same while the state store does not answer: what the configuration and the topics say, as if nothing were remembered. */
export async function showSiteWithoutStore(runtime: Runtime, domain: string): Promise<SiteReport> {
  return siteReport(runtime, domain, async () => ({ robots: undefined, limiter: NOTHING_REMEMBERED }))
}

/** Of a site that was never asked. */
export const NOTHING_REMEMBERED: LimiterState = {
  leases: 0,
  nextMs: 0,
  backOffMs: 0,
  isAsked: false,
  allowed: null,
  rateFactor: 1,
  trips: 0,
  parkedMs: 0,
  latencyMs: 0,
  failingMs: 0,
  atOnce: null,
}

async function siteReport(
  runtime: Runtime,
  domain: string,
  remembered: (key: PolitenessKey) => Promise<{ readonly robots: KeptRobots | undefined; readonly limiter: LimiterState }>,
): Promise<SiteReport> {
  const hasControl = (await runtime.admin.listTopics()).includes(runtime.topics.control)
  const log = hasControl ? await runtime.control() : undefined
  await log?.readToEnd()
  const control = log ?? NOTHING_SAID
  const explained = paceRules(runtime.config, control, runtime.clock).explain(new URL(`http://${domain}/`))
  const { robots, limiter } = await remembered(explained.policy.key)
  return {
    domain,
    key: explained.policy.key,
    pace: paceFacts(explained, robots?.crawlDelayMs, runtime.config['politeness.default.crawlDelayMax']),
    pausedUntil: explained.policy.pausedUntil ?? null,
    override: overrideOf(control, domain) ?? null,
    reset: lastReset(explained, control),
    robots: robots === undefined ? null : { origin: robots.origin, verdict: robots.verdict, fetchedAt: robots.fetchedAt },
    limiter,
    givenUpInMs: givenUpInMs(limiter, runtime.config['politeness.breaker.giveUp']),
  }
}

function givenUpInMs({ trips, failingMs }: LimiterState, giveUpMs: number): number | null {
  return trips === 0 || giveUpMs === 0 ? null : Math.max(0, giveUpMs - failingMs)
}

/** Before the first `topics apply` nothing was said. */
const NOTHING_SAID: Pick<ControlLog, 'get'> = { get: () => undefined }

function lastReset({ policy, layers }: ExplainedPolicy, control: Pick<ControlLog, 'get'>): SiteReport['reset'] {
  const layer = policy.resetAt === 0 ? undefined : layers.findLast(({ values }) => values.resetAt === policy.resetAt)
  if (layer === undefined) return null
  return { at: policy.resetAt, lifted: overrideOf(control, layer.name)?.reset?.lifted ?? null, from: layerName(layer) }
}

export function paceFacts(
  { policy, layers }: Pick<ExplainedPolicy, 'policy' | 'layers'>,
  robotsDelayMs: number | undefined,
  crawlDelayMaxMs: number,
): SiteReport['pace'] {
  const fact = (name: keyof PaceValues): PaceFact => {
    const layer = layers.findLast(({ values }) => values[name] !== undefined)
    return { value: policy[name], from: layer === undefined ? 'default' : layerName(layer) }
  }
  const { crawlDelayMs, source } = effectiveCrawlDelay(policy.crawlDelayMs, robotsDelayMs, crawlDelayMaxMs)
  return {
    paused: fact('isPaused'),
    ratePerSecond: fact('ratePerSecond'),
    burst: fact('burst'),
    concurrency: fact('concurrency'),
    crawlDelayMs: source === 'robots' ? { value: crawlDelayMs, from: 'robots.txt' } : fact('crawlDelayMs'),
  }
}

function layerName({ source, name }: PaceLayer): string {
  return name === '' ? source : `${source} ${name}`
}

interface KeptRobots {
  readonly origin: string
  readonly verdict: string
  readonly fetchedAt: number
  readonly crawlDelayMs: number | undefined
}

/** robots.txt is kept by origin; where several are known the one that asks for more is shown. None where it is ignored. */
async function keptRobots(
  runtime: Runtime,
  domain: string,
  { userAgent, origins }: { readonly userAgent: string; readonly origins: readonly string[] },
): Promise<KeptRobots | undefined> {
  if (runtime.config['fetch.robots'] !== 'obey') return undefined
  const state = await runtime.state()
  const found: KeptRobots[] = []
  for (const origin of origins.length === 0 ? [`https://${domain}`, `http://${domain}`] : origins) {
    const entry = await state.readRobots(origin)
    if (entry === undefined) continue
    const rules = entry.verdict === 'parsed' ? parseRobots(Buffer.from(entry.body, 'latin1')) : undefined
    const crawlDelayMs = rules === undefined ? undefined : robotsCrawlDelayMs(rules, productToken(userAgent))
    found.push({ origin, verdict: entry.verdict, fetchedAt: entry.fetchedAt, crawlDelayMs })
  }
  return found.sort((a, b) => (b.crawlDelayMs ?? 0) - (a.crawlDelayMs ?? 0))[0]
}
