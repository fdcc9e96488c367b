import { audit } from '../../src/control/crawls/audit.ts'
import { produce } from '../../src/control/crawls/produce.ts'
import { isFinal } from '../../src/message/outcome.ts'
import type { RunningCli } from './cli.ts'
import { Deployment, readOutcomes, readPages } from './deployment.ts'
import { eventually } from './eventually.ts'
import { type HostWishes, LinkedSite, type SiteRequest } from './linked-site.ts'
import { SeededRandom } from './random.ts'
import { countRepeats, type Ending, endingsOf, type Loss, repeatsInWords, unheard } from './repeats.ts'
import { msUntilFullSpeedAgain, paceViolations, tasks } from './site-log.ts'

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
  /** Requests for what had been asked for already, though no answer had asked for that. */
  readonly repeats: number
  /** Of each restart: how many of how many requests that it took. */
  readonly repeatsByRestart: readonly string[]
  readonly repeatedPages: number
  readonly shortestGapMs: number
  /** After each restart, until the sites were asked about as often as before. */
  readonly fullSpeedAfterMs: readonly (number | null)[]
  /** Workers that asked the host whose owner was restarted each time. */
  readonly ownersOfBusy: number
  readonly seconds: number
}

interface Worker {
  /** Its User-Agent. */
  readonly agent: string
  readonly running: RunningCli
}

const RATE_PER_SECOND = 5
const CRAWL = 'rolling'
/** As with our own broker: the partitions of who was killed are given to others after it. */
const SESSION_MS = 10_000
/** The new owner comes while its predecessor would have to wait, and has to wait too. */
const WISHES: Readonly<Record<RollingRunOptions['by'], HostWishes>> = {
  SIGTERM: { crawlDelayMs: 3_000, slowPages: 12, retryAfterMs: 6_000, busyPages: 80 },
  SIGKILL: { crawlDelayMs: SESSION_MS + 2_000, slowPages: 6, retryAfterMs: SESSION_MS + 15_000, busyPages: 30 },
}

