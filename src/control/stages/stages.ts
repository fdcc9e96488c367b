import { DelayWorker } from '../../delay/delay-worker.ts'
import { createAddressBook } from '../../fetch/address-book.ts'
import { FetchWorker } from '../../fetch/fetch-worker.ts'
import { HttpClient } from '../../fetch/http-client.ts'
import { LoopShare } from '../../fetch/loop-share.ts'
import { createNameLookup } from '../../fetch/name-lookup.ts'
import { FrontierWorker, type FrontierWorkerOptions } from '../../frontier/frontier-worker.ts'
import { DeadLetterPublisher } from '../../kafka/dead-letter-publisher.ts'
import { WindowedConsumer } from '../../kafka/windowed-consumer.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Service } from '../../kernel/lifecycle.ts'
import { ownProcess } from '../../machine/process-identity.ts'
import { commandPayload, parseSubject, subject } from '../../message/command.ts'
import type { Command } from '../../message/generated/types.ts'
import { uuidV7 } from '../../message/ids.ts'
import { parseSiteOverride } from '../../message/site-override.ts'
import { delayTopics, laneTopics } from '../../message/topics.ts'
import { parseRobotsInTurns, sitemapUrls } from '../../politeness/robots.ts'
import type { StateStore } from '../../state/state-store.ts'
import { stoppedCrawls } from '../crawls/stopped-crawls.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { httpLimits, httpOptions } from '../sites/fetch-config.ts'
import { hopScope, linkScope, paceRules, taskBudgets } from '../sites/site-rules.ts'
import { userAgentOf } from '../sites/user-agent.ts'
import { createKeptSince } from './kept-since.ts'
import { warnOnPublic } from './warn-on-public.ts'

/** URLs beyond twice the pages that a crawl may have, so that small crawls with many bad links still find their pages. */
const WELL_FILLED = 1_000
/** A claim with dedup `ttl` lives so long. */
const CLAIM_TTL_MS = 7 * 86_400_000

/** Fetch as one process: reads the lanes, asks the sites. */
export async function createFetch(runtime: Runtime, version: string): Promise<FetchWorker> {
  const { admin, config, client, codec, topics, groups, clock, observer, clusterId } = runtime
  const [producer, state, control, layout] = await Promise.all([runtime.producer(), runtime.state(), runtime.control(), runtime.layout()])
  const policy = paceRules(config, control, clock)
  const blobs = await runtime.blobs()
  await blobs?.prepare()
  const share = new LoopShare(clock)
  const lookup = createNameLookup({ clock })
  const http = new HttpClient({
    ...(await httpOptions(config)),
    share,
    lookup,
    clock,
    observer: observer.child({ stage: 'fetch' }),
  })
  runtime.onClose('HTTP connections', () => http.close())
  const exchange = config['fetch.userAgent'] === undefined ? warnOnPublic(http, observer) : http
  const worker = new FetchWorker({
    createConsumer: (handlers) =>
      new WindowedConsumer({
        client,
        groupId: groups.fetch,
        topics: laneTopics(topics),
        ...handlers,
        settings: runtime.consumerSettings,
        clock,
        observer,
      }),
    producer,
    codec,
    topics,
    layout,
    clusterId,
    state,
    exchange,
    proxiesOut: () => http.proxiesOut(),
    waitsFor: () => runtime.waitsFor(),
    share,
    paceOf: policy.paceOf,
    hoursEnd: policy.hoursEnd,
    addressOf: createAddressBook({ resolve: config['fetch.resolve'], lookup, clock }),
    robots: config['fetch.robots'],
    budgetsOf: taskBudgets(config),
    isCrawlStopped: stoppedCrawls(control),
    isHopInScope: hopScope(config),
    crawlDelayMaxMs: config['politeness.default.crawlDelayMax'],
    owner: ownProcess(uuidV7(clock)),
    siteHealth: {
      isAdaptive: config['politeness.adaptive'],
      breakerFailures: config['politeness.breaker.failures'],
      firstParkMs: config['politeness.breaker.firstPark'],
      maxParkMs: config['politeness.breaker.maxPark'],
    },
    giveUpMs: config['politeness.breaker.giveUp'],
    userAgent: userAgentOf(config, version),
    cookies: config['fetch.cookies'],
    limits: httpLimits(config),
    // Later the page could leave the log while its URL still counts as unchanged.
    unchangedMs: config['topics.retention.html'] / 2,
    keptSince: createKeptSince({ admin, topic: topics.html, layout, clock, observer }),
    keptTypes: new Set(config['fetch.types'].map((type) => type.toLowerCase())),
    concurrency: config['fetch.concurrency'],
    maxBytesInFlight: config['fetch.maxBytesInFlight'],
    retry: {
      maxAttempts: config['retry.maxAttempts'],
      firstDelayMs: config['retry.firstDelay'],
      maxDelayMs: config['retry.maxDelay'],
    },
    deadLetterMaxBytes: runtime.maxBatchBytes(topics.deadLetters),
    claimTtlMs: CLAIM_TTL_MS,
    ...(blobs === undefined ? {} : { blobs }),
    clock,
    observer: observer.child({ stage: 'fetch' }),
  })
  const unsubscribe = control.subscribe(({ command }) => {
    const about = parseSubject(command.subject)
    if (about?.kind === 'site') worker.paceChanged(about.domain)
  })
  runtime.onClose('live paces', unsubscribe)
  return worker
}

