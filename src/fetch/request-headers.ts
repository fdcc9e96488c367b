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

/**
 * All headers of a request. Shape: names in lower case; those of the task win, Accept-Encoding apart, since a coding that can't be
 * undone would be of no use.
 */
export function requestHeaders(taskHeaders: Readonly<Record<string, string>>, userAgent: string): Record<string, string> {
  const own: Record<string, string> = { 'user-agent': userAgent, ...DEFAULTS }
  for (const [name, value] of Object.entries(taskHeaders)) own[name.toLowerCase()] = value
  own['accept-encoding'] = acceptEncoding()
  return own
}
