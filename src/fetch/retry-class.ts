import type { FailureReason } from './http-exchange.ts'

/** What a status means for the task that got it. */
export type StatusClass =
  /** An answer like any other: one request and no more. */
  | { readonly kind: 'final' }
  | {
      readonly kind: 'retry'
      /** It speaks for the whole site, which is to be left alone, and not for this URL alone. */
      readonly backsOff: boolean
      /** Times the usual delay. */
      readonly factor: number
    }

const FINAL: StatusClass = { kind: 'final' }
/** A site that says "too many" needs longer than one that broke down. */
const TOO_MANY_FACTOR = 6

/** May asking again give something better. Pure and total. Source: RFC 9110 section 15, RFC 6585, RFC 8470. */
export function statusClass(status: number): StatusClass {
  switch (status) {
    // The site waited in vain for a request of ours, on a connection that was too old.
    case 408:
    // It does not take early data; the next request goes without.
    case 425:
      return { kind: 'retry', backsOff: false, factor: 1 }
    case 429:
      return { kind: 'retry', backsOff: true, factor: TOO_MANY_FACTOR }
    // A method that the server does not have, a version of HTTP that it does not speak: neither comes with time.
    case 501:
    case 505:
      return FINAL
    // "Temporary overloading or maintenance" is the server's, whatever the URL.
    case 503:
      return { kind: 'retry', backsOff: true, factor: 1 }
    default:
      // 1xx to 4xx say what the site thinks of this URL, 401, 403, 404, 410 and 451 included: final. All others are the server's own
      // trouble, in its numbers or in those of whoever stands before it (520 to 530); a number above 599 counts as 5xx (RFC 9110).
      return status < 500 ? FINAL : { kind: 'retry', backsOff: false, factor: 1 }
  }
}

export type FailureClass = 'retry' | 'failed' | 'refused'

/** A table, so that a new reason does not compile without a class. */
const FAILURES: Readonly<Record<FailureReason, FailureClass>> = {
  // The name is not there; a new one takes hours to spread.
  'dns-not-found': 'failed',
  // The resolver did not answer, which says nothing about the name.
  'dns-failed': 'retry',
  // Servers restart, routes come back.
  'connect-refused': 'retry',
  'connect-timeout': 'retry',
  'connection-reset': 'retry',
  'headers-timeout': 'retry',
  'body-timeout': 'retry',
  'total-timeout': 'retry',
  // A bad certificate stays bad until somebody mends it.
  'tls-failed': 'failed',
  // What the server sends is no HTTP, or our request can't be written.
  'protocol-error': 'failed',
  // We chose not to ask.
  'address-refused': 'refused',
  // A proxy is the operator's trouble and no fault of the URL: another one, or the same one mended, may do.
  'proxy-down': 'retry',
  'proxy-failed': 'retry',
  'proxy-auth': 'retry',
  'proxy-refused': 'retry',
  'proxy-unreached': 'retry',
  'proxy-timeout': 'retry',
  'proxy-reset': 'retry',
  'proxies-out': 'retry',
  // Unknown: the attempts are bounded, so trying is the safe side.
  'network-error': 'retry',
}

const ON_THE_WAY: ReadonlySet<string> = new Set<FailureReason>([
  'tls-failed',
  'dns-not-found',
  'dns-failed',
  'proxy-down',
  'proxy-failed',
  'proxy-auth',
  'proxy-refused',
  'proxy-unreached',
  'proxy-timeout',
  'proxy-reset',
  'proxies-out',
])

/**
 * Whether it failed on the way: there is no such name, its certificate is bad, or a resolver or proxy of ours failed. That says nothing
 * of the site's robots.txt, and whatever is asked for next meets the same.
 */
export function failedOnTheWay(reason: string | null): reason is FailureReason {
  return reason !== null && ON_THE_WAY.has(reason)
}

/** What no answer means. Pure and total. */
export function failureClass(reason: FailureReason): FailureClass {
  return FAILURES[reason]
}
