import type { AnswerReport, FailureKind } from '../state/state-store.ts'
import type { FailureReason, HttpResult } from './http-exchange.ts'

export type SiteReport = Omit<AnswerReport, 'rules' | 'sentLateMs' | 'endedAgoMs'>

/** What a failure says of its site. `none`: it is the URL's, the network's or ours, or it ends its task whatever the site does. */
const FAILURES: Readonly<Record<FailureReason, FailureKind | 'none'>> = {
  'dns-failed': 'connect',
  'connect-refused': 'connect',
  'connect-timeout': 'connect',
  'connection-reset': 'timeout',
  'headers-timeout': 'timeout',
  'body-timeout': 'timeout',
  'total-timeout': 'timeout',
  // A name that is not there is known at once, and no URL of it is asked for twice.
  'dns-not-found': 'none',
  'tls-failed': 'none',
  'protocol-error': 'none',
  'address-refused': 'none',
  'network-error': 'none',
  // A proxy is ours, and so is its trouble.
  'proxy-down': 'none',
  'proxy-failed': 'none',
  'proxy-auth': 'none',
  'proxy-refused': 'none',
  // Of a proxy that works for other sites it is `connect-refused`.
  'proxy-unreached': 'none',
  'proxy-timeout': 'none',
  // Whether the site cut it or the proxy nobody can tell: it is the proxy that is suspected, as where it did not connect.
  'proxy-reset': 'none',
  'proxies-out': 'none',
}

/**
 * What one answer, or its absence, says of the pace that a site bears. Pure and total. `challengedBy`: the wall against robots that answered
 * in its place; whatever its status, it asks for less.
 */
export function siteReport(result: HttpResult, challengedBy?: string): SiteReport {
  if (challengedBy !== undefined) return { kind: 'overload' }
  if (result.kind === 'failure') {
    const failure = FAILURES[result.reason]
    return failure === 'none' ? { kind: 'none' } : { kind: 'failure', failure }
  }
  const { status, truncated, ttfbMs, connectMs } = result
  if (status === 429) return { kind: 'overload' }
  if (status === 503) return { kind: 'overload', failure: 'server' }
  // Methods and versions of HTTP that it does not have are no trouble of the server.
  if (status >= 500 && status !== 501 && status !== 505) return { kind: 'failure', failure: 'server' }
  if (truncated === 'network') return { kind: 'none' }
  return { kind: 'success', latencyMs: Math.max(0, ttfbMs - connectMs) }
}
