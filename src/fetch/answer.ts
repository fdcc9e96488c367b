import type { Hop, UrlTask } from '../message/generated/types.ts'
import type { FailureReason, HttpResponse, HttpResult } from './http-exchange.ts'

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

export function readAnswer(result: HttpResult, context: AnswerContext): Answer {
  if (result.kind === 'failure') return failureAnswer(result.reason, result.detail)
  const location = headerOf(result, 'location')
  if (REDIRECTS.has(result.status) && location !== undefined) return hopAnswer(result.status, location, context)
  if (RETRIED.has(result.status)) {
    const isBusy = result.status === 429 || result.status === 503
    return {
      kind: 'retry',
      reason: `http-${result.status}`,
      detail: `${context.target.href} answered ${result.status}`,
      retryAfterMs: retryAfter(headerOf(result, 'retry-after'), context.now),
      backsOff: isBusy,
    }
  }
  if (result.truncated === 'network') {
    return {
      kind: 'retry',
      reason: 'truncated',
      detail: `${context.target.href}: the body ended early`,
      retryAfterMs: undefined,
      backsOff: false,
      keep: result,
    }
  }
  return { kind: 'page', response: result }
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const RETRIED: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

function failureAnswer(reason: FailureReason, detail: string): Answer {
  if (reason === 'address-refused') return { kind: 'refused', reason }
  if (reason === 'dns-not-found' || reason === 'tls-failed' || reason === 'protocol-error') return { kind: 'failed', reason, detail }
  return { kind: 'retry', reason, detail, retryAfterMs: undefined, backsOff: false }
}

function hopAnswer(status: number, location: string, context: AnswerContext): Answer {
  const target = resolveLocation(location, context.target)
  const detail = `${context.target.href} redirects to ${JSON.stringify(location.slice(0, 500))}`
  if (target === undefined) return { kind: 'failed', reason: 'bad-redirect', detail }
  const toGet = status === 303 ? context.method !== 'HEAD' : (status === 301 || status === 302) && context.method === 'POST'
  return {
    kind: 'hop',
    hop: { url: context.target.href, status, location },
    target,
    method: toGet ? 'GET' : context.method,
    headers: target.origin === context.target.origin ? context.headers : {},
  }
}

function resolveLocation(location: string, base: URL): URL | undefined {
  const bytes = location.replaceAll(/[\x80-\xff]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  const url = URL.parse(bytes, base.href)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined
  url.hash = ''
  return url
}

function retryAfter(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+$/.test(text.trim())) return Number(text) * 1_000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
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
