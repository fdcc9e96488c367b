import { acquireRunLock } from '../../embedded/run-lock.ts'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { isStopOf } from '../../kernel/errors.ts'
import { uuidV7 } from '../../message/ids.ts'
import { type AuditProgress, type AuditReport, audit, endedFrom } from '../crawls/audit.ts'
import type { CrawlEnd } from '../crawls/crawl-end.ts'
import { goesOn } from '../crawls/ended-crawls.ts'
import { refuseStopped } from '../crawls/stopped-crawls.ts'
import { mayHaveDeleted } from '../crawls/urls-retention.ts'
import { pageLettersFrom } from '../dead-letters/page-letters.ts'
import { evictDeadMembers } from '../groups/dead-members.ts'
import { goneCounted } from '../groups/extract-totals.ts'
import { RecordOutput } from '../records/record-output.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { prepareTopics } from '../runtime/topics.ts'
import { cutOff } from './cut-off.ts'
import type { Counted, RunOptions, RunReport, UncountedRun } from './run-report.ts'
import { type RunCrawl, workingGroups, workUntilEnd } from './run-work.ts'
import { whenBack } from './when-back.ts'

/**
 * The main job: every stage in this process, until the crawl has ended. Stages are started from the end of the flow to its beginning
 * and stopped the other way round, so that each finds its successor up.
 */
export function run(runtime: Runtime, options: RunOptions): Promise<RunReport> {
  return runtime.scoped(() => runScoped(runtime, options))
}

async function runScoped(runtime: Runtime, options: RunOptions): Promise<RunReport> {
  const { clock } = runtime
  const lock = acquireRunLock(runtime.dataDir, 'millrace run')
  runtime.onClose('run lock', () => lock.release())
  const startedMono = clock.mono()
  await evictDeadMembers(runtime)
  await prepareTopics(runtime, options.extractors)
  const crawl = await crawlOf(runtime, options)
  const { crawlId } = crawl
  const from = await logEnds(runtime)
  const extractGroups = workingGroups(runtime, options.extractors)
  const goneBefore = await goneCountedBy(runtime, extractGroups)
  const start = crawl.goesOn ? 'earliest' : 'latest'
  const output = await RecordOutput.open(runtime, recordTopics(runtime, options.extractors), crawlId, start)
  const cut = cutOff(runtime, options)
  const { produced, ended, last } = await workUntilEnd(runtime, options, { crawl, output, cut, startedMono })
  const records = await finished(runtime, output, cut)
  const elapsedMs = clock.mono() - startedMono
  const { counted, ...end } = ended
  const report = { crawlId, goesOn: crawl.goesOn, records, ...produced, ...end, elapsedMs }
  const onProgress = (counting: AuditProgress): void => options.onProgress?.({ ...last, records, elapsedMs, counting })
  const ledger = await countedOr(runtime, options, { cut, report, from, onProgress })
  const lostCount = lostOf(counted, ledger.audit)
  const lostMayBeDeleted =
    lostCount > 0 && (await whenBack(runtime, cut, () => mayHaveDeleted(runtime, crawl.isOld ? undefined : elapsedMs)))
  const goneNow = ledger.audit.extract.reduce((sum, { group, gone }) => sum + (extractGroups.includes(group) ? gone : 0), 0)
  return { ...report, ...ledger, lostCount, lostMayBeDeleted, goneCount: Math.max(0, goneNow - goneBefore) }
}

/** Errors: USAGE where it is stopped. */
async function crawlOf(runtime: Runtime, { seeds, crawlId: named }: RunOptions): Promise<RunCrawl> {
  if (named !== undefined) await refuseStopped(runtime, named)
  const wasThere = named !== undefined && (await goesOn(runtime, named))
  const crawlId = seeds === undefined ? named : (named ?? uuidV7(runtime.clock))
  return { crawlId, isOld: crawlId === undefined || wasThere, goesOn: wasThere }
}

interface LogEnds {
  readonly outcomes: ReadonlyMap<number, bigint>
  readonly deadLetters: ReadonlyMap<number, bigint>
}

async function logEnds({ admin, topics }: Runtime): Promise<LogEnds> {
  const [outcomes, deadLetters] = await Promise.all([
    admin.endOffsets(topics.outcomes, 'read_uncommitted'),
    admin.endOffsets(topics.deadLetters, 'read_uncommitted'),
  ])
  return { outcomes, deadLetters }
}

async function goneCountedBy({ admin, topics }: Runtime, groups: readonly string[]): Promise<number> {
  const lags = await Promise.all(groups.map((group) => admin.lag(group, [topics.html])))
  return goneCounted(lags.flat())
}

/** Of the tasks that were dropped the topics know most, whose end the store had forgotten: lost are those that neither of them knows. */
function lostOf({ accepted, dropped }: CrawlEnd['counted'], { produced, beforeHorizon }: AuditReport): number {
  return Math.min(dropped, Math.max(0, accepted - produced - beforeHorizon))
}

/** Records handed over, to the last where it is not cut short. */
async function finished(runtime: Runtime, output: RecordOutput, cut: AbortSignal): Promise<number> {
  try {
    return await whenBack(runtime, cut, () => output.finish(cut))
  } catch (error) {
    if (!isStopOf(cut, error)) throw error
    return output.count
  }
}

interface CountRequest {
  readonly cut: AbortSignal
  readonly report: Omit<UncountedRun, 'audit' | 'tasks'>
  /** Ends of the logs when the run began. */
  readonly from: LogEnds
  readonly onProgress: (progress: AuditProgress) => void
}

/**
 * The first signal that comes while it is counted ends the count; where one has ended the crawl, what cuts that short. Brokers that are
 * away are waited for.
 */
async function countedOr(
  runtime: Runtime,
  { onUncounted, draining }: RunOptions,
  { cut, report, from, onProgress }: CountRequest,
): Promise<Counted> {
  const signal = draining.aborted || onUncounted === undefined ? cut : draining
  const of = report.crawlId === undefined ? {} : { crawlId: report.crawlId }
  try {
    const deadLetters = await whenBack(runtime, signal, () => pageLettersFrom(runtime, from.deadLetters, { signal }))
    const counted = { deadLetters, audit: await whenBack(runtime, signal, () => audit(runtime, { ...of, onProgress, signal })) }
    if (report.crawlId !== undefined) return counted
    return { ...counted, endedNow: await whenBack(runtime, signal, () => endedFrom(runtime, from.outcomes, { signal })) }
  } catch (error) {
    if (!signal.aborted || onUncounted === undefined) throw error
    const tasks = report.crawlId === undefined ? null : await (await runtime.state()).crawlCounts(report.crawlId)
    await onUncounted({ ...report, audit: null, tasks })
    throw error
  }
}

function recordTopics(runtime: Runtime, extractors: readonly LoadedExtractor[]): string[] {
  return [...new Set([runtime.topics.records, ...extractors.flatMap(({ topic }) => (topic === undefined ? [] : [topic]))])]
}
