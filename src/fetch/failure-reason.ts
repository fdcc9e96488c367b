import { errorText } from '../kernel/errors.ts'
import type { FailureReason } from './http-exchange.ts'

const BY_CODE: Readonly<Record<string, FailureReason>> = {
  ADDRESS_REFUSED: 'address-refused',
  // The name does not exist; a resolver that did not answer is another matter.
  ENOTFOUND: 'dns-not-found',
  EAI_AGAIN: 'dns-failed',
  EAI_FAIL: 'dns-failed',
  ESERVFAIL: 'dns-failed',
  ETIMEOUT: 'dns-failed',
  EREFUSED: 'dns-failed',
  EFORMERR: 'dns-failed',
  ENOTIMP: 'dns-failed',
  EBADRESP: 'dns-failed',
  EAI_NONAME: 'dns-not-found',
  EAI_NODATA: 'dns-not-found',
  ECONNREFUSED: 'connect-refused',
  EHOSTUNREACH: 'connect-refused',
  ENETUNREACH: 'connect-refused',
  EADDRNOTAVAIL: 'connect-refused',
  ETIMEDOUT: 'connect-timeout',
  UND_ERR_CONNECT_TIMEOUT: 'connect-timeout',
  ECONNRESET: 'connection-reset',
  EPIPE: 'connection-reset',
  ECONNABORTED: 'connection-reset',
  UND_ERR_SOCKET: 'connection-reset',
  UND_ERR_DESTROYED: 'connection-reset',
  UND_ERR_CLOSED: 'connection-reset',
  UND_ERR_HEADERS_TIMEOUT: 'headers-timeout',
  UND_ERR_BODY_TIMEOUT: 'body-timeout',
  // Fields that no sane server sends, or a length that does not fit the body.
  UND_ERR_HEADERS_OVERFLOW: 'protocol-error',
  // A method or a header that can't be written: asking again would not change it.
  UND_ERR_INVALID_ARG: 'protocol-error',
  UND_ERR_NOT_SUPPORTED: 'protocol-error',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'protocol-error',
  UND_ERR_HTTP_PARSER: 'protocol-error',
  PROXY_DOWN: 'proxy-down',
  PROXY_FAILED: 'proxy-failed',
  PROXY_AUTH: 'proxy-auth',
  PROXY_REFUSED: 'proxy-refused',
  PROXY_UNREACHED: 'proxy-unreached',
  PROXY_TIMEOUT: 'proxy-timeout',
  EPROTO: 'tls-failed',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls-failed',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls-failed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls-failed',
  UNABLE_TO_GET_ISSUER_CERT: 'tls-failed',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls-failed',
  HOSTNAME_MISMATCH: 'tls-failed',
}

/** Answers that undici gives up on, which it tells apart by the text alone. Asked again, such a server answers the same. */
const UNASKED: Readonly<Record<string, string>> = {
  'bad response': 'it answered 100 Continue, which nobody had asked for, and the HTTP library reads no further',
  'bad upgrade': 'it answered with an upgrade to another protocol (101), which nobody had asked for',
}

/** undici writes the values of repeated fields together before it counts: `5` and `5` are 55. */
const LENGTH_MISMATCH = 'the body is not as long as Content-Length says, or that field came twice, which the HTTP library does not read'

/** Bounded reason of anything that undici or the system throws. Total: what is not known is `network-error`. */
export function failureReason(error: unknown): { readonly reason: FailureReason; readonly detail: string } {
  const detail = errorText(error)
  for (const candidate of candidates(error)) {
    const { code, name, message } = (typeof candidate === 'object' && candidate !== null ? candidate : {}) as Thrown
    if (code === 'UND_ERR_SOCKET' && typeof message === 'string' && Object.hasOwn(UNASKED, message))
      return { reason: 'protocol-error', detail: `${UNASKED[message]} (${code})` }
    if (code === 'ERR_ASSERTION' && typeof message === 'string' && message.includes('statusCode >= 100'))
      return { reason: 'protocol-error', detail: `it answered with a status below 100 (${code})` }
    if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return { reason: 'protocol-error', detail: `${LENGTH_MISMATCH} (${code})` }
    // undici's parser gives its errors a code only now and then.
    if (name === 'HTTPParserError') return { reason: 'protocol-error', detail }
    if (typeof code !== 'string') continue
    const reason = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : byPrefix(code)
    if (reason !== undefined) return { reason, detail: detail.includes(code) ? detail : `${detail} (${code})` }
  }
  return { reason: 'network-error', detail }
}

interface Thrown {
  readonly code?: unknown
  readonly name?: unknown
  readonly message?: unknown
}

/** The parser says HPE_…, TLS says CERT_…, ERR_TLS_… or ERR_SSL_…. */
function byPrefix(code: string): FailureReason | undefined {
  if (code.startsWith('HPE_')) return 'protocol-error'
  if (code.startsWith('ERR_HTTP2_')) return 'connection-reset'
  if (code.startsWith('CERT_') || code.startsWith('ERR_TLS_') || code.startsWith('ERR_SSL_')) return 'tls-failed'
  return undefined
}

/** The error, its causes, and the attempts behind a connection that was tried to several addresses. */
function candidates(error: unknown): unknown[] {
  const found: unknown[] = []
  const queue: unknown[] = [error]
  for (let next = queue.shift(); next !== undefined && found.length < 16; next = queue.shift()) {
    found.push(next)
    if (next instanceof AggregateError) queue.push(...next.errors)
    if (next instanceof Error && next.cause !== undefined) queue.push(next.cause)
  }
  return found
}
