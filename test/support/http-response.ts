import type { HttpResponse } from '../../src/fetch/http-exchange.ts'

/** An answer as the HTTP client gives it; `headers` as pairs where a name comes twice. */
export function httpResponse(
  status: number,
  headers: Readonly<Record<string, string>> | Iterable<readonly [string, string]> = {},
  more: Partial<HttpResponse> = {},
): HttpResponse {
  const pairs = Symbol.iterator in headers ? [...(headers as Iterable<readonly [string, string]>)] : Object.entries(headers)
  return {
    kind: 'response',
    status,
    headers: pairs.map(([name, value]) => ({ name, value })),
    contentType: 'text/html',
    body: Buffer.alloc(0),
    encoding: 'identity',
    decoded: Buffer.alloc(0),
    truncated: null,
    wireBytes: 0,
    connectMs: 0,
    ttfbMs: 1,
    totalMs: 1,
    remoteAddress: null,
    ...more,
  }
}
