import type { Hop, UrlTask } from '../message/generated/types.ts'
import { hopTaskId } from '../message/ids.ts'
import { hopTarget, walkBegin } from '../message/redirect-chain.ts'
import { canonicalUrl } from '../url/canonical-url.ts'
import { withoutCredentials } from '../url/parse-url.ts'
import { carriedCookies } from './cookie-jars.ts'
import { headerValues, type ResponseHead } from './http-exchange.ts'

/** The request that an answer belongs to, or the next one of its chain. */
export interface ChainRequest {
  readonly target: URL
  readonly method: string
  /** Those of the task; once the chain has left its origin none, but for those that describe a body which is sent on. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
}

export interface HopAnswer extends ChainRequest {
  readonly kind: 'hop'
  readonly hop: Hop
}

export interface BadRedirect {
  readonly kind: 'failed'
  readonly reason: 'bad-redirect'
  readonly detail: string
}

/** Hops of one chain. */
export const MAX_HOPS = 10
/** 300 offers a choice and 304 answers a question that was not asked: neither leads anywhere. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Whether an answer sends its reader on, or tries to: its body is read by nobody. */
export function sendsOn(head: ResponseHead): boolean {
  return locationsOf(head).length > 0
}

/** Those that differ; none where it is no redirect. */
function locationsOf(head: ResponseHead): readonly string[] {
  if (!REDIRECTS.has(head.status)) return []
  return [...new Set(headerValues(head, 'location').map((value) => value.trim()))].filter((value) => value !== '')
}

/**
 * Where an answer sends its reader on; undefined: nowhere, a redirect without a target included, which is a page like any other.
 * Two locations that differ lead nowhere either, and browsers follow neither. Source: Fetch standard, "HTTP-redirect fetch".
 */
export function redirectOf(response: ResponseHead, from: ChainRequest): HopAnswer | BadRedirect | undefined {
  const [location, ...others] = locationsOf(response)
  if (location === undefined) return undefined
  if (others.length > 0) {
    const [first, second] = [location, others[0] ?? ''].map((text) => JSON.stringify(withoutCredentials(text)))
    return bad(from, `${first} and ${second} at once; expected one location`)
  }
  return hopOf(response.status, location, from, headerValues(response, 'set-cookie'))
}

/** They are shown and asked for as `%A0`, which a site may write as well. */
const RAW_BYTES = /[\x80-\xff]/

/** Shape: status and location as they stand in a hop; a status below 300 is that of a page that refreshes. */
export function hopOf(status: number, location: string, from: ChainRequest, setCookies: readonly string[] = []): HopAnswer | BadRedirect {
  const isHeader = status >= 300
  const parsed = hopTarget({ status, location }, from.target)
  if (!parsed.ok)
    return bad(from, isHeader && RAW_BYTES.test(location) ? `${parsed.detail}; bytes above 127 came as they are` : parsed.detail)
  const target = parsed.url
  const method = nextMethod(isHeader ? status : 303, from.method)
  const keepsBody = isHeader && status !== 303 && method === from.method
  return {
    kind: 'hop',
    hop: { url: from.target.href, status, location, setCookies: carriedCookies(setCookies) },
    target,
    method,
    headers: headersFor(target.origin === from.target.origin, keepsBody, from),
    body: keepsBody ? from.body : null,
  }
}

function bad(from: ChainRequest, detail: string): BadRedirect {
  return { kind: 'failed', reason: 'bad-redirect', detail: `${from.target.href} redirects: ${detail}` }
}

/** As browsers do: 303 asks for another page, 301 and 302 turn POST alone into GET. */
function nextMethod(status: number, method: string): string {
  if (status === 303) return method === 'HEAD' ? method : 'GET'
  return (status === 301 || status === 302) && method === 'POST' ? 'GET' : method
}

/** What describes a body goes with it. */
const BODY_HEADERS: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-type',
])

/** A body that goes to another origin keeps its type, as in browsers, or nobody could read it. Nothing else crosses. */
function headersFor(isSameOrigin: boolean, keepsBody: boolean, from: ChainRequest): Readonly<Record<string, string>> {
  if (isSameOrigin && keepsBody) return from.headers
  const describesBody = (name: string): boolean => BODY_HEADERS.has(name.toLowerCase())
  const crossing = keepsBody && from.body !== null
  return Object.fromEntries(
    Object.entries(from.headers).filter(([name]) => (isSameOrigin ? !describesBody(name) : crossing && describesBody(name))),
  )
}

/** Names of methods that count in any case. Source: Fetch standard, "normalize". */
const COMMON_METHODS: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'])

function commonMethod(method: string): string {
  const upper = method.toUpperCase()
  return COMMON_METHODS.has(upper) ? upper : method
}

/** Where a chain goes on that was written to a topic: the target of its last hop, or the URL of the task. */
export function resumeChain(task: UrlTask, url: URL): ChainRequest {
  let walk: ChainRequest = { target: url, method: commonMethod(task.method), headers: task.headers, body: task.body }
  for (const { status, location } of task.redirects.slice(walkBegin(task))) {
    const answer = hopOf(status, location, walk)
    if (answer.kind !== 'hop') return walk
    const { target, method, headers, body } = answer
    walk = { target, method, headers, body }
  }
  return walk
}

/** The hop as a task of its own, in the partition of its own domain. `task`: with the hop in its chain. */
export function hopTask(task: UrlTask, { target, method, headers, body }: HopAnswer, now: number): UrlTask {
  return {
    ...task,
    url: target.href,
    canonicalUrl: canonicalUrl(target),
    taskId: hopTaskId(task.taskId, task.attempt, task.redirects.length, target.href),
    method,
    headers,
    body,
    attempt: 1,
    notBefore: null,
    enqueuedAt: now,
  }
}
