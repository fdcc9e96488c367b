import { type AuditProgress, type AuditReport, audit } from '../control/crawls/audit.ts'
import { status } from '../control/inspect/status.ts'
import type { StatusReport } from '../control/inspect/status-report.ts'
import { abortedBy, unlessAborted } from '../kernel/abort.ts'
import { placeText } from '../kernel/brand.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import { countText } from '../kernel/count-text.ts'
import { durationText } from '../kernel/duration-text.ts'
import { isAway } from '../kernel/errors.ts'
import type { CommandContext } from './context.ts'
import { createProgress } from './progress.ts'
import { progressOptions } from './progress-options.ts'
import { type Column, counted, renderCount, renderTable, toJson } from './render.ts'
import { singleLine } from './terminal-text.ts'
import { withRuntime } from './with-runtime.ts'

const NOT_KNOWN = { pages: null, records: null, none: null, deadLetters: null } as const
const WATCH_EVERY_MS = 2000

export async function showStatus(context: CommandContext, watch: boolean): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace status', async (runtime) => {
    let before: StatusReport | undefined
    const failed = abortedBy(runtime.failed)
    const look = (): Promise<StatusReport> => unlessAborted(failed, () => status(runtime))
    const onAway = (reason: string): void => context.note(`nothing can be seen just now, and it is looked again: ${reason}`)
    const reports = looks(look, { signal: context.draining, clock: systemClock, ...(watch ? { onAway } : {}) })
    for await (const report of reports) {
      const rates = before === undefined ? undefined : groupRates(before, report)
      if (context.globals.json) await context.out(toJson(rates === undefined ? report : { ...report, rates: Object.fromEntries(rates) }))
      else await writeStatus(context, report, { watch, rates })
      before = report
      if (!watch) return
    }
  })
}

/**
 * What is seen, every two seconds. With `onAway` what it stands on may be away, which is told each time. Ends with the signal's reason, in
 * the middle of a look too, or with an error of the look.
 */
export async function* looks<T>(
  look: () => Promise<T>,
  {
    signal,
    clock,
    onAway,
  }: { readonly signal: AbortSignal; readonly clock: Pick<Clock, 'sleep'>; readonly onAway?: (reason: string) => void },
): AsyncGenerator<T, never> {
  for (;;) {
    try {
      yield await unlessAborted(signal, look)
    } catch (error) {
      if (onAway === undefined || !isAway(error)) throw error
      onAway(error.message)
    }
    await clock.sleep(WATCH_EVERY_MS, signal)
  }
}

/** Messages finished a second, by group; none where offsets were set back, nor of a first commit: where that began is not known. */
export function groupRates(before: StatusReport, now: StatusReport): ReadonlyMap<string, number> {
  const seconds = (now.at - before.at) / 1000
  const known = new Map(before.groups.map(({ group, topic, partition, committed }) => [`${group} ${topic} ${partition}`, committed]))
  const rates = new Map<string, number>()
  if (seconds <= 0) return rates
  for (const { group, topic, partition, committed } of now.groups) {
    const was = known.get(`${group} ${topic} ${partition}`)
    const moved = committed === null || was === null || was === undefined ? 0 : Math.max(0, Number(BigInt(committed) - BigInt(was)))
    rates.set(group, (rates.get(group) ?? 0) + moved / seconds)
  }
  return rates
}

async function writeStatus(
  context: CommandContext,
  report: StatusReport,
  { watch, rates }: { watch: boolean; rates: ReadonlyMap<string, number> | undefined },
): Promise<void> {
  if (report.summary.length === 0)
    context.note('no topics yet: `millrace topics apply`, or the first `run` or `produce` on our own broker, makes them')
  if (watch && process.stdout.isTTY) process.stdout.write('\x1b[2J\x1b[H')
  const groups = report.summary.map(({ group, state, members, lag, oldestSeconds }) => [
    group,
    // Kafka's word for a group that nobody has joined yet would only frighten.
    state === 'Dead' ? 'not started' : state,
    String(members),
    renderCount(lag),
    oldestSeconds === null ? '' : durationText(oldestSeconds * 1000),
    ...(rates === undefined ? [] : [(rates.get(group) ?? 0).toFixed(1)]),
  ])
  const perSecond: readonly Column[] = rates === undefined ? [] : [{ title: 'PER SECOND', align: 'right' }]
  await context.out(
    renderTable(
      [
        { title: 'GROUP', flexible: true },
        { title: 'STATE' },
        { title: 'MEMBERS', align: 'right' },
        { title: 'LAG', align: 'right' },
        { title: 'OLDEST', align: 'right' },
        ...perSecond,
      ],
      groups,
    ),
  )
  for (const { group, oldestUrl } of report.summary)
    if (oldestUrl !== null) await context.out(singleLine(`oldest of ${group}: ${oldestUrl}`))
  await writeFetch(context, report)
  if (report.workers.length > 0) {
    const workers = report.workers.map(({ stage, host, pid, startedAt, extractors }) => [
      stage,
      `${host} ${pid}`,
      durationText(systemClock.now() - startedAt),
      Object.entries(extractors)
        .map(([name, version]) => `${name}:${version}`)
        .join(' '),
    ])
    await context.out('')
    await context.out(
      renderTable(
        [
          { title: 'WORKER' },
          { title: 'PROCESS', flexible: true },
          { title: 'UP', align: 'right' },
          { title: 'EXTRACTORS', flexible: true },
        ],
        workers,
      ),
    )
  }
  await writeExtractors(context, report.extractors)
  await writeGone(context, report.summary)
}

