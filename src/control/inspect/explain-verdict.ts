import { isHold, type TaskView } from '../../fetch/fetch-view.ts'
import type { ProxyOut } from '../../fetch/proxy-ring.ts'
import { placeText } from '../../kernel/brand.ts'
import { countText } from '../../kernel/count-text.ts'
import { durationText } from '../../kernel/duration-text.ts'
import type { Outcome } from '../../message/generated/types.ts'
import { NO_PLACE } from '../../message/header-names.ts'
import { isFinal } from '../../message/outcome.ts'
import { requestsAtOnce } from '../../politeness/crawl-delay.ts'
import type { KnownHealth } from '../../state/state-store.ts'
import type { ListedDeadLetter } from '../dead-letters/dead-letters.ts'
import { type SiteReport, siteSpacingMs } from '../sites/sites.ts'
import type { PagePlace, WaitingTask } from './explain-places.ts'

/**
 * under-way: its turn has come in a worker. waiting: in a lane, read or not. delayed: in a delay topic. fetched, ended, failed: its last
 * outcome is final. unknown: the topics hold nothing of it.
 */
export type UrlState = 'under-way' | 'waiting' | 'delayed' | 'fetched' | 'ended' | 'failed' | 'unknown'

/** What a URL that is not at its end waits for. */
export type WaitsFor =
  | 'fetch-worker'
  | 'delay-worker'
  | 'due-time'
  | 'paused'
  | 'state-store'
  | 'disk'
  /** The schema registry, for the schema that its message names. */
  | 'registry'
  /** The blob store, to take its page; or its request is still under way. */
  | 'blobs'
  | 'turn'
  | 'request'
  /** Of a former owner of its partition, which has it on the wire. */
  | 'handover'
  /** For a place in the page budget of its crawl, which others hold. */
  | 'page-budget'
  /** To take what it ended with. */
  | 'kafka'
  /** As the limiter says it: rate, concurrency, crawl-delay, back-off, retry-after, breaker, warm-up. */
  | (string & {})

export interface RobotsOfUrl {
  readonly verdict: string
  readonly allowed: boolean
  /** The line that decides; null: none does. */
  readonly rule: string | null
  /** Why it could not be read; null where it was. */
  readonly problem: string | null
  readonly fetchedAt: number
}

/** What the site is asked through. */
export interface ProxiesOfUrl {
  /** Without users and passwords; empty: nothing, it is asked directly. */
  readonly all: readonly string[]
  /** Those of them that a fetch worker leaves out now. */
  readonly out: readonly (ProxyOut & { readonly pid: number })[]
}

export interface UrlFacts {
  readonly now: number
  readonly waiting: readonly WaitingTask[]
  readonly inWorkers: readonly (TaskView & { readonly pid: number; readonly stalledBy: string | null })[]
  /** Fetch workers of this machine that wait for something. */
  readonly stalled: readonly { readonly pid: number; readonly stalledBy: string }[]
  /** The same of delay workers, wherever they run. */
  readonly delayWaitsFor: readonly string[]
  readonly outcomes: readonly Outcome[]
  readonly page: PagePlace | null
  readonly deadLetters: readonly ListedDeadLetter[]
  /** False where a topic was longer than is searched. */
  readonly isComplete: boolean
  readonly site: Pick<SiteReport, 'key' | 'limiter' | 'pausedUntil' | 'givenUpInMs' | 'reset'> & {
    readonly pace: Pick<SiteReport['pace'], 'paused' | 'ratePerSecond' | 'concurrency' | 'crawlDelayMs'>
  }
  readonly robots: RobotsOfUrl | null
  /** Why the state store says nothing of the site, its robots.txt and the limiter; null: it does. */
  readonly stateAway: string | null
  readonly proxies: ProxiesOfUrl
  readonly members: { readonly fetch: number; readonly delay: number }
}

