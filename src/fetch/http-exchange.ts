import type { Header } from '../message/generated/types.ts'

/**
 * One request and its answer, as the rest of the stage sees HTTP. The client behind it makes exactly one request: redirects, retries
 * and pace are decided elsewhere.
 */
export interface HttpExchange {
  /** Never throws for what a server or the network does: that is a `failure`. Rejects only when `signal` aborts. */
  request(request: HttpRequest): Promise<HttpResult>
  /** ms until one of the proxies that the URL is asked through is tried again; 0: one works, or it is asked directly. */
  proxiesBackInMs(url: URL): number
}

export interface HttpRequest {
  readonly url: URL
  readonly method: string
  /** Complete, User-Agent and Accept-Encoding included; names as they go on the wire. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | null
  readonly limits: HttpLimits
  /** The only address that is connected to, where the site is paced by it; else what the name says. Judged like any other. */
  readonly address?: string
  /** False: stop reading after the headers (a type that is not kept, a redirect); the result is `truncated: 'type'`. */
  readonly keepBody: (head: ResponseHead) => boolean
  /**
   * Called where a connection had to be made first and stands: the request leaves when this resolves. What it rejects with is a failure.
   */
  readonly beforeSent?: () => Promise<void>
  /**
   * Called for each piece of the body with the bytes so far, and before it is unpacked with those that it will have then: it goes on when
   * this resolves. `giveUp` ends the request while the body is coming: it counts as a body that timed out.
   */
  readonly onBody?: (bytes: number, giveUp?: () => void) => Promise<void> | undefined
  /** Called when the request goes on the wire, which is later where a connection has to be made first. */
  readonly onSent?: () => void
  readonly signal: AbortSignal
}

export interface HttpLimits {
  readonly connectMs: number
  readonly headersMs: number
  /** Between two pieces of the body. */
  readonly idleMs: number
  readonly totalMs: number
  /** Of the decoded body; the same bound holds for the bytes on the wire. */
  readonly maxBodyBytes: number
}

export type HttpResult = HttpResponse | HttpFailure

export interface ResponseHead {
  readonly status: number
  /** In the order received; bytes above 127 as latin1 characters. */
  readonly headers: readonly Header[]
  /** Essence of Content-Type, lower case; null where there is none. */
  readonly contentType: string | null
}

export interface HttpResponse extends ResponseHead {
  readonly kind: 'response'
  /** Body as received, still in `encoding`, when that decodes cleanly to its end; else the decoded bytes with `identity`. */
  readonly body: Buffer
  readonly encoding: 'identity' | 'gzip' | 'br' | 'zstd' | 'deflate'
  /** Decoded body. */
  readonly decoded: Buffer
  /**
   * size: cut at the cap. type: not kept. network: the connection ended early, or the time was up, where the status is no success.
   * encoding: the coding is broken; what decoded is kept. undecoded: nothing did; as received.
   */
  readonly truncated: 'size' | 'type' | 'network' | 'encoding' | 'undecoded' | null
  /** It was not in the coding that its headers name, and is kept as it came. */
  readonly mislabelled?: boolean
  /** Bytes on the wire, of the body. */
  readonly wireBytes: number
  /** Until a connection stood and the request could leave; 0 where one was open. */
  readonly connectMs: number
  readonly ttfbMs: number
  readonly totalMs: number
  readonly remoteAddress: string | null
}

/** Values of a header, in the order received. Shape: name in lower case. */
export function headerValues({ headers }: ResponseHead, name: string): readonly string[] {
  return headers.filter((header) => header.name.toLowerCase() === name).map(({ value }) => value)
}

export interface HttpFailure {
  readonly kind: 'failure'
  /** Bounded code, as it stands in Outcome.reason. */
  readonly reason: FailureReason
  /** For people: the address, the system's code. */
  readonly detail: string
  readonly totalMs: number
}

/** No proxy took the request: nobody was asked, so it counts as no attempt and waits for a proxy. */
export function foundNoProxy(result: HttpResult): boolean {
  return result.kind === 'failure' && (result.reason === 'proxies-out' || result.reason === 'proxy-down')
}

export type FailureReason =
  | 'dns-not-found'
  | 'dns-failed'
  | 'connect-refused'
  | 'connect-timeout'
  | 'connection-reset'
  | 'headers-timeout'
  | 'body-timeout'
  | 'total-timeout'
  | 'tls-failed'
  | 'protocol-error'
  | 'address-refused'
  | 'proxy-down'
  | 'proxy-failed'
  | 'proxy-auth'
  | 'proxy-refused'
  | 'proxy-unreached'
  | 'proxy-timeout'
  | 'proxy-reset'
  | 'proxies-out'
  | 'network-error'
