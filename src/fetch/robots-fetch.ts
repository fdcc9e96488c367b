import { type Clock, sleepUntil } from '../kernel/clock.ts'
import { countText } from '../kernel/count-text.ts'
import type { Observer } from '../kernel/observe.ts'
import { productToken } from '../kernel/product-token.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import type { SitePolicy } from '../politeness/policy.ts'
import { MAX_ROBOTS_BYTES } from '../politeness/robots.ts'
import { type RobotsFetch, RobotsGate } from '../politeness/robots-gate.ts'
import type { StateStore } from '../state/state-store.ts'
import type { AddressOf } from './address-book.ts'
import type { RobotsWait } from './admission.ts'
import { type Answer, readAnswer } from './answer.ts'
import { foundNoProxy, type HttpExchange, type HttpFailure, type HttpLimits, type HttpResponse } from './http-exchange.ts'
import { paceReport } from './pace-report.ts'
import { sendsOn } from './redirect.ts'
import { requestHeaders } from './request-headers.ts'
import type { SiteLeases } from './site-leases.ts'
import type { StoreGate } from './store-gate.ts'

export interface RobotsFetcherOptions {
  readonly exchange: HttpExchange
  readonly paceOf: (url: URL) => SitePolicy
  readonly leases: SiteLeases
  /** For sites that are paced by their address. */
  readonly addressOf: AddressOf
  readonly userAgent: string
  readonly limits: HttpLimits
  readonly clock: Clock
}

/** RFC 9309 section 2.3.1.2. */
const MAX_HOPS = 5
/** A site that robots.txt leads to and that is paused is looked at again after this: whoever waits for it is not told when it goes on. */
const PAUSED_MS = 30_000
/** Places in walks that had to stop. */
const STOPPED_KEPT = 5_000
/** A redirect holds for so long before it is asked for again. */
const STOPPED_MS = 600_000
/** What a chain stands for that is longer, or leads where nobody may ask: the file is unavailable, all is allowed. */
const UNAVAILABLE = { kind: 'answer', status: 404, body: Buffer.alloc(0) } as const

/** A walk that waits for a place of the site that it has come to. */
interface Stopped {
  readonly target: URL
  readonly hops: number
  readonly untilMono: number
}

interface Answered {
  readonly kind: 'answered'
  readonly response: HttpResponse
  readonly answer: Answer
}

/**
 * Asks a site for its robots.txt: on one of its places, so that it counts for the site's concurrency, but not for its rate. Each hop
 * of a redirect takes a place of the site it leads to. Where that has none free the next call goes on there: since nothing paces these
 * requests, the sites before it would be asked again at each try.
 */
export class RobotsFetcher {
  readonly #options: RobotsFetcherOptions
  /** By the URL where the walk began. */
  readonly #stopped = new RecentMap<string, Stopped>(STOPPED_KEPT)

  constructor(options: RobotsFetcherOptions) {
    this.#options = options
  }

  /** Errors: the signal's reason; those of the store other than STATE_UNAVAILABLE. */
  async ask(robotsUrl: URL, signal: AbortSignal): Promise<RobotsFetch<RobotsWait>> {
    const { clock } = this.#options
    const stopped = this.#resume(robotsUrl)
    let target = stopped?.target ?? robotsUrl
    for (let hops = stopped?.hops ?? 0; hops <= MAX_HOPS; hops += 1) {
      const asked = await this.#request(target, signal)
      if (asked.kind === 'wait') {
        const untilMono = target === stopped?.target ? stopped.untilMono : clock.mono() + STOPPED_MS
        if (hops > 0) this.#stopped.set(robotsUrl.href, { target, hops, untilMono })
        return asked
      }
      if (asked.kind === 'failure') return hops > 0 ? failedBehind(target, asked) : asked
      const { response, answer } = asked
      // A page that refreshes is no robots.txt, and no way to one.
      if (answer.kind !== 'hop' || response.status < 300) return fileOf(response, answer, target)
      target = answer.target
    }
    return UNAVAILABLE
  }