export interface UrlVerdict {
  readonly state: UrlState
  /** What it waits for; null: nothing, it is at its end or unknown. */
  readonly waitsFor: WaitsFor | null
  /** Epoch ms until which it waits at least, as far as anybody can tell; null: nobody can. */
  readonly until: number | null
  /** Sentences for people. */
  readonly lines: readonly string[]
}

/** What a URL waits for whether the state store answers or not. */
const HOLDS: ReadonlySet<string> = new Set<WaitsFor>(['fetch-worker', 'kafka', 'paused', 'disk', 'registry', 'handover'])

const PLACE_LINE =
  'the page limit of its crawl is reached, with pages that are not fetched yet: it takes the place of one that fails, and is refused when none can any more'

/** Where a URL is and what it waits for, out of all that is known. Pure. */
export function explainVerdict(facts: UrlFacts): UrlVerdict {
  const verdict = verdictOf(facts)
  const { state, waitsFor, lines } = verdict
  if (facts.stateAway === null || state === 'fetched' || state === 'ended' || state === 'failed' || state === 'unknown') return verdict
  const away = `what the state store remembers of the site is not known, and no worker asks a site until it answers: ${facts.stateAway}`
  const isForStore = state === 'waiting' && !HOLDS.has(waitsFor ?? '')
  return { ...verdict, ...(isForStore ? { waitsFor: 'state-store', until: null } : {}), lines: [...lines, away] }
}

function verdictOf(facts: UrlFacts): UrlVerdict {
  const underWay = facts.inWorkers.find(({ state }) => state === 'turn')
  if (underWay !== undefined) return turnVerdict(facts, underWay)
  const inWorker = facts.inWorkers[0]
  if (inWorker !== undefined) return workerVerdict(facts, inWorker)
  const inLane = facts.waiting.find(({ dueAt }) => dueAt === null)
  if (inLane !== undefined) return laneVerdict(facts, inLane)
  const delayed = [...facts.waiting].sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0))[0]
  if (delayed !== undefined) return delayVerdict(facts, delayed)
  return endVerdict(facts)
}

function turnVerdict(facts: UrlFacts, { pid, attempt, stalledBy, url, unwrittenMs }: UrlFacts['inWorkers'][number]): UrlVerdict {
  // A worker of an earlier version does not tell.
  if (typeof unwrittenMs === 'number') {
    const line = `it was asked by process ${pid} (attempt ${attempt}, ${url}); Kafka has not taken its answer for ${durationText(unwrittenMs)}`
    return { state: 'under-way', waitsFor: 'kafka', until: null, lines: [line] }
  }
  const held = stalledBy === 'registry' ? null : stalledBy
  const waitsFor = held ?? 'request'
  const what =
    held === null
      ? 'robots.txt and the limiter are asked, or its request is under way'
      : held === 'blobs'
        ? 'its request is under way, or its page is too large for a message and waits for the blob store, which does not answer or is full'
        : `it waits for the ${held}`
  return {
    state: 'under-way',
    waitsFor,
    until: null,
    lines: [`its turn has come in process ${pid} (attempt ${attempt}, ${url}): ${what}`, ...robotsLines(facts)],
  }
}

