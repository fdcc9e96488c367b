import { parseDuration } from '../config/units.ts'
import { liftedText, pauseEnd } from '../control/inspect/explain-verdict.ts'
import { packageVersion } from '../control/package-version.ts'
import type { Runtime } from '../control/runtime/runtime.ts'
import { requireOrMakeTopics } from '../control/runtime/topics.ts'
import { beyondSite, existingDomain, siteDomain, siteOrigins } from '../control/sites/site-domain.ts'
import {
  coversItselfAlone,
  type OverrideChange,
  overrideSite,
  type PaceChange,
  type PaceFact,
  paceSite,
  resetSite,
  resumeSite,
  type SiteReport,
  showSite,
  showSiteWithoutStore,
} from '../control/sites/sites.ts'
import { userAgentOf } from '../control/sites/user-agent.ts'
import { durationText } from '../kernel/duration-text.ts'
import { isStateAway, MillraceError } from '../kernel/errors.ts'
import { LEAST_RATE_PER_SECOND } from '../kernel/pace-bounds.ts'
import type { SiteOverride } from '../message/site-override.ts'
import type { CommandContext } from './context.ts'
import { renderTable, toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

export interface RateFlags {
  readonly ratePerSecond?: string
  readonly burst?: string
  readonly concurrency?: string
  readonly crawlDelay?: string
  readonly reset?: boolean
}

export async function pause(context: CommandContext, name: string, isPaused: boolean): Promise<void> {
  const verb = isPaused ? 'pause' : 'resume'
  await change(context, name, verb, isPaused ? overriding({ paused: true }) : resumeSite, (report, now) => {
    if (isPaused) return `${report.domain} is paused: nothing of it starts until \`millrace sites resume ${report.domain}\``
    const { paused } = report.pace
    return paused.value === true
      ? `${report.domain} is still paused (${paused.from}) ${pauseEnd(report, now)}`
      : `${report.domain} goes on; what was put aside meanwhile comes back, at its pace`
  })
}

export async function reset(context: CommandContext, name: string): Promise<void> {
  await change(context, name, 'reset', resetSite, (report, now) => {
    const { pace, reset: done } = report
    const lifted = done === null ? '' : `: ${liftedText(done.lifted)}`
    if (pace.paused.value === true)
      return `${report.domain} was reset${lifted}; it is still paused (${pace.paused.from}) ${pauseEnd(report, now)}`
    return `${report.domain} was reset${lifted}; it is asked again at its pace, and what was put aside for it comes back`
  })
}

export async function rate(context: CommandContext, name: string, flags: RateFlags): Promise<void> {
  const given = overrideFlags(flags)
  const isReset = flags.reset === true
  if (!isReset && Object.keys(given).length === 0)
    throw new MillraceError('USAGE', 'sites rate needs a value, like --rate-per-second 0.5, or --reset')
  const none = { ratePerSecond: undefined, burst: undefined, concurrency: undefined, crawlDelayMs: undefined }
  let changed: Awaited<ReturnType<typeof paceSite>> | undefined
  const apply = async (runtime: Runtime, domain: string): Promise<void> => {
    const about = { userAgent: userAgentOf(runtime.config, packageVersion()), origins: siteOrigins(name) }
    changed = await paceSite(runtime, domain, { ...(isReset ? none : {}), ...given }, about)
  }
  await change(context, name, 'rate', apply, (report, now) => {
    // It may be hours of work, and it can't be seen that it was given new times.
    if (changed?.hasFaster === true) context.note('what was put aside at the slower pace comes back as the new one allows')
    const byHours = byHoursText(changed?.changes ?? [])
    if (byHours !== undefined) context.note(byHours)
    const { ratePerSecond, burst, concurrency, crawlDelayMs, paused } = report.pace
    const delay = crawlDelayMs.value === 0 ? '' : `, ${durationText(Number(crawlDelayMs.value))} between them`
    const bursts = burst.value === 1 ? '' : ` in bursts of ${burst.value}`
    const pause = paused.value === true ? `; it is paused (${paused.from}) ${pauseEnd(report, now)}` : ''
    return `${report.domain}: ${ratePerSecond.value} request${ratePerSecond.value === 1 ? '' : 's'} per second${bursts}, ${concurrency.value} at the same time${delay}${pause}`
  })
}

/** Where a change does not do the same at all hours; undefined where it does. Pure. */
export function byHoursText(changes: readonly PaceChange[]): string | undefined {
  if (new Set(changes.map(({ is }) => is)).size < 2) return undefined
  const parts = (['faster', 'slower', 'same'] as const).flatMap((how) => {
    const hours = changes.filter(({ is }) => is === how).map(({ hours }) => hours ?? 'the other hours')
    return hours.length === 0 ? [] : [`${how === 'same' ? 'as before' : how} in ${hours.join(', ')}`]
  })
  return `by the schedule of its rule this is ${parts.join('; ')}`
}

export async function show(context: CommandContext, name: string): Promise<void> {
  const domain = siteDomain(name)
  noteCovered(context, name, domain)
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace sites show', async (runtime) => {
    const report = await reportOf(runtime, domain, name)
    if (context.globals.json) await context.out(toJson(report))
    else await writeReport(context, report, runtime.clock.now())
  })
}

