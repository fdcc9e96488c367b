import type { AnswerReport } from '../state/state-store.ts'
import type { HttpResult } from './http-exchange.ts'
import { siteFailure, siteStatus } from './retry-class.ts'

export type PaceReport = Omit<AnswerReport, 'rules' | 'sentLateMs' | 'endedAgoMs'>

/**
 * What one answer, or its absence, says of the pace that a site bears. Pure and total. `challengedBy`: the wall against robots that
 * answered in its place; whatever its status, it asks for less.
 */
export function paceReport(result: HttpResult, challengedBy?: string): PaceReport {
  if (challengedBy !== undefined) return { kind: 'overload' }
  if (result.kind === 'failure') {
    const failure = siteFailure(result.reason)
    return failure === undefined ? { kind: 'none' } : { kind: 'failure', failure }
  }
  const { status, truncated, ttfbMs, connectMs } = result
  const said = siteStatus(status)
  if (said.kind !== 'success') return said
  if (truncated === 'network') return { kind: 'none' }
  return { kind: 'success', latencyMs: Math.max(0, ttfbMs - connectMs) }
}