function workerVerdict(facts: UrlFacts, view: UrlFacts['inWorkers'][number]): UrlVerdict {
  const { pid, before, siteWaitMs, siteWaitReason, site, siteInFlight, siteConcurrency, handoverMs, awaitsPlace } = view
  // What it has in memory goes on without the others: the registry was asked, and the blob store is for those that had their turn.
  const stalledBy = isHold(view.stalledBy) ? view.stalledBy : null
  // A worker of an earlier version does not tell.
  if (typeof handoverMs === 'number' && stalledBy === null) {
    const line = `the worker that had its partition before still waits for its answer: process ${pid} takes it up then, in ${durationText(handoverMs)} at the latest`
    return { state: 'waiting', waitsFor: 'handover', until: null, lines: [line, ...robotsLines(facts)] }
  }
  if (awaitsPlace === true && stalledBy === null) {
    const lines = [`waits in process ${pid}`, PLACE_LINE, ...robotsLines(facts)]
    return { state: 'waiting', waitsFor: 'page-budget', until: null, lines }
  }
  const lines = [`waits in process ${pid} behind ${countText(before, 'task')} of ${site}`]
  const busy = siteInFlight >= siteConcurrency ? 'concurrency' : undefined
  const waitsFor = stalledBy ?? (siteWaitMs > 0 ? (siteWaitReason ?? 'rate') : (busy ?? 'turn'))
  const isPaused = waitsFor === 'paused' && facts.site.pace.paused.value === true
  const until = isPaused
    ? facts.site.pausedUntil
    : facts.now + siteWaitMs + before * siteSpacingMs(facts.site.pace, facts.site.limiter.rateFactor)
  if (stalledBy !== null) lines.push(`the worker starts no request: it waits for the ${stalledBy}`)
  else if (isPaused) lines.push(pausedLine(facts))
  else if (siteWaitMs > 0) lines.push(`${site} may be asked again in ${durationText(siteWaitMs)} (${waitsFor})`)
  else if (busy !== undefined) lines.push(`${countText(siteInFlight, 'request')} of ${site} under way, no more are allowed`)
  lines.push(...paceLines(facts), ...proxyLines(facts), ...robotsLines(facts))
  return { state: 'waiting', waitsFor, until: stalledBy === null ? until : null, lines }
}

function laneVerdict(facts: UrlFacts, task: WaitingTask): UrlVerdict {
  const lines = [
    `waits in ${task.topic}, partition ${task.partition}, offset ${task.offset}: ${countText(task.before, 'message')} from the first that is not finished${attemptText(task)}`,
  ]
  if (facts.members.fetch === 0) {
    lines.push('no fetch worker runs')
    return { state: 'waiting', waitsFor: 'fetch-worker', until: null, lines: [...lines, ...robotsLines(facts)] }
  }
  const wait = siteWait(facts)
  const taking = facts.stalled.filter(({ stalledBy }) => stalledBy !== 'blobs')
  const [stalled] = taking
  lines.push(
    ...taking.map(({ pid, stalledBy }) => `process ${pid} takes nothing up: it waits for the ${stalledBy}`),
    ...timeLines(facts, task),
    ...(wait.line === undefined ? [] : [wait.line]),
    ...paceLines(facts),
    ...proxyLines(facts),
    ...robotsLines(facts),
  )
  return {
    state: 'waiting',
    waitsFor: wait.reason ?? stalled?.stalledBy ?? 'turn',
    until: stalled === undefined ? wait.until : null,
    lines,
  }
}

function delayVerdict(facts: UrlFacts, task: WaitingTask): UrlVerdict {
  const { dueAt, reason, topic, partition, offset } = task
  const why = reason === null ? '' : ` (${reason})`
  const when = dueAt === null ? '' : ` until ${time(dueAt)}, ${relative(dueAt, facts.now)}`
  const lines = [`waits in ${topic}, partition ${partition}, offset ${offset}${when}${why}${attemptText(task)}`]
  if (reason === NO_PLACE) lines.push(PLACE_LINE)
  const isForRegistry = (dueAt ?? 0) <= facts.now && facts.delayWaitsFor.includes('registry')
  const waitsFor = waitOfDelayed(facts, isForRegistry)
  if (isForRegistry) lines.push('no delay worker brings it back before the schema registry answers')
  if (facts.members.delay === 0) lines.push('no delay worker runs, so it stays there')
  if (facts.site.pace.paused.value === true) lines.push(pausedLine(facts))
  lines.push(...timeLines(facts, task), ...paceLines(facts), ...proxyLines(facts), ...robotsLines(facts))
  return { state: 'delayed', waitsFor, until: dueAt, lines }
}

function waitOfDelayed({ members, site }: UrlFacts, isForRegistry: boolean): WaitsFor {
  if (members.delay === 0) return 'delay-worker'
  if (isForRegistry) return 'registry'
  return site.pace.paused.value === true ? 'paused' : 'due-time'
}

