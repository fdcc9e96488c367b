import type { RunReport } from '../control/run/run-report.ts'

/** Limits that the user set for the crawl: what they keep out does not make a run partial. A crawl that was stopped is none of them. */
const WANTED_REFUSALS = new Set(['max-pages', 'max-pages-per-domain', 'max-sitemaps', 'max-sitemaps-per-domain', 'out-of-scope'])

/**
 * 0: all that was taken is fetched, and duplicates were dropped. 3: some were refused, failed, or are not at their end, whether or not
 * the run has noticed why. 1: not one seed was good.
 */
export function runExitCode(report: RunReport): 0 | 1 | 3 {
  if (report.badCount > 0 && report.produced === 0) return 1
  const { inFlight, difference } = report.audit
  const { outcomes, reasons } = report.endedNow ?? report.audit
  const wanted = Object.entries(reasons).reduce((sum, [reason, count]) => sum + (WANTED_REFUSALS.has(reason) ? (count ?? 0) : 0), 0)
  const refused = (outcomes.REFUSED ?? 0) - wanted
  const isPartial = refused > 0 || (outcomes.FAILED ?? 0) > 0 || (outcomes.EXPIRED ?? 0) > 0
  const isOpen =
    report.waitingCount > 0 || report.lostCount > 0 || report.goneCount > 0 || inFlight > 0 || difference !== 0 || report.interrupted
  return isPartial || isOpen || report.badCount > 0 ? 3 : 0
}
