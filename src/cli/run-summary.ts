import type { RunProgress, RunReport } from '../control/run.ts'
import type { CommandContext } from './context.ts'
import { counted, renderCount, renderDuration } from './render.ts'
import { noteBadSeeds } from './seeds-report.ts'

/** One line of progress. */
export function runProgressText(progress: RunProgress): string {
  const rate = progress.elapsedMs > 0 ? (progress.final / progress.elapsedMs) * 1000 : 0
  return `${progress.final} of ${progress.accepted} URLs done, ${progress.records} records, ${rate.toFixed(rate < 10 ? 1 : 0)} URLs/s`
}

/** The summary: every number of it adds up to the URLs taken. */
export async function writeSummary(context: CommandContext, report: RunReport, write: (line: string) => Promise<void>): Promise<void> {
  const { outcomes, reasons, inFlight, difference, produced } = report.audit
  const parts = Object.entries(outcomes).map(([kind, count]) => `${renderCount(count ?? 0)} ${kind.toLowerCase()}`)
  if (inFlight > 0) parts.push(`${renderCount(inFlight)} waiting`)
  if (difference > 0) parts.push(`${renderCount(difference)} unaccounted for`)
  // Without seeds of its own a run works off whatever lies there: its ledger is that of the whole log.
  const whose = report.crawlId === undefined ? ' in the log' : ''
  await write(`${counted(produced, 'URL')}${whose}: ${parts.join(', ') || 'none'}`)
  const why = Object.entries(reasons).map(([reason, count]) => `${reason} ${renderCount(count ?? 0)}`)
  if (why.length > 0) await write(`not fetched: ${why.join(', ')}`)
  await write(
    `${counted(report.records, 'record')} in ${renderDuration(report.elapsedMs)}${report.crawlId === undefined ? '' : `, crawl ${report.crawlId}`}`,
  )
  for (const task of report.waiting.slice(0, 10))
    await write(`waits until ${new Date(task.dueAt).toISOString()}: ${task.url} (${task.reason})`)
  if (report.waiting.length > 10) await write(`and ${report.waiting.length - 10} more wait`)
  noteBadSeeds(context, report)
  if (report.interrupted) context.note('stopped before the crawl had ended; `millrace run` goes on with what is queued')
}