function endVerdict(facts: UrlFacts): UrlVerdict {
  const last = facts.outcomes.findLast(({ kind }) => isFinal(kind)) ?? facts.outcomes.at(-1)
  const letter = facts.deadLetters.at(-1)
  const letterLines = facts.deadLetters.map(
    ({ partition, offset, info, resolved }) =>
      `dead letter ${partition}:${offset}: ${info.code ?? 'without a code'} at ${info.stage ?? 'an unknown stage'}${resolved === undefined ? '' : `, ${resolved.action}`}`,
  )
  const end = { waitsFor: null, until: null } as const
  if (last === undefined) {
    if (letter !== undefined) return { state: 'failed', ...end, lines: letterLines }
    const line = facts.isComplete ? 'never seen: no topic holds anything of it' : 'not found in what was searched'
    const hint = 'a page that came by a redirect is found by the URL that was asked for; `millrace lineage` takes that of its records too'
    return { state: 'unknown', ...end, lines: [line, hint, ...robotsLines(facts)] }
  }
  const status = last.status === null ? '' : `, status ${last.status}`
  const reason = last.reason === null ? '' : `: ${last.reason}`
  const lines = [`${last.kind}${reason}${status}, ${time(last.at)}`]
  const { page } = facts
  if (page !== null) lines.push(`its page: ${placeText(page)}`)
  if (page === null && last.kind === 'FETCHED') lines.push('its page has left html, or lies further on than was searched')
  const state: UrlState = last.kind === 'FETCHED' || last.kind === 'UNCHANGED' ? 'fetched' : last.kind === 'FAILED' ? 'failed' : 'ended'
  return { state, ...end, lines: [...lines, ...letterLines, ...(last.kind === 'REFUSED' ? robotsLines(facts) : [])] }
}

/** What the site waits for as a whole, by what the store remembers; a worker that has just asked knows better. */
function siteWait(facts: UrlFacts): { readonly reason?: string; readonly line?: string; readonly until: number | null } {
  const { pace, limiter, key } = facts.site
  if (pace.paused.value === true) return { reason: 'paused', line: pausedLine(facts), until: facts.site.pausedUntil }
  if (limiter.parkedMs > 0)
    return {
      reason: 'breaker',
      line: `${key} does not answer and is parked for another ${durationText(limiter.parkedMs)} (breaker)`,
      until: facts.now + limiter.parkedMs,
    }
  if (limiter.backOffMs > 0) {
    const reason = limiter.isAsked ? 'retry-after' : 'back-off'
    return {
      reason,
      line: `${key} is left alone for another ${durationText(limiter.backOffMs)} (${reason})`,
      until: facts.now + limiter.backOffMs,
    }
  }
  if (limiter.leases >= atOnce(facts.site))
    return { reason: 'concurrency', line: `${countText(limiter.leases, 'request')} of ${key} under way, no more are allowed`, until: null }
  if (limiter.nextMs > 0) {
    const reason = Number(pace.crawlDelayMs.value) > 0 ? 'crawl-delay' : 'rate'
    return { reason, line: `${key} may be asked again in ${durationText(limiter.nextMs)} (${reason})`, until: facts.now + limiter.nextMs }
  }
  return { until: null }
}

function pausedLine({ site, now }: UrlFacts): string {
  return `${site.key} is paused (${site.pace.paused.from}) ${pauseEnd(site, now)}`
}

/** What ends a pause. */
export function pauseEnd({ pace, pausedUntil }: Pick<UrlFacts['site'], 'pace' | 'pausedUntil'>, now: number): string {
  if (pausedUntil !== null) return `until ${time(pausedUntil)}, ${relative(pausedUntil, now)}`
  return pace.paused.from.startsWith('schedule') ? 'in all of its hours' : 'until `millrace sites resume`'
}