async function writeFetch(context: CommandContext, { fetch, stalls }: StatusReport): Promise<void> {
  if (fetch !== null) {
    const waits = Object.entries(fetch.siteWaits).map(([reason, count]) => `${reason} ${renderCount(count)}`)
    await context.out(
      `\nfetch here: ${renderCount(fetch.inFlight)} under way, ${renderCount(fetch.runnable)} could start, ${renderCount(fetch.waiting)} wait, of ${counted(fetch.sites, 'site')}`,
    )
    if (waits.length > 0) await context.out(`sites that wait: ${waits.join(', ')}`)
  }
  if (stalls.length > 0) await context.out('')
  for (const stall of stalls) await context.out(singleLine(`! ${stall}`))
}

async function writeExtractors(context: Output, extractors: StatusReport['extractors']): Promise<void> {
  if (extractors.length === 0) return
  const rows = extractors.map(({ extractor, pages, records, none, deadLetters }) => [
    extractor,
    ...[pages, records, none, deadLetters].map((count) => (count === null ? 'unknown' : renderCount(count))),
  ])
  await context.out('')
  await context.out(
    renderTable(
      [
        { title: 'EXTRACTOR', flexible: true },
        { title: 'PAGES', align: 'right' },
        { title: 'RECORDS', align: 'right' },
        { title: 'WITHOUT', align: 'right' },
        { title: 'DEAD LETTERS', align: 'right' },
      ],
      rows,
    ),
  )
}

async function writeGone(context: Output, groups: readonly { readonly group: string; readonly gone?: number }[]): Promise<void> {
  for (const { group, gone = 0 } of groups)
    if (gone > 0) await context.out(`pages that retention deleted before ${group} had read them: ${renderCount(gone)}`)
}

type Output = Pick<CommandContext, 'out'>

/** A difference is a defect, or a disk that lost data: the command fails, so that a script notices. */
export async function showAudit(context: CommandContext, crawlId: string | undefined): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace audit', async (runtime) => {
    const progress = createProgress(progressOptions(context))
    const onProgress = (counting: AuditProgress): void => {
      const { read, of } = counting
      progress.update({
        text: `${renderCount(read)} of about ${countText(of, 'message')} looked at`,
        ratio: read / of,
        fields: { counting },
      })
    }
    const options = { ...(crawlId === undefined ? {} : { crawlId }), signal: context.draining, onProgress }
    const report = await audit(runtime, options).finally(() => progress.finish())
    if (context.globals.json) await context.out(toJson(report))
    else await writeAudit(context, report, crawlId)
    // As many zeros as of a crawl whose tasks retention has deleted; what is known of neither is told to people alone.
    if (crawlId !== undefined && report.produced === 0)
      context.note(`no task of a crawl ${JSON.stringify(crawlId)} is known; \`millrace audit\` lists the crawls there are`)
    if (report.difference !== 0) context.setExitCode(1)
  })
}

export async function writeAudit(context: Output, report: AuditReport, crawlId: string | undefined): Promise<void> {
  const lines: [string, number][] = [['produced', report.produced]]
  for (const [kind, count] of Object.entries(report.outcomes)) lines.push([`- ${kind}`, count ?? 0])
  lines.push(['- in flight', report.inFlight], ['= difference', report.difference])
  await context.out(
    renderTable(
      [{ title: 'TASKS' }, { title: 'COUNT', align: 'right' }],
      lines.map(([name, count]) => [name, renderCount(count)]),
    ),
  )
  const reasons = Object.entries(report.reasons).map(([reason, count]) => `${reason} ${renderCount(count ?? 0)}`)
  if (reasons.length > 0) await context.out(`\n${singleLine(`reasons: ${reasons.join(', ')}`)}`)
  if (report.crawls.length > 1) await writeCrawls(context, report.crawls)
  if (report.retries > 0) await context.out(`attempts that were tried again: ${renderCount(report.retries)}`)
  if (report.repeats > 0) await context.out(`repeated outcomes: ${renderCount(report.repeats)}`)
  if (report.beforeHorizon > 0) await context.out(`tasks or outcomes that retention has deleted: ${renderCount(report.beforeHorizon)}`)
  if (report.malformed !== null && report.malformed > 0)
    await context.out(`messages that are no tasks (dead letters): ${renderCount(report.malformed)}`)
  const extractors = report.extract.flatMap((group) =>
    group.extractors.map(({ extractor, totals }) => ({ extractor, ...(totals ?? NOT_KNOWN) })),
  )
  await writeExtractors(context, extractors)
  for (const { group, noMatch } of report.extract) {
    if (noMatch === 0) continue
    await context.out(`pages that no extractor of ${group} matched: ${noMatch === null ? 'unknown' : renderCount(noMatch)}`)
  }
  await writeGone(context, report.extract)
  // Their totals lie with the offsets of html, where the pages of all crawls stand one behind the other.
  if (crawlId !== undefined && (extractors.length > 0 || report.extract.some(({ noMatch }) => noMatch !== 0)))
    await context.out(`extractors are counted on the pages of all crawls, not of ${crawlId} alone`)
  for (const task of report.missing) await context.out(singleLine(`missing: ${task.url} (task ${task.taskId}, ${placeText(task)})`))
  if (report.difference > report.missing.length) await context.out(`and ${renderCount(report.difference - report.missing.length)} more`)
}

async function writeCrawls(context: Output, crawls: AuditReport['crawls']): Promise<void> {
  const columns = ['PRODUCED', 'ENDED', 'IN FLIGHT', 'DIFFERENCE'].map((title): Column => ({ title, align: 'right' }))
  const rows = crawls.map(({ crawlId, produced, ended, inFlight, difference }) => [
    crawlId ?? '(none)',
    ...[produced, ended, inFlight, difference].map((count) => renderCount(count)),
  ])
  await context.out(`\n${renderTable([{ title: 'CRAWL', flexible: true }, ...columns], rows)}\n`)
}
