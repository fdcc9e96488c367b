import type { Hop, UrlTask } from '../message/generated/types.ts'
import { parseFetchUrl } from '../url/parse-url.ts'
import { type HttpResponse, headerValues } from './http-exchange.ts'

/** The request that an answer belongs to, or the next one of its chain. */
export interface ChainRequest {
  readonly target: URL
  readonly method: string
  /** Those of the task; none once the chain has left its origin. */
  readonly headers: Readonly<Record<string, string>>
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

/**
 * Where an answer sends its reader on; undefined: nowhere, a redirect without a target included, which is a page like any other.
 * Two locations that differ lead nowhere either, and browsers follow neither. Source: Fetch standard, "HTTP-redirect fetch".
 */
export function redirectOf(response: HttpResponse, from: ChainRequest): HopAnswer | BadRedirect | undefined {
  if (!REDIRECTS.has(response.status)) return undefined
  const locations = new Set(headerValues(response, 'location').map((value) => value.trim()))
  const [location = '', ...others] = [...locations].filter((value) => value !== '')
  if (location === '') return undefined
  if (others.length > 0) return bad(from, `${JSON.stringify(location)} and ${JSON.stringify(others[0])} at once; expected one location`)
  return hopOf(response.status, location, from)
}

/** Shape: status and location as they stand in a hop; a status below 300 is that of a page that refreshes. */
export function hopOf(status: number, location: string, from: ChainRequest): HopAnswer | BadRedirect {
  const isHeader = status >= 300
  const parsed = parseFetchUrl(isHeader ? asSent(location) : location, from.target)
  if (!parsed.ok) return bad(from, parsed.detail)
  const target = parsed.url
  const method = nextMethod(isHeader ? status : 303, from.method)
  return {
    kind: 'hop',
    hop: { url: from.target.href, status, location },
    target,
    method,
    headers: target.origin === from.target.origin ? headersFor(method, from) : {},
  }
}

function bad(from: ChainRequest, detail: string): BadRedirect {
  return { kind: 'failed', reason: 'bad-redirect', detail: `${from.target.href} redirects: ${detail}` }
}

/** Bytes of a header above 127 are asked for as they were sent, not as UTF-8 of the characters they look like. */
function asSent(location: string): string {
  return location.replaceAll(/[\x80-\xff]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
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

function headersFor(method: string, from: ChainRequest): Readonly<Record<string, string>> {
  if (method === from.method) return from.headers
  return Object.fromEntries(Object.entries(from.headers).filter(([name]) => !BODY_HEADERS.has(name.toLowerCase())))
}

/** Where a chain goes on that was written to a topic: the target of its last hop, or the URL of the task. */
export function resumeChain(task: UrlTask, url: URL): ChainRequest {
  let walk: ChainRequest = { target: url, method: task.method, headers: task.headers }
  const own = task.redirects.findIndex((hop) => hop.url === task.url)
  if (own === -1) return walk
  for (const { status, location } of task.redirects.slice(own)) {
    const answer = hopOf(status, location, walk)
    if (answer.kind !== 'hop') return walk
    const { target, method, headers } = answer
    walk = { target, method, headers }
  }
  return walk
}