/** Delay as one process: sends tasks back to their lanes when they are due. */
export async function createDelay(runtime: Runtime): Promise<DelayWorker> {
  const { client, codec, topics, groups, clock, observer, clusterId } = runtime
  const control = await runtime.control()
  const worker = new DelayWorker({
    createConsumer: (handlers) =>
      new WindowedConsumer({
        client,
        groupId: groups.delay,
        topics: delayTopics(topics),
        ...handlers,
        settings: runtime.consumerSettings,
        clock,
        observer,
      }),
    producer: await runtime.producer(),
    codec,
    topics,
    layout: await runtime.layout(),
    clusterId,
    deadLetterMaxBytes: runtime.maxBatchBytes(topics.deadLetters),
    clock,
    observer: observer.child({ stage: 'delay' }),
  })
  const obey = (command: Command): void => {
    const about = parseSubject(command.subject)
    if (about?.kind !== 'site') return
    const { reset, faster, resumed } = parseSiteOverride(commandPayload(command)) ?? {}
    const isSaid = [reset, faster, resumed].some((moment) => moment !== undefined)
    if (isSaid) worker.siteChanged(about.domain, { resetAt: reset?.at, fasterAt: faster?.at, resumedAt: resumed?.at })
  }
  for (const command of control.withPrefix(subject.site(''))) obey(command)
  runtime.onClose(
    'resets, faster paces and resumptions of sites',
    control.subscribe(({ command }) => obey(command)),
  )
  return worker
}

/** Frontier as one process: reads pages, produces their links. */
export async function createFrontier(runtime: Runtime, linksOf: FrontierWorkerOptions['linksOf']): Promise<Service> {
  const { config, client, codec, topics, groups, clock, observer } = runtime
  const [publisher, state, control, producer, layout] = await Promise.all([
    runtime.publisher(),
    runtime.state(),
    runtime.control(),
    runtime.producer(),
    runtime.layout(),
  ])
  const blobs = await runtime.blobs()
  const budgetsOf = taskBudgets(config)
  return new FrontierWorker({
    ...(blobs === undefined ? {} : { blobs }),
    client,
    groupId: groups.frontier,
    topic: topics.html,
    codec,
    publisher,
    producer,
    deadLetters: new DeadLetterPublisher({ topics, layout, maxBytes: runtime.maxBatchBytes(topics.deadLetters) }),
    state,
    inScope: linkScope(config),
    maxLinksPerPage: config['crawl.maxLinksPerPage'],
    settings: runtime.consumerSettings,
    linksOf,
    isBudgetFull: async (task) => {
      for (const { id, limit } of budgetsOf(task)) {
        const { taken, held } = await state.budgetPlaces(id)
        // Places that are held may be given back, and a link that is dropped never comes again.
        if (taken - held >= limit) return true
      }
      return false
    },
    isWellFilled: async (crawlId) => (await state.crawlCounts(crawlId)).accepted >= 2 * config['crawl.maxPages'] + WELL_FILLED,
    ...(config['crawl.sitemaps'] ? { sitemapsOf: config['fetch.robots'] === 'obey' ? namedSitemaps(state, clock) : async () => [] } : {}),
    isCrawlStopped: stoppedCrawls(control),
    claimTtlMs: CLAIM_TTL_MS,
    clock,
    observer: observer.child({ stage: 'frontier' }),
  })
}

/** As fetch has read robots.txt: the frontier asks no site. */
function namedSitemaps(
  state: Pick<StateStore, 'readRobots'>,
  clock: Pick<Clock, 'nextTurn'>,
): NonNullable<FrontierWorkerOptions['sitemapsOf']> {
  return async (origin) => {
    const entry = await state.readRobots(origin)
    if (entry === undefined || entry.verdict === 'unreachable') return undefined
    const rules = await parseRobotsInTurns(Buffer.from(entry.body, 'latin1'), () => clock.nextTurn())
    return sitemapUrls(rules, `${origin}/robots.txt`)
  }
}
