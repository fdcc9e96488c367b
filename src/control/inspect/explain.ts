import type { FetchView, TaskView } from '../../fetch/fetch-view.ts'
import { isStateAway, MillraceError } from '../../kernel/errors.ts'
import { productToken } from '../../kernel/product-token.ts'
import type { Outcome } from '../../message/generated/types.ts'
import { laneTopics } from '../../message/topics.ts'
import { parseRobots, robotsVerdict } from '../../politeness/robots.ts'
import { canonicalUrl } from '../../url/canonical-url.ts'
import { parseFetchUrl } from '../../url/parse-url.ts'
import { bareHost, registrableDomain } from '../../url/registrable-domain.ts'
import type { ListedDeadLetter } from '../dead-letters/dead-letters.ts'
import { liveWorkers } from '../groups/live-workers.ts'
import { askWorkers } from '../groups/worker-socket.ts'
import { type Runtime, requireTopics } from '../runtime/runtime.ts'
import { proxyRules } from '../sites/proxy-rules.ts'
import { type SiteReport, showSite, showSiteWithoutStore } from '../sites/sites.ts'
import { findUrl, type PagePlace, type WaitingTask } from './explain-places.ts'
import { explainVerdict, type ProxiesOfUrl, type RobotsOfUrl, type UrlFacts, type UrlVerdict } from './explain-verdict.ts'

export interface ExplainReport extends UrlVerdict {
  readonly url: string
  readonly canonicalUrl: string
  /** Partition key. */
  readonly domain: string
  readonly waiting: readonly WaitingTask[]
  /** Where it is in the memory of fetch workers of this machine. */
  readonly inWorkers: readonly (TaskView & { readonly pid: number; readonly stalledBy: string | null })[]
  /** What happened to it, oldest first. */
  readonly outcomes: readonly Outcome[]
  readonly page: PagePlace | null
  readonly deadLetters: readonly ListedDeadLetter[]
  readonly site: Pick<SiteReport, 'key' | 'pace' | 'limiter' | 'pausedUntil' | 'givenUpInMs' | 'reset'>
  readonly robots: RobotsOfUrl | null
  /** Why the state store has said nothing of the site and its robots.txt; null: it has. */
  readonly stateAway: string | null
  readonly proxies: ProxiesOfUrl
  /** Members of the groups, and how many fetch workers answered on this machine. */
  readonly workers: { readonly fetch: number; readonly delay: number; readonly answered: number }
  /** False where a topic was longer than is searched. */
  readonly isComplete: boolean
  readonly searchedBytes: number
  readonly elapsedMs: number
}

/**
 * Where a URL is, what it waits for and until when, and what happened to it. Changes nothing; works with and without workers.
 * Errors: USAGE for a text that is no URL; KAFKA_TOPIC_MISSING before `topics apply`.
 */
export async function explain(
  runtime: Runtime,
  text: string,
  options: { userAgent: string; signal?: AbortSignal },
): Promise<ExplainReport> {
  const startedMono = runtime.clock.mono()
  const parsed = parseFetchUrl(text)
  if (!parsed.ok) throw new MillraceError('USAGE', parsed.detail)
  const { url } = parsed
  const { topics } = runtime
  await requireTopics(runtime, [...laneTopics(topics), topics.outcomes, topics.html, topics.deadLetters, topics.control])
  const [inWorkers, places, { site, robots, stateAway }, members, delayWaitsFor] = await Promise.all([
    fromWorkers(runtime, canonicalUrl(url)),
    findUrl(runtime, url, options.signal),
    siteOf(runtime, url, options.userAgent),
    membersOf(runtime),
    waitsOfDelay(runtime),
  ])
  const { views, answered, stalled } = inWorkers
  const all = proxyRules(runtime.config)(url).map(({ label }) => label)
  const proxies = { all, out: inWorkers.proxiesOut.filter(({ proxy }) => all.includes(proxy)) }
  const now = runtime.clock.now()
  const verdict = explainVerdict({ now, ...places, inWorkers: views, stalled, delayWaitsFor, site, robots, stateAway, proxies, members })
  const { waiting, outcomes, page, deadLetters, isComplete, bytes } = places
  return {
    url: url.href,
    canonicalUrl: canonicalUrl(url),
    domain: registrableDomain(url),
    ...verdict,
    waiting,
    inWorkers: views,
    outcomes,
    page,
    deadLetters,
    site: {
      key: site.key,
      pace: site.pace,
      limiter: site.limiter,
      pausedUntil: site.pausedUntil,
      givenUpInMs: site.givenUpInMs,
      reset: site.reset,
    },
    robots,
    stateAway,
    proxies,
    workers: { ...members, answered },
    isComplete,
    searchedBytes: bytes,
    elapsedMs: Math.round(runtime.clock.mono() - startedMono),
  }
}

