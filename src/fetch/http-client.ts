import { setMaxListeners } from 'node:events'
import type { Dispatcher } from 'undici'
import { unlessAborted } from '../kernel/abort.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Observer, silentObserver } from '../kernel/observe.ts'
import { likelyBytes } from '../message/body-codec.ts'
import { contentCodings, type DecodedContent, decodeContent, mostPackedBytes } from '../message/content-encoding.ts'
import { parseContentType } from '../message/content-type.ts'
import type { Header } from '../message/generated/types.ts'
import { createAddressPolicy } from './address-policy.ts'
import { failureReason } from './failure-reason.ts'
import type { FailureReason, HttpExchange, HttpFailure, HttpRequest, HttpResult } from './http-exchange.ts'
import { LoopShare } from './loop-share.ts'
import { type Connection, type OriginPool, OriginPools } from './origin-pools.ts'
import { PausedTimer } from './paused-timer.ts'
import { type ProxyOut, ProxyRing } from './proxy-ring.ts'
import type { ForwardProxy } from './proxy-url.ts'
import { createHostLookup, type LookupAll } from './resolve.ts'
import { type Leaving, notingSend } from './send-moment.ts'

export interface HttpClientOptions {
  /** Hosts to addresses, like curl --resolve. */
  readonly resolve: Readonly<Record<string, string>>
  /** Non-public ranges that may be asked all the same. */
  readonly allowAddresses: readonly string[]
  /** Origins with open connections; the one that was idle for longest makes room. 512 where not given. */
  readonly maxOrigins?: number
  /** Where hosts are; the system's own look-up where not given. */
  readonly lookup?: LookupAll
  /** HTTP/2 where a site offers it. Off where not given. */
  readonly http2?: boolean
  /** Certificates, PEM, that are trusted beside the usual ones. */
  readonly ca?: string | undefined
  /** Proxies that a URL is asked through; none: directly. Direct where not given. */
  readonly proxiesOf?: (url: URL) => readonly ForwardProxy[]
  readonly clock: Clock
  /** That of the stage; its own where not given. */
  readonly share?: LoopShare
  /** Told of proxies that come and go. */
  readonly observer?: Observer
}

/** Of a body that nobody keeps, so much is read away to keep the connection, and for so long: a stream of events never ends. */
const DUMP_BYTES = 65_536
const DUMP_MS = 1_000
/**
 * From this status on the head says what is to be done: a site that asks for patience and then drips its body, or says no more, was heard.
 */
const FIRST_BEYOND_SUCCESS = 300
/**
 * Some servers keep a connection open and hang up on whoever uses it again. Where a connection was cut off without an answer, none of the
 * origin is used twice for so long: such a URL would come to the same end at each attempt.
 */
const SINGLE_USE_MS = 600_000

/**
 * HTTP as it is on the wire, one request at a time: a pool of connections per origin, every connection through the address guard, and
 * through a proxy where one is set. No retry, no redirect, no decoding behind anybody's back.
 */
export class HttpClient implements HttpExchange {
  readonly #options: HttpClientOptions
  readonly #pools: OriginPools
  readonly #proxies: ProxyRing
  readonly #share: LoopShare
  #isClosed = false

