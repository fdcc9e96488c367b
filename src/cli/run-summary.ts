import type { RunProgress, RunReport, UncountedRun } from '../control/run/run-report.ts'
import { countText } from '../kernel/count-text.ts'
import { durationText } from '../kernel/duration-text.ts'
import { shellWord } from '../kernel/shell-word.ts'
import type { CommandContext } from './context.ts'
import type { ProgressState } from './progress.ts'
import { counted, renderCount } from './render.ts'
import { tellBadSeeds } from './seeds-report.ts'

/**
 * Progress of a run. The bar is that of the URLs: where all are done it is left out, since the pages may take longer than they did, and
 * where nothing is asked for, since it does not move. The text then says what is waited for.
 */
export function runProgress(state: RunProgress): ProgressState {
  const { accepted, final, finalBefore = 0, unit = 'URL', records, elapsedMs } = state
  const rate = elapsedMs > 0 ? ((final - finalBefore) / elapsedMs) * 1000 : 0
  const urls = `${final} of ${countText(accepted, unit)}${unit === 'message' ? ' of urls and urls.delay' : ''} done`
  const fields = { ...state }
  if (state.counting !== undefined) {
    const { read, of } = state.counting
    const text = `${countText(records, 'record')}, adding up what became of each URL (Ctrl-C leaves that out)`
    return { text, ratio: read / of, phase: 'counting', fields }
  }
  const stall = state.stalledBy === null ? undefined : STALLS[state.stalledBy]
  if (accepted > final && stall?.holdsAll === true) return { text: [urls, stall.text, countText(records, 'record')].join(', '), fields }
  // Where every URL is done nothing of fetch is waited for, but some pages may be.
  const stalled = stall === undefined || stall.holdsAll ? [] : [stall.text]
  if (accepted > final)
    return {
      text: [urls, ...stalled, countText(records, 'record'), `${rate.toFixed(rate < 10 ? 1 : 0)} ${unit}s/s`].join(', '),
      ratio: final / accepted,
      fields,
    }
  return { text: [urls, ...waitsFor(state), ...stalled, countText(records, 'record')].join(', '), fields }
}

/** What is waited for, as `stalls` of `status` has it, in few words; whether it holds up all requests, or some of the work. */
const STALLS: Readonly<Record<NonNullable<RunProgress['stalledBy']>, { readonly text: string; readonly holdsAll: boolean }>> = {
  disk: { text: 'fetching rests: too little disk (fetch.minFreeDisk)', holdsAll: true },
  'state-store': { text: 'fetching rests: no answer from the state store', holdsAll: true },
  registry: { text: 'what has schemas not known yet waits: no answer from the schema registry', holdsAll: false },
  blobs: { text: 'large pages wait: no answer from the blob store', holdsAll: false },
}

function waitsFor({ unread, away }: RunProgress): string[] {
  if (away !== undefined) return [`whether all is done can't be seen: ${away}`]
  if (unread === undefined) return []
  const { extract, frontier, isReplaying, openTransactions = [] } = unread
  const parts: string[] = []
  if (extract > 0) parts.push(`${counted(extract, 'page')} ${extract === 1 ? 'waits' : 'wait'} for extraction`)
  if (frontier > 0) parts.push(`links of ${counted(frontier, 'page')} not followed yet`)
  if (isReplaying) parts.push('a replay in place has work left')
  if (openTransactions.length > 0)
    parts.push(`a transaction is open in ${openTransactions.join(' and ')}: nobody reads further until it ends`)
  return parts
}

/**
 * The summary: every number of it adds up to the URLs taken. Unwritten: the reader of `--out -` has left, and this is what it may lack and
 * how that is had.
 */
