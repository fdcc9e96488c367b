import { audit } from '../../src/control/audit.ts'
import { produce } from '../../src/control/produce.ts'
import { isFinal } from '../../src/message/outcome.ts'
import type { RunningCli } from './cli.ts'
import { Deployment, readOutcomes, readPages } from './deployment.ts'
import { eventually } from './eventually.ts'
import { LinkedSite, type SiteRequest } from './linked-site.ts'
import { SeededRandom } from './random.ts'

export interface RollingRunOptions {
  readonly seed: number
  readonly hosts: number
  readonly pagesPerHost: number
  /** Workers that are there all the time, but for the one that is being restarted. */
  readonly workers: number
  /** Workers restarted, one after the other; each is told to end, and another one takes its place. */
  readonly restarts: number
  /** `term` drains; `kill` takes what is on the wire with it. */
  readonly by: 'SIGTERM' | 'SIGKILL'
  readonly redis: string | undefined
  readonly timeoutMs: number
}

export interface RollingRunReport {
  readonly seed: number
  readonly violations: readonly string[]
  readonly requests: number
  /** Requests for what had been asked for already, beyond the second attempt of those that fail at first. */
  readonly repeats: number
  readonly repeatedPages: number
  /** Requests that were open while members of the group came and went: what could be asked for again at most. */
  readonly openAtRestarts: number
  readonly shortestGapMs: number
  /** From the end of a worker until the site was asked again by any. */
  readonly pausesMs: readonly number[]
  readonly seconds: number
}

const RATE_PER_SECOND = 5
const CRAWL = 'rolling'
/** A partition that moves is asked for again by its new owner until this long after the join. */
const REBALANCE_MS = 6_000

/** Fetch workers restarted in turn while they work on a crawl, and what the site and the topics say of it afterwards. */
export async function rollingRun(options: RollingRunOptions): Promise<RollingRunReport> {
  const random = new SeededRandom(options.seed)
  const site = new LinkedSite({
    hosts: options.hosts,
    pagesPerHost: options.pagesPerHost,
    latencyMs: () => Math.round(random.between(5, 250)),
  })
  await site.start()
  const deployment = await Deployment.open({
    set: [
      `politeness.default.ratePerSecond=${RATE_PER_SECOND}`,
      'politeness.default.concurrency=1',
      'retry.firstDelay=1s',
      'topics.partitions.urls=6',
      ...(options.redis === undefined ? [] : [`redis=${options.redis}`]),
    ],
  })
  const begun = performance.now()
  try {
    const workers: RunningCli[] = []
    deployment.start(['delay'])
    for (let index = 0; index < options.workers; index += 1) workers.push(deployment.start(['fetch']))
    await deployment.read(async (runtime) => {
      const state = await runtime.state()
      const texts = site.urls().map(({ url }) => ({ text: url, line: undefined }))
      const template = { crawlId: CRAWL, lane: 'normal' as const, maxDepth: 0, headers: {}, meta: {}, notBefore: null, expiresAt: null }
      await produce(runtime, texts, { ...NO_BODY, ...template, ifChanged: false }, { accept: (taskIds) => state.accept(CRAWL, taskIds) })
    })
    const restartedAt: number[] = []
    const pausesMs: number[] = []
    const violations: string[] = []
    await asked(site, options.hosts * 3)
    for (let restart = 0; restart < options.restarts; restart += 1) {
      const index = restart % options.workers
      const worker = workers[index] as RunningCli
      restartedAt.push(performance.now())
      worker.child.kill(options.by)
      workers[index] = deployment.start(['fetch'])
      const { code, signal, stderr } = await worker.done
      if (options.by === 'SIGTERM' && code !== 143) violations.push(`a worker that was told to end ended with ${code ?? signal}: ${stderr}`)
      const before = site.requests.length
      const endedAt = performance.now()
      await asked(site, before + 1)
      pausesMs.push(Math.round((site.requests[before]?.at ?? endedAt) - endedAt))
      await asked(site, Math.min(before + options.hosts * 2, site.requests.length + options.hosts))
    }
    await deployment.read(async (runtime) => {
      const state = await runtime.state()
      await eventually(
        async () => {
          const { accepted, final } = await state.crawlCounts(CRAWL)
          return accepted === final
        },
        { timeoutMs: options.timeoutMs, everyMs: 500, what: 'the end of the crawl' },
      )
    })
    for (const worker of workers) worker.child.kill('SIGTERM')
    for (const worker of workers) await worker.done
    const counted = await countFromOutside(deployment, site)
    violations.push(...counted.violations, ...paceProblems(site))
    return {
      seed: options.seed,
      violations,
      requests: site.requests.length,
      repeats: repeatsOf(site.requests),
      repeatedPages: counted.repeatedPages,
      openAtRestarts: openAround(site, restartedAt),
      shortestGapMs: Math.min(...gapsOf(site).map(({ ms }) => ms)),
      pausesMs,
      seconds: Math.round((performance.now() - begun) / 1_000),
    }
  } finally {
    await deployment.close()
    await site.stop()
  }
}