  /** Errors: CONFIG_INVALID for a range or an address that is none. */
  constructor(options: HttpClientOptions) {
    this.#options = options
    this.#pools = new OriginPools({
      policy: createAddressPolicy(options.allowAddresses),
      lookup: createHostLookup(options.resolve, options.lookup),
      maxOrigins: options.maxOrigins ?? 512,
      http2: options.http2 ?? false,
      ca: options.ca,
      clock: options.clock,
    })
    this.#share = options.share ?? new LoopShare(options.clock)
    this.#proxies = new ProxyRing(options.clock, options.observer ?? silentObserver)
  }

  async request(request: HttpRequest): Promise<HttpResult> {
    request.signal.throwIfAborted()
    const { clock } = this.#options
    const startedMono = clock.mono()
    if (this.#isClosed) return { kind: 'failure', reason: 'network-error', detail: 'the HTTP client is closed', totalMs: 0 }
    const proxies = this.#options.proxiesOf?.(request.url) ?? []
    const proxy = this.#proxies.pick(request.url.hostname, proxies)
    if (proxies.length > 0 && proxy === undefined) return this.#withoutProxy(proxies)
    const result = await this.#ask(request, proxy, startedMono)
    return proxy === undefined ? result : this.#judge(proxy, request.url, result)
  }

  /** Open requests end as failures, and so do later ones. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#pools.close()
  }

  proxiesBackInMs(url: URL): number {
    const proxies = this.#options.proxiesOf?.(url) ?? []
    return proxies.length === 0 ? 0 : Math.ceil(this.#proxies.backInMs(proxies))
  }

  /** Proxies that are left out now. */
  proxiesOut(): readonly ProxyOut[] {
    return this.#proxies.out()
  }

  /** Never directly: who configures proxies does not want to be seen. */
  #withoutProxy(proxies: readonly ForwardProxy[]): HttpResult {
    const names = proxies.map(({ label }) => label).join(', ')
    const backInMs = Math.ceil(this.#proxies.backInMs(proxies))
    return { kind: 'failure', reason: 'proxies-out', detail: `none of ${names} works; the next try is in ${backInMs} ms`, totalMs: 0 }
  }

  /** Shape: the result, by the fault of whom it is. */
  #judge(proxy: ForwardProxy, url: URL, result: HttpResult): HttpResult {
    // Many say yes to CONNECT before they have tried, and hang up then.
    if (result.kind === 'failure' && result.reason === 'connection-reset')
      return this.#judge(proxy, url, { ...result, reason: 'proxy-reset', detail: `proxy ${proxy.label}: ${result.detail}` })
    if (result.kind === 'response') this.#proxies.worked(proxy)
    else if (result.reason === 'proxy-down' || result.reason === 'proxy-failed' || result.reason === 'proxy-auth')
      this.#proxies.failed(proxy, result.reason, result.detail)
    else if (result.reason === 'proxy-unreached' || result.reason === 'proxy-timeout' || result.reason === 'proxy-reset') {
      const isSuspect = this.#proxies.suspected(proxy, result.reason, url.hostname, result.detail)
      // It says that it could not reach this one and reaches others: a dead site is to be parked behind a proxy as without.
      if (result.reason === 'proxy-unreached' && !isSuspect) return { ...result, reason: 'connect-refused' }
    }
    // `proxy-refused` says nothing against a proxy: it lives, and does not take this target.
    return result
  }

  async #ask(request: HttpRequest, proxy: ForwardProxy | undefined, startedMono: number): Promise<HttpResult> {
    const { clock } = this.#options
    // By hand: what AbortSignal.any makes hangs on a long-lived signal for longer than the request.
    const stop = new AbortController()
    let ended: Pick<HttpFailure, 'reason' | 'detail'> | undefined
    const end = (reason: FailureReason, detail: string): void => {
      ended ??= { reason, detail: `${request.url.href} ${detail}` }
      stop.abort()
    }
    const { totalMs } = request.limits
    const deadline = new PausedTimer(clock, totalMs, () => end('total-timeout', `took longer than ${totalMs} ms`))
    const giveUp = (): void => end('body-timeout', 'sent its body too slowly while the memory for bodies was full')
    const onAbort = (): void => stop.abort()
    // One signal stops all requests of a worker: there are as many listeners as requests.
    setMaxListeners(0, request.signal)
    request.signal.addEventListener('abort', onAbort, { once: true })
    const origin = this.#pools.of(request.url.origin, request.limits.connectMs, proxy, request.address)
    origin.inFlight += 1
    try {
      return await this.#exchange(request, origin, { signal: stop.signal, deadline, giveUp }, startedMono)
    } catch (error) {
      request.signal.throwIfAborted()
      const failure = ended ?? failureReason(error)
      if (failure.reason === 'connection-reset') origin.singleUseUntilMono = clock.mono() + SINGLE_USE_MS
      return { kind: 'failure', ...failure, totalMs: clock.mono() - startedMono }
    } finally {
      origin.inFlight -= 1
      request.signal.removeEventListener('abort', onAbort)
      deadline.stop()
    }
  }

  async #exchange(request: HttpRequest, origin: OriginPool, end: RequestEnd, startedMono: number): Promise<HttpResult> {
    const { signal } = end
    const { clock } = this.#options
    const { url, method, headers, body = null, limits } = request
    const send = (): Promise<Dispatcher.ResponseData> =>
      origin.pool.request({
        path: url.pathname + url.search,
        method: method as Dispatcher.HttpMethod,
        headers,
        body,
        headersTimeout: limits.headersMs,
        bodyTimeout: limits.idleMs,
        responseHeaders: 'raw',
        ...(startedMono < origin.singleUseUntilMono ? { reset: true } : {}),
        signal,
      })
    let connection: Connection | undefined
    const onSent = (socket: object): void => {
      connection = origin.connections.get(socket)
      request.onSent?.()
    }
    const answer = await notingSend(leavingOf(request, onSent, signal), send)
    const ttfbMs = clock.mono() - startedMono
    const fields = headerFields(answer.headers as unknown as readonly string[])
    const contentType = parseContentType(joinedValue(fields, 'content-type')).essence
    const head = {
      kind: 'response',
      status: answer.statusCode,
      headers: fields,
      contentType,
      ttfbMs,
      connectMs: Math.max(0, (connection?.readyMono ?? startedMono) - startedMono),
      remoteAddress: connection?.address ?? null,
    } as const
    // These have none, and may say how long it would be: undici takes that for a body that is missing.
    const isBodiless = method === 'HEAD' || answer.statusCode === 204 || answer.statusCode === 304
    if (isBodiless || !request.keepBody(head)) {
      await dump(answer.body, signal, clock)
      const truncated = isBodiless ? null : 'type'
      const totalMs = clock.mono() - startedMono
      return { ...head, body: EMPTY, encoding: 'identity', decoded: EMPTY, truncated, wireBytes: 0, totalMs }
    }
    const coding = joinedValue(fields, 'content-encoding')
    const { maxBodyBytes } = request.limits
    const maxBytes = contentCodings(coding).length === 0 ? maxBodyBytes : mostPackedBytes(maxBodyBytes)
    const isSuccess = answer.statusCode < FIRST_BEYOND_SUCCESS
    const { wire, cut } = await readBody(answer.body, maxBytes, request, { ...end, isSuccess })
    // What had come when the time was up is unpacked all the same.
    const content = await this.#decode(wire, coding, request, signal.aborted ? { ...end, signal: request.signal } : end)
    // Of a body that was cut what does not decode is no page in a coding that we do not know.
    const isNothing = cut === 'network' && content.truncated === 'undecoded'
    return {
      ...head,
      body: isNothing ? EMPTY : content.body,
      encoding: content.encoding,
      decoded: isNothing ? EMPTY : content.decoded,
      // A coding that was cut with the body is not broken.
      truncated: content.truncated === 'undecoded' && !isNothing ? 'undecoded' : (cut ?? content.truncated),
      ...(content.problem === 'mislabelled' || content.problem === 'unknown-coding' ? { mislabelled: true } : {}),
      wireBytes: wire.length,
      totalMs: clock.mono() - startedMono,
    }
  }

  /** What a body has when it is unpacked counts before it is: first as much as is likely, and more where that was not all. */
  async #decode(wire: Buffer, coding: string | undefined, request: HttpRequest, end: RequestEnd): Promise<DecodedContent> {
    const { maxBodyBytes } = request.limits
    const likely = coding === undefined ? maxBodyBytes : likelyBytes(wire, maxBodyBytes)
    if (likely < maxBodyBytes) {
      await roomFor(wire.length + likely, request, end)
      const content = await this.#share.run(() => decodeContent(wire, coding, likely))
      if (content.truncated !== 'size') return content
    }
    if (coding !== undefined) await roomFor(wire.length + maxBodyBytes, request, end)
    return this.#share.run(() => decodeContent(wire, coding, maxBodyBytes))
  }
}