/** Fetch workers restarted in turn while they work on a crawl, and what the site and the topics say of it afterwards. */
export async function rollingRun(options: RollingRunOptions): Promise<RollingRunReport> {
  const random = new SeededRandom(options.seed)
  const site = new LinkedSite({
    hosts: options.hosts,
    pagesPerHost: options.pagesPerHost,
    wishes: WISHES[options.by],
    latencyMs: () => Math.round(random.between(5, 250)),
  })
  await site.start()
  const deployment = await Deployment.open({
    set: [
      `politeness.default.ratePerSecond=${RATE_PER_SECOND}`,
      'politeness.default.concurrency=1',
      'retry.firstDelay=1s',
      'topics.partitions.urls=6',
      `kafka.sessionTimeout=${SESSION_MS / 1_000}s`,
      ...(options.redis === undefined ? [] : [`redis=${options.redis}`]),
    ],
  })
  const begun = performance.now()
  try {
    let started = 0
    const startWorker = (): Worker => {
      started += 1
      const agent = `worker-${started}`
      return { agent, running: deployment.start(['fetch', '--set', `fetch.userAgent=${agent}`]) }
    }
    deployment.start(['delay'])
    const workers = Array.from({ length: options.workers }, startWorker)
    await deployment.read(async (runtime) => {
      const state = await runtime.state()
      const texts = site.urls().map(({ url }) => ({ text: url, line: undefined }))
      const template = { crawlId: CRAWL, lane: 'normal' as const, maxDepth: 0, headers: {}, meta: {}, notBefore: null, expiresAt: null }
      await produce(runtime, texts, { ...NO_BODY, ...template, ifChanged: false }, { accept: (taskIds) => state.accept(CRAWL, taskIds) })
    })
    const restarts: Loss[] = []
    const violations: string[] = []
    await asked(site, options.hosts * 3)
    for (let restart = 0; restart < options.restarts; restart += 1) {
      await untilLeftAlone(site)
      const index = indexOfOwner(workers, site) ?? restart % options.workers
      const { agent, running } = workers[index] as Worker
      const at = performance.now()
      running.child.kill(options.by)
      workers[index] = startWorker()
      const { code, signal, stderr } = await running.done
      // What it had sent before is in the log of the site by now.
      restarts.push({ what: agent, agent, at, until: performance.now(), isDrained: options.by === 'SIGTERM' })
      // One that was told before it could listen had begun nothing.
      const hadBegun = stderr !== ''
      if (options.by === 'SIGTERM' && code !== 143 && hadBegun)
        violations.push(`a worker that was told to end ended with ${code ?? signal}: ${stderr}`)
      const before = site.requests.length
      await asked(site, Math.min(before + options.hosts * 2, site.urls().length))
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
    for (const { running } of workers) running.child.kill('SIGTERM')
    for (const { running } of workers) await running.done
    const counted = await countFromOutside(deployment, site)
    const repeats = countRepeats(site.requests, counted.endings, restarts)
    violations.push(...counted.violations, ...repeats.problems, ...paceProblems(site, counted.endings, restarts))
    return {
      seed: options.seed,
      violations,
      requests: site.requests.length,
      repeats: repeats.repeats,
      repeatsByRestart: repeatsInWords(repeats),
      repeatedPages: counted.repeatedPages,
      shortestGapMs: Math.min(...gapsOf(site)),
      fullSpeedAfterMs: restarts.map(({ at }) => msUntilFullSpeedAgain(site.requests, at)),
      ownersOfBusy: new Set(ofBusy(site).map(({ agent }) => agent)).size,
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

async function countFromOutside(
  deployment: Deployment,
  site: LinkedSite,
): Promise<{ violations: string[]; repeatedPages: number; endings: Ending[] }> {
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
  return { violations, repeatedPages: pages.length - paged.size, endings: endingsOf(outcomes) }
}

function ofBusy(site: LinkedSite): SiteRequest[] {
  return tasks(site.requests).filter(({ host }) => host === site.busyHost)
}

/** Until the owner of the busy host has been told to leave it alone, and could tell others; or until there is nothing left of it. */
function untilLeftAlone(site: LinkedSite): Promise<unknown> {
  const isLeftAlone = (): boolean => {
    const { sentAt = Number.POSITIVE_INFINITY, retryAfterMs } = ofBusy(site).at(-1) ?? {}
    const ms = performance.now() - sentAt
    return retryAfterMs !== undefined && ms > retryAfterMs / 8 && ms < retryAfterMs / 3
  }
  const pages = site.urls().filter(({ host }) => host === site.busyHost).length
  const isThrough = (): boolean => ofBusy(site).filter(({ status }) => status !== 429).length >= pages
  return eventually(() => isLeftAlone() || isThrough(), { timeoutMs: 120_000, everyMs: 20, what: 'a 429' })
}

/** Shape: undefined where it is not there any more. */
function indexOfOwner(workers: readonly Worker[], site: LinkedSite): number | undefined {
  const index = workers.findIndex(({ agent }) => agent === ofBusy(site).at(-1)?.agent)
  return index === -1 ? undefined : index
}

function gapsOf(site: LinkedSite): number[] {
  return site.hosts().flatMap((host) => {
    const times = tasks(site.requests)
      .filter((request) => request.host === host)
      .map(({ at }) => at)
    return times.slice(1).map((at, index) => Math.round(at - (times[index] ?? 0)))
  })
}

function paceProblems(site: LinkedSite, endings: readonly Ending[], restarts: readonly Loss[]): string[] {
  return paceViolations(site.requests, {
    ratePerSecond: RATE_PER_SECOND,
    concurrency: 1,
    // On a busy machine a request may reach the site later than it was sent, and the next one sooner after it.
    lateArrivals: 1,
    crawlDelayMsOf: (host) => site.crawlDelayMsOf(host),
    isLost: unheard(site.requests, endings, restarts),
  })
}
