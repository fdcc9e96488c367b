import type { AnswerReport, FailureKind } from '../state/state-store.ts'
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

interface StatusMeaning {
  readonly task: StatusClass
  /** What it says of the pace that its site bears. */
  readonly site: Pick<AnswerReport, 'kind' | 'failure'>
}

const AGAIN = { kind: 'retry', backsOff: false, factor: 1 } as const
const ANSWERED = { kind: 'success' } as const
const FINAL: StatusMeaning = { task: { kind: 'final' }, site: ANSWERED }
/** A site that says "too many" needs longer than one that broke down. */
const TOO_MANY_FACTOR = 6

/** Source: RFC 9110 section 15, RFC 6585, RFC 8470. */
function statusMeaning(status: number): StatusMeaning {
  switch (status) {
    // The site waited in vain for a request of ours, on a connection that was too old.
    case 408:
    // It does not take early data; the next request goes without.
    case 425:
      return { task: AGAIN, site: ANSWERED }
    case 429:
      return { task: { ...AGAIN, backsOff: true, factor: TOO_MANY_FACTOR }, site: { kind: 'overload' } }
    // A method that the server does not have, a version of HTTP that it does not speak: neither comes with time, nor is it trouble of the
    // server.
    case 501:
    case 505:
      return FINAL
    // "Temporary overloading or maintenance" is the server's, whatever the URL.
    case 503:
      return { task: { ...AGAIN, backsOff: true }, site: { kind: 'overload', failure: 'server' } }
    default:
      // 1xx to 4xx say what the site thinks of this URL, 401, 403, 404, 410 and 451 included: final. All others are the server's own
      // trouble, in its numbers or in those of whoever stands before it (520 to 530); a number above 599 counts as 5xx (RFC 9110).
      return status < 500 ? FINAL : { task: AGAIN, site: { kind: 'failure', failure: 'server' } }
  }
}

/** May asking again give something better. Pure and total. */
export function statusClass(status: number): StatusClass {
  return statusMeaning(status).task
}

/** What it says of the pace that its site bears. Pure and total. */
export function siteStatus(status: number): StatusMeaning['site'] {
  return statusMeaning(status).site
}

export type FailureClass = 'retry' | 'failed' | 'refused'

interface FailureMeaning {
  readonly task: FailureClass
  /** What it says of its site. `none`: it is the URL's, the network's or ours, or it ends its task whatever the site does. */
  readonly site: FailureKind | 'none'
  /**
   * It failed on the way: there is no such name, its certificate is bad, or a resolver or proxy of ours failed. That says nothing of the
   * site's robots.txt, and whatever is asked for next meets the same.
   */
  readonly onTheWay: boolean
}

/** What no answer means, in one table: a new reason does not compile before all of it is said. */
const MEANINGS: Readonly<Record<FailureReason, FailureMeaning>> = {
  // The name is not there, which is known at once; a new one takes hours to spread.
  'dns-not-found': { task: 'failed', site: 'none', onTheWay: true },
  // The resolver did not answer, which says nothing about the name.
  'dns-failed': { task: 'retry', site: 'connect', onTheWay: true },
  // Servers restart, routes come back.
  'connect-refused': { task: 'retry', site: 'connect', onTheWay: false },
  'connect-timeout': { task: 'retry', site: 'connect', onTheWay: false },
  'connection-reset': { task: 'retry', site: 'timeout', onTheWay: false },
  'headers-timeout': { task: 'retry', site: 'timeout', onTheWay: false },
  'body-timeout': { task: 'retry', site: 'timeout', onTheWay: false },
  'total-timeout': { task: 'retry', site: 'timeout', onTheWay: false },
  // A bad certificate stays bad until somebody mends it.
  'tls-failed': { task: 'failed', site: 'none', onTheWay: true },
  // What the server sends is no HTTP, or our request can't be written.
  'protocol-error': { task: 'failed', site: 'none', onTheWay: false },
  // We chose not to ask.
  'address-refused': { task: 'refused', site: 'none', onTheWay: false },
  // A proxy is the operator's, and so is its trouble, no fault of the URL: another one, or the same one mended, may do.
  'proxy-down': { task: 'retry', site: 'none', onTheWay: true },
  'proxy-failed': { task: 'retry', site: 'none', onTheWay: true },
  'proxy-auth': { task: 'retry', site: 'none', onTheWay: true },
  'proxy-refused': { task: 'retry', site: 'none', onTheWay: true },
  // Of a proxy that works for other sites it is `connect-refused`.
  'proxy-unreached': { task: 'retry', site: 'none', onTheWay: true },
  'proxy-timeout': { task: 'retry', site: 'none', onTheWay: true },
  // Whether the site cut it or the proxy nobody can tell: it is the proxy that is suspected, as where it did not connect.
  'proxy-reset': { task: 'retry', site: 'none', onTheWay: true },
  'proxies-out': { task: 'retry', site: 'none', onTheWay: true },
  // Unknown: the attempts are bounded, so trying is the safe side.
  'network-error': { task: 'retry', site: 'none', onTheWay: false },
}

/** All there are. */
export const FAILURE_REASONS = Object.keys(MEANINGS) as readonly FailureReason[]

/** What it means for its task. Pure and total. */
export function failureClass(reason: FailureReason): FailureClass {
  return MEANINGS[reason].task
}

/** What it says of its site. Pure and total. */
export function siteFailure(reason: FailureReason): FailureKind | undefined {
  const { site } = MEANINGS[reason]
  return site === 'none' ? undefined : site
}

/** Whether it failed on the way; shape: false for none, and for what is no such reason. */
export function failedOnTheWay(reason: string | null): reason is FailureReason {
  return reason !== null && Object.hasOwn(MEANINGS, reason) && MEANINGS[reason as FailureReason].onTheWay
}