const NO_BODY = { method: 'GET', body: null } as const

async function asked(site: LinkedSite, count: number): Promise<void> {
  await eventually(() => site.requests.length >= count, { timeoutMs: 90_000, everyMs: 20, what: `${count} requests` })
}

async function countFromOutside(deployment: Deployment, site: LinkedSite): Promise<{ violations: string[]; repeatedPages: number }> {
  const { pages, outcomes, ledger } = await deployment.read(async (runtime) => ({
    pages: await readPages(runtime),
    outcomes: await readOutcomes(runtime),
    ledger: await audit(runtime, { crawlId: CRAWL }),
  }))
  const violations: string[] = []
  const paged = new Set(pages.map(({ value }) => value.url))
  const ended = new Set(outcomes.filter(({ value }) => isFinal(value.kind)).map(({ value }) => value.url))
  for (const { url } of site.urls()) {
    if (!paged.has(url)) violations.push(`no page of ${url}`)
    if (!ended.has(url)) violations.push(`no outcome of ${url}`)
  }
  for (const { value } of outcomes)
    if (isFinal(value.kind) && value.kind !== 'FETCHED') violations.push(`${value.url} ended ${value.kind} ${value.reason ?? ''}`)
  if (ledger.difference !== 0 || ledger.inFlight !== 0)
    violations.push(`audit: difference ${ledger.difference}, in flight ${ledger.inFlight}`)
  return { violations, repeatedPages: pages.length - paged.size }
}

/** Requests beyond the first of an address; a flaky one is asked for twice. */
function repeatsOf(requests: readonly SiteRequest[]): number {
  const times = new Map<string, number>()
  for (const { host, path } of requests) times.set(`${host}${path}`, (times.get(`${host}${path}`) ?? 0) + 1)
  let repeats = 0
  for (const [address, count] of times) if (!address.endsWith('/robots.txt')) repeats += count - (address.includes('/flaky/') ? 2 : 1)
  return repeats
}

function openAround(site: LinkedSite, restartedAt: readonly number[]): number {
  const open = site.requests.filter(
    ({ path, at, endedAt = Number.POSITIVE_INFINITY }) =>
      path !== '/robots.txt' && restartedAt.some((time) => at <= time + REBALANCE_MS && endedAt >= time),
  )
  return open.length
}

function gapsOf(site: LinkedSite): { host: string; ms: number; at: number }[] {
  return site.hosts().flatMap((host) => {
    const times = site.requests.filter((request) => request.host === host && request.path !== '/robots.txt').map(({ at }) => at)
    return times.slice(1).map((at, index) => ({ host, ms: at - (times[index] ?? 0), at }))
  })
}

/** Starts keep the pace; on a busy machine a request may reach the site later than it was sent, and the next one sooner after it. */
function paceProblems(site: LinkedSite): string[] {
  const problems: string[] = []
  for (const host of site.hosts()) {
    const own = site.requests.filter((request) => request.host === host && request.path !== '/robots.txt')
    for (const { at } of own) {
      const second = own.filter((other) => other.at >= at && other.at < at + 1_000).length
      if (second > RATE_PER_SECOND + 1) problems.push(`${second} requests of ${host} within a second, at ${RATE_PER_SECOND} a second`)
      const atOnce = own.filter((other) => other.at <= at && (other.endedAt ?? Number.POSITIVE_INFINITY) > at).length
      if (atOnce > 1) problems.push(`${atOnce} requests of ${host} at the same time`)
    }
  }
  return [...new Set(problems)]
}