/** Proxies that are out, by worker: each tries them for itself. */
function proxyLines({ proxies: { all, out }, site: { key } }: UrlFacts): string[] {
  return [...new Set(out.map(({ pid }) => pid))].flatMap((pid) => {
    const own = out.filter((each) => each.pid === pid)
    const named = own.map(({ proxy, reason, forMs }) => `${proxy} for another ${durationText(forMs)} (${reason})`).join(', ')
    if (own.length < all.length) return [`process ${pid} leaves out of the proxies of ${key}: ${named}`]
    const firstMs = Math.min(...own.map(({ forMs }) => forMs))
    return [`process ${pid} has no proxy left for ${key}, the first is tried again in ${durationText(firstMs)}: ${named}`]
  })
}

function paceLines({ now, site: { key, pace, limiter, givenUpInMs, reset } }: UrlFacts): string[] {
  const delay =
    Number(pace.crawlDelayMs.value) > 0 ? `, crawl delay ${durationText(Number(pace.crawlDelayMs.value))} (${pace.crawlDelayMs.from})` : ''
  const learnt = limiter.rateFactor < 1 || limiter.atOnce !== null ? ', lowered by what it answered' : ''
  return [
    `pace of ${key}: ${pace.ratePerSecond.value} a second (${pace.ratePerSecond.from}), ${pace.concurrency.value} at once${delay}${learnt}`,
    ...(givenUpInMs === null
      ? []
      : [`URLs of ${key} fail ${givenUpInMs === 0 ? 'now' : `in ${durationText(givenUpInMs)}`} unless it answers`]),
    ...(reset === null ? [] : [`${key} was reset ${relative(reset.at, now)} (${reset.from}): ${liftedText(reset.lifted)}`]),
  ]
}

/** What a reset took away. */
export function liftedText(health: KnownHealth | null): string {
  if (health === null) return 'what it lifted is not known'
  const { backOffMs, isAsked, allowed, rateFactor, trips, parkedMs } = health
  const lifted = [
    ...(backOffMs > 0 ? [`a back-off of ${durationText(backOffMs)}${isAsked ? ' that the site had asked for' : ''}`] : []),
    ...(trips > 0 ? [`an open breaker${parkedMs > 0 ? `, another ${durationText(parkedMs)}` : ''}`] : []),
    ...(allowed !== null || rateFactor < 1 ? ['a slower pace'] : []),
  ]
  return lifted.length === 0 ? 'nothing stood in its way then' : `it lifted ${lifted.join(', ')}`
}

function robotsLines({ robots }: UrlFacts): string[] {
  if (robots === null) return []
  const rule = robots.rule === null ? '' : ` by \`${robots.rule}\``
  if (robots.verdict === 'unreachable')
    return [
      `robots.txt could not be read at ${time(robots.fetchedAt)}: it is asked again at each attempt`,
      ...(robots.problem === null ? [] : [`why: ${robots.problem}`]),
    ]
  if (!robots.allowed) return [`robots.txt forbids it${rule}: it will end REFUSED`]
  return robots.rule === null ? [] : [`robots.txt allows it${rule}`]
}

function timeLines({ now }: UrlFacts, { notBefore, expiresAt }: WaitingTask): string[] {
  return [
    ...(notBefore !== null && notBefore > now ? [`not to be fetched before ${time(notBefore)}`] : []),
    ...(expiresAt === null ? [] : [expiresAt <= now ? `expired ${time(expiresAt)}: it will end EXPIRED` : `expires ${time(expiresAt)}`]),
  ]
}

/** As the limiter counts: the pace, and what the answers of the site leave of it. */
function atOnce({ pace, limiter }: UrlFacts['site']): number {
  const byPace = requestsAtOnce({ concurrency: Number(pace.concurrency.value), crawlDelayMs: Number(pace.crawlDelayMs.value) })
  return Math.min(byPace, limiter.atOnce ?? byPace)
}

function attemptText({ attempt }: WaitingTask): string {
  return attempt > 1 ? `; attempt ${attempt} comes then` : ''
}

function time(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

function relative(epochMs: number, now: number): string {
  return epochMs > now ? `in ${durationText(epochMs - now)}` : `${durationText(now - epochMs)} ago`
}