async function change(
  context: CommandContext,
  name: string,
  verb: string,
  apply: (runtime: Runtime, domain: string) => Promise<unknown>,
  said: (report: SiteReport, now: number) => string,
): Promise<void> {
  // What an earlier version has paused by a `*` can still be resumed.
  const domain = verb === 'resume' ? siteDomain(name) : existingDomain(name)
  noteCovered(context, name, domain)
  const { config } = context.loadConfig()
  await withRuntime(context, config, `millrace sites ${verb}`, async (runtime) => {
    await requireOrMakeTopics(runtime)
    await apply(runtime, domain)
    const report = await reportOfChanged(context, runtime, domain, name)
    if (context.globals.json) await context.out(toJson(report))
    else await context.out(said(report, runtime.clock.now()))
  })
}

/** Whoever gives the URL of a page may mean that page alone, and whoever gives a suffix all domains below it. */
function noteCovered(context: CommandContext, name: string, domain: string): void {
  if (coversItselfAlone(domain)) context.note(`domains below ${domain} are sites of their own, which this does not cover`)
  const beyond = beyondSite(name)
  if (beyond === undefined) return
  const shown = beyond.length <= BEYOND_SHOWN ? beyond : `${beyond.slice(0, BEYOND_SHOWN)}…`
  context.note(`a site is paced as a whole: all of ${domain} is meant, not ${shown} alone`)
}

const BEYOND_SHOWN = 100

function overriding(override: OverrideChange): (runtime: Runtime, domain: string) => Promise<unknown> {
  return (runtime, domain) => overrideSite(runtime, domain, override)
}

/** It is done, and what is known of the site beside that must not make a failure of it. */
async function reportOfChanged(context: CommandContext, runtime: Runtime, domain: string, name: string): Promise<SiteReport> {
  try {
    return await reportOf(runtime, domain, name)
  } catch (error) {
    if (!isStateAway(error)) throw error
    context.note(`it is done; what the limiter knows of ${domain} can't be read now: ${error.message}`)
    return await showSiteWithoutStore(runtime, domain)
  }
}

/** `name`: as it was typed. */
function reportOf(runtime: Runtime, domain: string, name: string): Promise<SiteReport> {
  return showSite(runtime, domain, userAgentOf(runtime.config, packageVersion()), siteOrigins(name))
}

function overrideFlags({ ratePerSecond, burst, concurrency, crawlDelay }: RateFlags): Partial<SiteOverride> {
  const crawlDelayMs = crawlDelay === undefined ? undefined : parseDuration(crawlDelay)
  if (crawlDelay !== undefined && crawlDelayMs === undefined)
    throw new MillraceError('USAGE', `--crawl-delay ${JSON.stringify(crawlDelay)} is no duration; write 2s or 500ms`)
  return {
    ...number(
      '--rate-per-second',
      'ratePerSecond',
      ratePerSecond,
      (value) => value >= LEAST_RATE_PER_SECOND,
      `a number of at least ${LEAST_RATE_PER_SECOND}`,
    ),
    ...number('--burst', 'burst', burst, (value) => Number.isSafeInteger(value) && value > 0, 'a whole number above 0'),
    ...number('--concurrency', 'concurrency', concurrency, (value) => Number.isSafeInteger(value) && value > 0, 'a whole number above 0'),
    ...(crawlDelayMs === undefined ? {} : { crawlDelayMs }),
  }
}

