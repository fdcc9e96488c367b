import { decideCharset, decodeText } from '../message/charset.ts'
import { isHtmlType } from '../message/content-type.ts'
import type { Hop, UrlTask } from '../message/generated/types.ts'
import { parseFetchUrl } from '../url/parse-url.ts'
import type { FailureReason, HttpResponse, HttpResult } from './http-exchange.ts'
import { metaRefresh } from './meta-refresh.ts'
import { contentTypeHeader } from './page-message.ts'
import { retryAfterMs } from './retry-after.ts'

export interface HopAnswer {
  readonly kind: 'hop'
  readonly hop: Hop
  readonly target: URL
  /** Of the next request. */
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
}

/** What an answer means for its task. */
export type Answer =
  | { readonly kind: 'page'; readonly response: HttpResponse }
  | HopAnswer
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly detail: string }
  | {
      readonly kind: 'retry'
      readonly reason: string
      readonly detail: string
      readonly retryAfterMs: number | undefined
      readonly factor?: number
      /** The whole site is to be left alone, not this task alone. */
      readonly backsOff: boolean
      /** What there is, should this have been the last attempt. */
      readonly keep?: HttpResponse
    }

export interface AnswerContext {
  readonly target: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  /** Epoch ms. */
  readonly now: number
}

/**
 * What the answer of one request means, as a table of statuses and failures. Pure and total.
 *
 * Retried: no answer for a reason that passes, 408, 425, 429, 5xx but 501 and 505, a body that ended early. Final: everything else,
 * one request and no more; 401, 403, 404, 410 and 451 are pages like any other. 429 and 503 speak for the whole site.
 */
export function readAnswer(result: HttpResult, context: AnswerContext): Answer {
  if (result.kind === 'failure') return failureAnswer(result.reason, result.detail)
  const location = headerOf(result, 'location')?.trim() ?? ''
  if (REDIRECTS.has(result.status) && location !== '') return hopAnswer(result.status, location, context)
  const { href } = context.target
  if (isRetried(result.status)) {
    return {
      kind: 'retry',
      reason: `http-${result.status}`,
      detail: `${href} answered with status ${result.status}`,
      retryAfterMs: retryAfterMs(headerOf(result, 'retry-after'), context.now, headerOf(result, 'date')),
      ...(result.status === 429 ? { factor: TOO_MANY_FACTOR } : {}),
      backsOff: result.status === 429 || result.status === 503,
    }
  }
  if (result.truncated === 'network') {
    return {
      kind: 'retry',
      reason: 'truncated',
      detail: `the body of ${href} ended after ${result.wireBytes} bytes, before it was whole`,
      retryAfterMs: undefined,
      backsOff: false,
      keep: result,
    }
  }
  return refreshAnswer(result, context) ?? { kind: 'page', response: result }
}

/** A page that sends its reader on within this is a redirect. */
const MAX_REFRESH_MS = 10_000
const SEARCHED_BYTES = 65_536

function refreshAnswer(response: HttpResponse, context: AnswerContext): HopAnswer | undefined {
  if (response.status >= 300 || !isHtmlType(response.contentType) || response.decoded.length === 0) return undefined
  const head = response.decoded.subarray(0, SEARCHED_BYTES)
  const refresh = metaRefresh(decodeText(head, decideCharset(head, contentTypeHeader(response)).charset))
  if (refresh === undefined || refresh.delayMs > MAX_REFRESH_MS) return undefined
  const answer = hopAnswer(response.status, refresh.location, context)
  // A page that refreshes to itself is a page that reloads, and one that names no URL to fetch is a page all the same.
  return answer.kind === 'hop' && answer.target.href !== withoutHash(context.target) ? answer : undefined
}

function withoutHash(url: URL): string {
  return url.hash === '' ? url.href : url.href.slice(0, -url.hash.length)
}

/** 300 offers a choice and 304 answers a question that was not asked: neither leads anywhere. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** Times the usual delay: a site that says "too many" needs longer than one that broke down. */
const TOO_MANY_FACTOR = 6

function isRetried(status: number): boolean {
  if (status >= 500) return status !== 501 && status !== 505
  return status === 408 || status === 425 || status === 429
}

function failureAnswer(reason: FailureReason, detail: string): Answer {
  switch (reason) {
    case 'address-refused':
      return { kind: 'refused', reason }
    // A name that does not exist, a bad certificate and broken HTTP do not mend themselves within hours.
    case 'dns-not-found':
    case 'tls-failed':
    case 'protocol-error':
      return { kind: 'failed', reason, detail }
    default:
      return { kind: 'retry', reason, detail, retryAfterMs: undefined, backsOff: false }
  }
}

/** Source: Fetch standard, "HTTP-redirect fetch", for the method; headers of a task never go to another origin. */
function hopAnswer(status: number, location: string, context: AnswerContext): Answer {
  // Bytes of a header above 127 are asked for as they were sent, not as UTF-8 of the characters they look like.
  const isHeader = status >= 300
  const text = isHeader ? location.replaceAll(/[\x80-\xff]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`) : location
  const parsed = parseFetchUrl(text, context.target)
  if (!parsed.ok) return { kind: 'failed', reason: 'bad-redirect', detail: `${context.target.href} redirects: ${parsed.detail}` }
  const target = parsed.url
  const toGet = !isHeader || status === 303 ? context.method !== 'HEAD' : (status === 301 || status === 302) && context.method === 'POST'
  return {
    kind: 'hop',
    hop: { url: context.target.href, status, location },
    target,
    method: toGet ? 'GET' : context.method,
    headers: target.origin === context.target.origin ? context.headers : {},
  }
}

function headerOf(response: HttpResponse, name: string): string | undefined {
  return response.headers.findLast((header) => header.name.toLowerCase() === name)?.value
}

/** Where a chain goes on: the target of its last hop, or the URL of the task. */
export function resumeChain(
  task: UrlTask,
  url: URL,
): { readonly target: URL; readonly method: string; readonly headers: Readonly<Record<string, string>> } {
  let walk: { target: URL; method: string; headers: Readonly<Record<string, string>> } = {
    target: url,
    method: task.method,
    headers: task.headers,
  }
  const own = task.redirects.findIndex((hop) => hop.url === task.url)
  if (own === -1) return walk
  for (const hop of task.redirects.slice(own)) {
    const answer = hopAnswer(hop.status, hop.location, { ...walk, now: 0 })
    if (answer.kind !== 'hop') return walk
    walk = answer
  }
  return walk
}
