import { hasZstd } from '../message/body-codec.ts'

/** What a request says where the task does not say otherwise. */
const DEFAULTS = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,application/json;q=0.9,text/plain;q=0.8,*/*;q=0.5',
  'accept-language': 'en;q=0.8,*;q=0.5',
} as const

/** Codings that we can undo, best first. */
export function acceptEncoding(): string {
  return hasZstd() ? 'gzip, br, zstd, deflate' : 'gzip, br, deflate'
}

/** They belong to the connection, which is the client's; what stands in them would break the request or end up with a proxy. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * All headers of a request. Shape: names in lower case; those of the task win, those of the connection and Accept-Encoding apart, since a
 * coding that can't be undone would be of no use.
 */
export function requestHeaders(taskHeaders: Readonly<Record<string, string>>, userAgent: string): Record<string, string> {
  const own: Record<string, string> = { 'user-agent': userAgent, ...DEFAULTS }
  for (const [name, value] of Object.entries(taskHeaders)) {
    const lower = name.toLowerCase()
    if (!OF_THE_CONNECTION.has(lower)) own[lower] = value
  }
  own['accept-encoding'] = acceptEncoding()
  return own
}