  #resume({ href }: URL): Stopped | undefined {
    const stopped = this.#stopped.get(href)
    this.#stopped.delete(href)
    return stopped !== undefined && this.#options.clock.mono() < stopped.untilMono ? stopped : undefined
  }

  async #request(url: URL, signal: AbortSignal): Promise<Answered | HttpFailure | RobotsWait> {
    const { exchange, paceOf, leases, addressOf, userAgent, limits, clock } = this.#options
    const pace = paceOf(url)
    if (pace.isPaused) {
      const leftMs = (pace.pausedUntil ?? Number.POSITIVE_INFINITY) - clock.now()
      return { kind: 'wait', waitMs: Math.max(1, Math.min(PAUSED_MS, leftMs)), reason: 'paused' }
    }
    const noProxyMs = exchange.proxiesBackInMs(url)
    if (noProxyMs > 0) return { kind: 'wait', waitMs: noProxyMs, reason: 'proxies-out' }
    const address = pace.byAddress === true ? await addressOf(url) : undefined
    if (typeof address === 'object') return address
    const lease = await leases.acquire(pace, false, address)
    if (lease.kind === 'wait') return lease
    await sleepUntil(clock, lease.startMono, signal)
    // This process stood still: the place may be another's by now.
    if (leases.endsBefore(lease, clock.mono() + limits.totalMs)) {
      await leases.release(lease, { kind: 'none' })
      return { kind: 'wait', waitMs: 1, reason: 'rate' }
    }
    const result = await exchange.request({
      url,
      method: 'GET',
      headers: requestHeaders({ accept: 'text/plain,*/*;q=0.5' }, userAgent),
      limits: { ...limits, maxBodyBytes: MAX_ROBOTS_BYTES },
      ...(address === undefined ? {} : { address }),
      keepBody: (head) => !sendsOn(head),
      signal,
    })
    const answer = readAnswer(result, { target: url, method: 'GET', headers: {}, body: null, chain: [], now: clock.now() })
    const { challengedBy, backsOff = false, retryAfterMs } = answer.kind === 'retry' ? answer : {}
    const askedMs = backsOff ? retryAfterMs : undefined
    await leases.release(lease, {
      ...paceReport(result, challengedBy),
      ...(askedMs === undefined ? {} : { backOffMs: askedMs, isAsked: true }),
    })
    if (foundNoProxy(result)) return { kind: 'wait', waitMs: Math.max(1, exchange.proxiesBackInMs(url)), reason: 'proxies-out' }
    return result.kind === 'failure' ? result : { kind: 'answered', response: result, answer }
  }
}

/** Whoever the file led to is not asked for pages: what is wrong there says nothing of what they would meet. */
function failedBehind(target: URL, { reason, detail }: HttpFailure): RobotsFetch<never> {
  // Nobody gets there, ever, and each page would ask for the file again.
  return reason === 'address-refused' ? UNAVAILABLE : { kind: 'failure', reason: null, detail: `${target.href}: ${detail}` }
}

/**
 * Half a file may lack the half that forbids: it counts as none. One that is too large is read as far as the limit goes. What a wall
 * against robots shows in its place, with whatever status, says nothing of what it allows.
 */
function fileOf(response: HttpResponse, answer: Answer, url: URL): RobotsFetch<never> {
  if (answer.kind === 'retry' && answer.challengedBy !== undefined) return { kind: 'failure', reason: null, detail: answer.detail }
  const { status, decoded, truncated } = response
  const isPartial = truncated === 'network' || truncated === 'encoding' || truncated === 'undecoded'
  if (!isPartial || status < 200 || status >= 300) return { kind: 'answer', status, body: decoded }
  return { kind: 'failure', reason: 'truncated', detail: `${url.href} ended early, after ${countText(decoded.length, 'byte')}` }
}

export interface RobotsGateParts extends RobotsFetcherOptions {
  readonly robots: 'obey' | 'ignore'
  readonly state: Pick<StateStore, 'readRobots' | 'writeRobots'>
  readonly gate: StoreGate
  readonly observer: Observer
}

/** robots.txt as all workers know it, through the store. */
export function createRobotsGate(parts: RobotsGateParts): RobotsGate<RobotsWait> {
  const { robots: mode, userAgent, state, gate, clock, observer } = parts
  const fetcher = new RobotsFetcher(parts)
  return new RobotsGate({
    mode,
    token: productToken(userAgent),
    cache: {
      read: (origin) => gate.run(() => state.readRobots(origin)),
      write: (origin, entry, ttlMs) => gate.run(() => state.writeRobots(origin, entry, ttlMs)),
    },
    ask: (url, signal) => fetcher.ask(url, signal),
    clock,
    observer,
  })
}