async function fromWorkers(
  runtime: Runtime,
  canonical: string,
): Promise<{
  views: ExplainReport['inWorkers']
  stalled: UrlFacts['stalled']
  proxiesOut: ProxiesOfUrl['out']
  answered: number
}> {
  const { dataDir, clock } = runtime
  const [found, views] = await Promise.all([
    askWorkers<readonly TaskView[]>(dataDir, { ask: 'find', canonicalUrl: canonical }, { clock }),
    askWorkers<FetchView>(dataDir, { ask: 'view' }, { clock }),
  ])
  const stalled = new Map(views.map(({ pid, answer }) => [pid, answer.stalledBy]))
  return {
    views: found.flatMap(({ pid, answer }) => answer.map((view) => ({ ...view, pid, stalledBy: stalled.get(pid) ?? null }))),
    stalled: views.flatMap(({ pid, answer: { stalledBy } }) => (stalledBy === null ? [] : [{ pid, stalledBy }])),
    // A worker of an earlier version does not tell.
    proxiesOut: views.flatMap(({ pid, answer }) => (answer.proxiesOut ?? []).map((each) => ({ ...each, pid }))),
    answered: found.length,
  }
}

/** What is known of the site; the state store may be away, which is then the answer. */
async function siteOf(
  runtime: Runtime,
  url: URL,
  userAgent: string,
): Promise<{ readonly site: SiteReport } & Pick<UrlFacts, 'robots' | 'stateAway'>> {
  const domain = bareHost(url.hostname)
  try {
    const [site, robots] = await Promise.all([showSite(runtime, domain, userAgent, [url.origin]), robotsOf(runtime, url, userAgent)])
    return { site, robots, stateAway: null }
  } catch (error) {
    if (!isStateAway(error)) throw error
    return { site: await showSiteWithoutStore(runtime, domain), robots: null, stateAway: error.message }
  }
}

/** As its workers tell by the state store; nothing where that is away. */
async function waitsOfDelay(runtime: Runtime): Promise<readonly string[]> {
  try {
    return (await liveWorkers(runtime)).flatMap(({ stage, waitsFor = [] }) => (stage === 'delay' ? waitsFor : []))
  } catch (error) {
    if (isStateAway(error)) return []
    throw error
  }
}

async function robotsOf(runtime: Runtime, url: URL, userAgent: string): Promise<RobotsOfUrl | null> {
  if (runtime.config['fetch.robots'] !== 'obey') return null
  const state = await runtime.state()
  const entry = await state.readRobots(url.origin)
  if (entry === undefined) return null
  const { verdict, fetchedAt } = entry
  // A version before this one did not say why.
  const problem = verdict === 'unreachable' && entry.body !== '' ? entry.body : null
  if (verdict !== 'parsed') return { verdict, fetchedAt, allowed: verdict === 'absent', rule: null, problem }
  const rules = parseRobots(Buffer.from(entry.body, 'latin1'))
  const { allowed, rule } = robotsVerdict(rules, productToken(userAgent), `${url.pathname}${url.search}`)
  return { verdict, fetchedAt, allowed, rule: rule ?? null, problem }
}

async function membersOf({ admin, groups }: Runtime): Promise<{ fetch: number; delay: number }> {
  const [fetch, delay] = await Promise.all([admin.describeGroup(groups.fetch), admin.describeGroup(groups.delay)])
  return { fetch: fetch.members.length, delay: delay.members.length }
}
