import type { LayoutSource } from '../kafka/layout.ts'
import { isMillraceError, type MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { askedLane } from '../message/asked-lane.ts'
import type { MessageCodec } from '../message/codec.ts'
import type { Page, UrlTask } from '../message/generated/types.ts'
import type { TaskEnd } from '../message/outcome.ts'
import { leavesDomain } from '../message/redirect-chain.ts'
import type { TopicNames } from '../message/topics.ts'
import type { Admission, AdmissionDesk } from './admission.ts'
import { type Answer, readAnswer } from './answer.ts'
import type { ChainClaims } from './chain-claims.ts'
import type { ClaimCheck } from './claim-check.ts'
import type { Condition, ConditionalRequests } from './conditional-requests.ts'
import type { CookieJars } from './cookie-jars.ts'
import { foundNoProxy, type HttpResponse, type HttpResult, headerValues } from './http-exchange.ts'
import type { LoadControl } from './load-control.ts'
import type { LoopShare } from './loop-share.ts'
import { paceReport } from './pace-report.ts'
import { buildPage, pageMessage } from './page-message.ts'
import type { QueuedTask } from './queued-task.ts'
import { type HopAnswer, hopTask, MAX_HOPS, sendsOn } from './redirect.ts'
import { requestHeaders } from './request-headers.ts'
import { RequestStart, type RequestStartOptions } from './request-start.ts'
import { failureClass } from './retry-class.ts'
import type { SiteClosed, SiteLease, SiteLeases } from './site-leases.ts'
import { fetchFailed, type TaskEndings } from './task-endings.ts'
import type { Turn } from './turn.ts'

export interface FetchTaskOptions extends RequestStartOptions {
  readonly desk: AdmissionDesk
  readonly endings: TaskEndings
  readonly leases: SiteLeases
  readonly chains: ChainClaims
  /** For pages that no message takes. */
  readonly claimCheck: ClaimCheck | undefined
  readonly codec: MessageCodec
  readonly layout: LayoutSource
  readonly topics: TopicNames
  readonly userAgent: string
  readonly cookies: CookieJars
  readonly conditional: ConditionalRequests
  readonly load: Pick<LoadControl, 'started' | 'answered'>
  /** Content types whose body is kept, as essences. */
  readonly keptTypes: ReadonlySet<string>
  /** False: a redirect that leaves the scope of its crawl is not followed. */
  readonly isHopInScope: (target: URL, task: UrlTask) => boolean
  /** ms that a site is left alone which says it has too many requests and doesn't say for how long. */
  readonly backOffMs: (attempt: number) => number
  readonly share: LoopShare
  readonly observer: Observer
}

/** What is left to do for a task by whoever holds the queues. */
export type TaskStep =
  | { readonly kind: 'done' }
  /** Its partition went away before anything was asked for it. */
  | { readonly kind: 'dropped' }
  /** The former owner of its partition has it on the wire. */
  | { readonly kind: 'elsewhere' }
  /** The pages of its crawl may all be taken: it waits for a place. */
  | { readonly kind: 'no-place' }
  /** The site must not be asked for so long. */
  | { readonly kind: 'wait'; readonly waitMs: number; readonly reason: string; readonly concurrency?: number }
  /** Nobody was asked: the task goes back to the head of its site. */
  | { readonly kind: 'again' }
  /** The next hop goes to the head of its site. */
  | { readonly kind: 'hop'; readonly next: Pick<QueuedTask, 'task' | 'target' | 'walk'> }
  /** Done, and the site has to be left alone. */
  | ({ readonly kind: 'backed-off' } & SiteClosed)

/** What came of a request. */
interface Concluded {
  readonly result: HttpResult
  readonly answer: Answer
  readonly condition: Condition | undefined
}

type Admitted = Extract<Admission, { readonly kind: 'admitted' }>

/**
 * One task from its turn to its end: admission, one request, and what its answer means. It makes one request at most; the next hop of a
 * chain waits for its own turn.
 */
export class FetchTask {
  readonly #options: FetchTaskOptions
  readonly #start: RequestStart

  constructor(options: FetchTaskOptions) {
    this.#options = options
    this.#start = new RequestStart(options)
  }

  async run(queued: QueuedTask, turn: Turn, signal: AbortSignal): Promise<TaskStep> {
    const { desk, endings, clock, conditional } = this.#options
    const { entry, task } = queued
    // Before the lease: it may end while the store is away, and the request would leave without one.
    const condition = await conditional.before(queued)
    const admission = await desk.ask(queued)
    switch (admission.kind) {
      case 'wait':
      case 'elsewhere':
      case 'no-place':
        return admission
      case 'gone':
        return { kind: 'dropped' }
      case 'repeat':
        endings.repeat(entry)
        return { kind: 'done' }
      case 'ended':
        turn.leave()
        await endings.final(entry, task, { ...admission.end, at: clock.now() })
        return { kind: 'done' }
      case 'robots-unreachable': {
        turn.leave()
        const reason = 'robots-unreachable'
        await endings.retryOrFail(entry, task, { reason, failure: fetchFailed(admission.detail), otherwise: { kind: 'REFUSED', reason } })
        return { kind: 'done' }
      }
      case 'dead': {
        turn.leave()
        const failure = fetchFailed(admission.detail)
        await endings.final(entry, task, { kind: 'FAILED', reason: 'site-dead', at: clock.now() }, { failure })
        return { kind: 'done' }
      }
      case 'unresolved': {
        turn.leave()
        const { reason, detail } = admission.failure
        const failure = fetchFailed(detail)
        if (failureClass(reason) === 'retry') await endings.retryOrFail(entry, task, { reason, failure })
        else await endings.final(entry, task, { kind: 'FAILED', reason, at: clock.now() }, { failure })
        return { kind: 'done' }
      }
      case 'admitted':
        turn.admitted(admission.lease)
        return this.#request(queued, { admission, condition }, turn, signal)
    }
  }

  async #request(
    queued: QueuedTask,
    { admission, condition }: { readonly admission: Admitted; readonly condition: Condition | undefined },
    turn: Turn,
    signal: AbortSignal,
  ): Promise<TaskStep> {
    const { leases, clock, observer, keptTypes, cookies, load } = this.#options
    const { target, walk } = queued
    const { lease, asked } = await this.#start.request(admission.lease, signal, () => {
      if (walk.hops === 0) observer.emit('QueueWaited', { lane: queued.lane, seconds: (clock.mono() - queued.entry.takenMono) / 1_000 })
      load.started(queued.task.attempt)
      return {
        url: target,
        method: walk.method,
        headers: { ...this.#headers(queued), ...condition?.headers },
        body: walk.body,
        onBody: (bytes, giveUp) => turn.receives(bytes, giveUp),
        keepBody: (head) =>
          !sendsOn(head) && (queued.task.sitemapLevel > 0 || head.contentType === null || keptTypes.has(head.contentType)),
      }
    })
    if (asked === undefined) {
      const releasing = leases.release(lease, { kind: 'none' })
      turn.leave()
      await releasing
      return { kind: 'again' }
    }
    const { result, startedAt, sentMono } = asked
    const walked = { ...walk, startedAt: walk.startedAt ?? startedAt, requestMs: walk.requestMs + result.totalMs }
    if (result.kind === 'response') cookies.learn(queued.task, target, headerValues(result, 'set-cookie'))
    load.answered(lease.keys[0].key, result)
    this.#report(result, target, turn)
    const answer = readAnswer(result, {
      target,
      method: walk.method,
      headers: walk.headers,
      body: walk.body,
      chain: queued.task.redirects,
      now: clock.now(),
    })
    // The store takes calls in the order in which they are made: whoever gets this place asks it after the release.
    const releasing = this.#release(queued.task, lease, { result, answer, sentMono })
    turn.leave()
    const closed = await releasing
    if (foundNoProxy(result)) return { kind: 'again' }
    await this.#conclude({ ...queued, walk: walked }, admission, { result, answer, condition })
    if (answer.kind === 'hop') return this.#hop({ ...queued, walk: walked }, answer)
    return closed === undefined ? { kind: 'done' } : { kind: 'backed-off', ...closed }
  }

  #headers({ task, target, walk }: QueuedTask): Record<string, string> {
    const { cookies, userAgent } = this.#options
    const { cookie: own, ...headers } = requestHeaders(walk.headers, userAgent)
    const cookie = cookies.headerFor(task, target, own)
    return cookie === undefined ? headers : { ...headers, cookie }
  }

  #report(result: HttpResult, target: URL, turn: Turn): void {
    const { observer } = this.#options
    observer.emit('RequestFinished', { kind: result.kind, seconds: result.totalMs / 1_000 })
    if (result.kind !== 'response') {
      turn.holds(0)
      return
    }
    observer.emit('BytesFetched', { bytes: result.wireBytes })
    if (result.mislabelled === true) observer.emit('BodyMislabelled', { host: target.hostname })
    turn.holds(result.body.length + (result.body === result.decoded ? 0 : result.decoded.length))
  }

  /** Tells the site's limiter what came of the request. Shape: why and for how long the site must be left alone; undefined: it need not. */
  async #release(
    { attempt }: UrlTask,
    lease: SiteLease,
    { result, answer, sentMono }: Pick<Concluded, 'result' | 'answer'> & { readonly sentMono: number },
  ): Promise<SiteClosed | undefined> {
    const { leases, backOffMs, observer } = this.#options
    const report = paceReport(result, answer.kind === 'retry' ? answer.challengedBy : undefined)
    if (answer.kind !== 'retry' || !answer.backsOff) return leases.release(lease, report, sentMono)
    const { reason, retryAfterMs } = answer
    const forMs = retryAfterMs ?? backOffMs(attempt)
    observer.emit('SiteBackedOff', { key: lease.keys[0].key, reason, forMs })
    return leases.release(lease, { ...report, backOffMs: forMs, isAsked: retryAfterMs !== undefined }, sentMono)
  }

  async #conclude(queued: QueuedTask, admission: Admitted, { result, answer, condition }: Concluded): Promise<void> {
    const { endings, clock, conditional, share } = this.#options
    const { entry, task, walk } = queued
    const status = result.kind === 'response' ? result.status : null
    const request = { startedAt: walk.startedAt ?? clock.now(), status }
    const end = (kind: TaskEnd['kind'], reason: string | null): TaskEnd => ({ kind, reason, at: clock.now(), request })
    switch (answer.kind) {
      case 'page':
        if (conditional.isUnchanged(condition, answer.response)) {
          await this.#options.chains.claimEnd(task, { target: queued.target, method: walk.method })
          await endings.final(entry, task, end('UNCHANGED', answer.response.status === 304 ? 'not-modified' : 'same-body'))
          return conditional.confirm(task, condition, answer.response)
        }
        return share.run(() => this.#publish(queued, admission, answer.response, end))
      case 'retry': {
        const { reason, detail, retryAfterMs, factor, keep, challengedBy } = answer
        if (challengedBy !== undefined) this.#options.observer.emit('ChallengeMet', { vendor: challengedBy, host: queued.target.hostname })
        await endings.retryOrFail(entry, task, {
          reason,
          failure: fetchFailed(detail),
          request,
          retryAfterMs,
          // A page that was cut is better than none.
          keep: keep === undefined ? undefined : () => share.run(() => this.#publish(queued, admission, keep, end)),
          ...(factor === undefined ? {} : { factor }),
          ...(challengedBy === undefined ? {} : { lane: 'low' }),
        })
        return
      }
      case 'refused':
        return endings.final(entry, task, end('REFUSED', answer.reason))
      case 'failed':
        return endings.final(entry, task, end('FAILED', answer.reason), { failure: fetchFailed(answer.detail) })
      case 'hop':
        return
    }
  }

  async #publish(
    queued: QueuedTask,
    admission: Admitted,
    response: HttpResponse,
    end: (kind: TaskEnd['kind'], reason: string | null) => TaskEnd,
  ): Promise<void> {
    const { endings, clock, claimCheck, conditional, chains } = this.#options
    const { entry, task, target, walk } = queued
    const [{ key, ratePerSecond, concurrency, crawlDelayMs }] = admission.lease.keys
    const page = await buildPage({
      task: { ...task, lane: askedLane(entry.message.headers, task) },
      finalUrl: target,
      response,
      robots: admission.robots,
      policy: { key, ratePerSecond, concurrency, crawlDelayMs },
      fetchedAt: clock.now(),
      totalMs: walk.requestMs,
    })
    await chains.claimEnd(task, { target, method: walk.method })
    let tooLarge = await this.#writePage(queued, page, end('FETCHED', null))
    const isStored = tooLarge !== undefined && claimCheck !== undefined && page.body.length > 0
    if (isStored) tooLarge = await this.#writePage(queued, await claimCheck.store(page), end('FETCHED', null))
    if (tooLarge === undefined) return conditional.remember(queued, response, page)
    const failure = { code: tooLarge.code, message: tooLarge.message }
    // Without its body it is too large as well: what the task carries is.
    await endings.final(entry, task, end('FAILED', isStored ? 'message-too-large' : 'body-too-large'), { failure })
  }

  /** Shape: the error where the topic does not take a message of this size. */
  async #writePage({ entry, task }: QueuedTask, page: Page, end: TaskEnd): Promise<MillraceError | undefined> {
    const { endings, codec, layout, topics } = this.#options
    try {
      await endings.final(entry, task, end, { first: [pageMessage(page, { codec, layout, topics })] })
      return undefined
    } catch (error) {
      if (!isMillraceError(error, 'KAFKA_MESSAGE_TOO_LARGE')) throw error
      return error
    }
  }

  async #hop(queued: QueuedTask, answer: HopAnswer): Promise<TaskStep> {
    const { endings, clock, isHopInScope, chains } = this.#options
    const { entry, walk } = queued
    const task: UrlTask = { ...queued.task, redirects: [...queued.task.redirects, answer.hop] }
    const request = { startedAt: walk.startedAt ?? clock.now(), status: answer.hop.status }
    const end = (kind: TaskEnd['kind'], reason: string): TaskEnd => ({ kind, reason, at: clock.now(), request })
    if (task.redirects.length > MAX_HOPS) {
      const chain = [...task.redirects.map(({ url }) => url), answer.target.href].join(' -> ')
      const failure = fetchFailed(`more than ${MAX_HOPS} redirects: ${chain}`)
      await endings.final(entry, task, end('FAILED', 'too-many-redirects'), { failure })
      return { kind: 'done' }
    }
    if (!isHopInScope(answer.target, task)) {
      await endings.final(entry, task, end('REFUSED', 'out-of-scope'))
      return { kind: 'done' }
    }
    if (await chains.isKnown(task, answer)) {
      await endings.final(entry, task, end('DUPLICATE', 'known-url'))
      return { kind: 'done' }
    }
    if (leavesDomain(queued.target, answer.target)) {
      const next = hopTask({ ...task, lane: askedLane(entry.message.headers, task) }, answer, clock.now())
      await endings.redirected(entry, task, next, end('REDIRECTED', 'other-domain'))
      return { kind: 'done' }
    }
    const { method, headers, body } = answer
    return { kind: 'hop', next: { task, target: answer.target, walk: { ...walk, hops: walk.hops + 1, method, headers, body } } }
  }
}