const EMPTY = Buffer.alloc(0)

/** What ends a request early. */
interface RequestEnd {
  readonly signal: AbortSignal
  readonly deadline: PausedTimer
  readonly giveUp: () => void
}

/** undici gives up no request whose connection is being made, so what it is held by ends with the signal. */
function leavingOf({ beforeSent }: HttpRequest, onSent: Leaving['onSent'], signal: AbortSignal): Leaving {
  if (beforeSent === undefined) return { onSent }
  return { onSent, beforeSent: () => unlessAborted(signal, beforeSent) }
}

/** It is us who are slow meanwhile, not the site. */
async function roomFor(
  bytes: number,
  { onBody }: Pick<HttpRequest, 'onBody'>,
  { signal, deadline }: RequestEnd,
  giveUp?: () => void,
): Promise<void> {
  const room = onBody?.(bytes, giveUp)
  if (room === undefined) return
  deadline.pause()
  await unlessAborted(signal, () => room)
  deadline.resume()
}

/** Shape: at most `maxBytes`; one byte more is read to know whether the body ends there. */
async function readBody(
  body: Dispatcher.ResponseData['body'],
  maxBytes: number,
  request: Pick<HttpRequest, 'onBody' | 'signal'>,
  end: RequestEnd & { readonly isSuccess: boolean },
): Promise<{ wire: Buffer; cut: 'size' | 'network' | null }> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      length += chunk.length
      if (length > maxBytes) return { wire: Buffer.concat(chunks).subarray(0, maxBytes), cut: 'size' }
      await roomFor(length, request, end, end.giveUp)
    }
  } catch (error) {
    request.signal.throwIfAborted()
    // A connection that ended early leaves what came; a page that is there and does not come in time is none.
    const { reason } = failureReason(error)
    const isLate = end.signal.aborted || reason === 'body-timeout'
    const endedEarly = reason === 'connection-reset' || reason === 'protocol-error'
    if (isLate ? end.isSuccess : !endedEarly) throw error
    return { wire: Buffer.concat(chunks), cut: 'network' }
  }
  return { wire: Buffer.concat(chunks), cut: null }
}

async function dump(body: Dispatcher.ResponseData['body'], signal: AbortSignal, clock: Clock): Promise<void> {
  const disarm = clock.timer(DUMP_MS, () => body.destroy())
  try {
    await body.dump({ limit: DUMP_BYTES, signal })
  } catch (error) {
    // The body is not wanted: that it ends badly says nothing about the answer. Being stopped does.
    if (signal.aborted) throw error
  } finally {
    disarm()
  }
}

function headerFields(raw: readonly string[]): Header[] {
  const fields: Header[] = []
  for (let index = 0; index + 1 < raw.length; index += 2) fields.push({ name: raw[index] ?? '', value: raw[index + 1] ?? '' })
  return fields
}

function joinedValue(fields: readonly Header[], name: string): string | undefined {
  const values = fields.filter((field) => field.name.toLowerCase() === name).map(({ value }) => value)
  return values.length === 0 ? undefined : values.join(',')
}