function number(
  flag: string,
  name: keyof SiteOverride,
  text: string | undefined,
  fits: (value: number) => boolean,
  expected: string,
): Partial<SiteOverride> {
  if (text === undefined) return {}
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (!Number.isFinite(value) || !fits(value))
    throw new MillraceError('USAGE', `${flag} ${JSON.stringify(text)} is not possible; expected ${expected}`)
  return { [name]: value }
}

function adaptiveText({ allowed, rateFactor }: SiteReport['limiter']): string {
  if (allowed === null && rateFactor === 1) return 'the whole pace'
  const atOnce = allowed === null ? '' : `${Math.floor(allowed)} at the same time`
  const share = rateFactor === 1 ? '' : `${Math.round(rateFactor * 100)} % of the rate`
  return [atOnce, share].filter((text) => text !== '').join(', ')
}

function breakerText({ trips, parkedMs, failingMs }: SiteReport['limiter']): string {
  if (trips === 0) return failingMs === 0 ? 'closed' : `closed; no answer for ${durationText(failingMs)}`
  const since = `no answer for ${durationText(failingMs)}, parked ${trips === 1 ? 'once' : `${trips} times`}`
  return parkedMs === 0 ? `half open, one request at a time; ${since}` : `open for ${durationText(parkedMs)}; ${since}`
}

/** Of a site that is parked. */
function givenUpText({ givenUpInMs }: SiteReport): string {
  if (givenUpInMs === null) return 'never: its URLs wait for it'
  return givenUpInMs === 0 ? 'now: its URLs fail' : `in ${durationText(givenUpInMs)}, unless it answers`
}

function robotsText({ verdict, fetchedAt }: NonNullable<SiteReport['robots']>, now: number): string {
  const ago = `${durationText(Math.max(0, now - fetchedAt))} ago`
  return verdict === 'unreachable' ? `could not be read ${ago}, asked again at each attempt` : `${verdict}, read ${ago}`
}

async function writeReport(context: CommandContext, report: SiteReport, now: number): Promise<void> {
  const { pace, limiter, robots } = report
  const nextMs = Math.max(limiter.nextMs, limiter.backOffMs, limiter.parkedMs)
  const next = nextMs === 0 ? 'now' : `in ${durationText(nextMs)}`
  const pausedFor = report.pausedUntil === null ? '' : `, in ${durationText(report.pausedUntil - now)}`
  const duration = ({ value }: PaceFact): string => (value === 0 ? 'none' : durationText(Number(value)))
  const rows = [
    ['paused', pace.paused.value === true ? 'yes' : 'no', pace.paused.from],
    ['requests per second', String(pace.ratePerSecond.value), pace.ratePerSecond.from],
    ['burst', String(pace.burst.value), pace.burst.from],
    ['at the same time', String(pace.concurrency.value), pace.concurrency.from],
    ['crawl delay', duration(pace.crawlDelayMs), pace.crawlDelayMs.from],
  ]
  await context.out(renderTable([{ title: 'PACE' }, { title: report.key }, { title: 'FROM', flexible: true }], rows))
  await context.out('')
  const facts = [
    ['under way', `${limiter.leases}`],
    ['next start', pace.paused.value === true ? `after the pause${pausedFor}` : next],
    ['back-off', limiter.backOffMs === 0 ? 'none' : `for ${durationText(limiter.backOffMs)}${limiter.isAsked ? ', as the site asks' : ''}`],
    ['adaptive', adaptiveText(limiter)],
    ['breaker', breakerText(limiter)],
    ...(limiter.trips === 0 ? [] : [['given up', givenUpText(report)]]),
    ...(report.reset === null
      ? []
      : [['reset', `${durationText(Math.max(0, now - report.reset.at))} ago, ${report.reset.from}: ${liftedText(report.reset.lifted)}`]]),
    ['time to first byte', limiter.latencyMs === 0 ? 'not known' : durationText(limiter.latencyMs)],
    ['robots.txt', robots === null ? 'not known' : robotsText(robots, now)],
  ]
  await context.out(renderTable([{ title: 'LIMITER' }, { title: 'NOW', flexible: true }], facts))
}