export async function writeSummary(
  context: CommandContext,
  report: RunReport,
  write: (line: string) => Promise<void>,
  unwritten?: string,
): Promise<void> {
  const { outcomes, reasons, inFlight, difference, produced } = report.audit
  const parts = Object.entries(outcomes).map(([kind, count]) => `${renderCount(count ?? 0)} ${kind.toLowerCase()}`)
  if (inFlight > 0) parts.push(`${renderCount(inFlight)} waiting`)
  if (difference > 0) parts.push(`${renderCount(difference)} unaccounted for`)
  // Without seeds of its own a run works off whatever lies there: its ledger is that of the whole log.
  const whose = report.crawlId === undefined ? ' in the log' : report.goesOn ? ' in all runs of the crawl' : ''
  await write(`${counted(produced, 'URL')}${whose}: ${parts.join(', ') || 'none'}`)
  const why = Object.entries(reasons).map(([reason, count]) => `${reason} ${renderCount(count ?? 0)}`)
  if (why.length > 0) await write(`not fetched: ${why.join(', ')}`)
  const letters = Object.entries(report.deadLetters).sort(([, one], [, other]) => other - one)
  if (letters.length > 0) {
    const count = letters.reduce((sum, [, each]) => sum + each, 0)
    await write(
      `dead letters of pages: ${renderCount(count)} (${letters.map(([code, each]) => `${code} ${renderCount(each)}`).join(', ')})`,
    )
  }
  if (report.lostCount > 0) {
    const deleted = report.lostMayBeDeleted ? '; those that had ended may have been deleted by retention' : ''
    await write(
      `${counted(report.lostCount, 'URL')} more that the state store had counted: of these no message is left on the topics${deleted}`,
    )
  }
  if (report.goneCount > 0) {
    await write(`${counted(report.goneCount, 'page')} deleted by retention before extract could read them: their records are missing`)
  }
  await writeEnd(context, report, write)
  tellStop(context, report, unwritten, inFlight > 0)
}

/** What is known where a signal has left out the ledger. */
export async function writeUncounted(
  context: CommandContext,
  report: UncountedRun,
  write: (line: string) => Promise<void>,
  unwritten?: string,
): Promise<void> {
  const { tasks, crawlId } = report
  if (tasks !== null) await write(`${counted(tasks.accepted, 'URL')}: ${renderCount(tasks.final)} done`)
  await writeEnd(context, report, write)
  tellStop(context, report, unwritten, tasks === null || tasks.accepted > tasks.final)
  const ask = crawlId === undefined ? 'millrace audit' : `millrace audit --crawl ${shellWord(crawlId)}`
  context.note(`what became of each URL was not added up; \`${ask}\` does`)
}

const MOST_TOLD = 10

async function writeEnd(
  context: CommandContext,
  report: Omit<RunReport, 'audit' | 'deadLetters' | 'lostCount' | 'lostMayBeDeleted' | 'goneCount'>,
  write: (line: string) => Promise<void>,
): Promise<void> {
  await write(
    `${counted(report.records, 'record')} in ${durationText(report.elapsedMs)}${report.crawlId === undefined ? '' : `, crawl ${report.crawlId}`}`,
  )
  const told = report.waiting.slice(0, MOST_TOLD)
  for (const task of told) await write(`waits until ${new Date(task.dueAt).toISOString()}: ${task.url} (${task.reason})`)
  const more = report.waitingCount - told.length
  if (more > 0) await write(`and ${renderCount(more)} more ${more === 1 ? 'waits' : 'wait'}`)
  if (report.badCount > 0) await write(`${counted(report.badCount, 'bad URL')} skipped`)
  tellBadSeeds(context, report)
}

function tellStop(
  context: CommandContext,
  { crawlId, interrupted }: Pick<RunReport, 'crawlId' | 'interrupted'>,
  unwritten: string | undefined,
  isQueued: boolean,
): void {
  const again = crawlId === undefined ? 'millrace run' : `millrace run --crawl ${shellWord(crawlId)}`
  if (unwritten !== undefined) context.note(`the reader of --out - has left: ${unwritten}`)
  else if (interrupted && isQueued) context.note(`stopped before the crawl had ended; \`${again}\` goes on with what is queued`)
  else if (interrupted) context.note(`stopped when every URL was done; \`${again}\` works the pages that may wait for extraction`)
}
