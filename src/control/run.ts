import { acquireRunLock } from '../embedded/run-lock.ts'
import type { LoadedExtractor } from '../extract/load-extractors.ts'
import type { FetchView } from '../fetch/fetch-view.ts'
import type { FetchWorker } from '../fetch/fetch-worker.ts'
import { StoreGate } from '../fetch/store-gate.ts'
import { unlessAborted } from '../kernel/abort.ts'
import { isStopOf } from '../kernel/errors.ts'
import { uuidV7 } from '../message/ids.ts'
import { followPromotions } from './active-versions.ts'
import { type AuditProgress, type AuditReport, audit, endedFrom } from './audit.ts'
import type { DelayedTask } from './crawl-backlog.ts'
import { CrawlEnd, type UnreadPages } from './crawl-end.ts'
import { cutOff } from './cut-off.ts'
import { evictDeadMembers } from './dead-members.ts'
import { startDelay } from './delay-stage.ts'
import { goesOn } from './ended-crawls.ts'
import { extractorsOf } from './extract-groups.ts'
import { liveGroup, startExtract } from './extract-stage.ts'
import { goneCounted } from './extract-totals.ts'
import { startFetch } from './fetch-stage.ts'
import { startFrontier } from './frontier-stage.ts'
import { type LetterCounts, pageLettersFrom } from './page-letters.ts'
import { type BadSeed, produce, type SeedText } from './produce.ts'
import { RecordOutput, type WriteRecord } from './record-output.ts'
import type { Runtime } from './runtime.ts'
import { measureDependencies } from './stage-gauges.ts'
import { StageGroup, stopStages } from './stage-group.ts'
import { STAGES } from './stage-names.ts'
import { refuseStopped } from './stopped-crawls.ts'
import { prepareTopics } from './topics.ts'
import { mayHaveDeleted } from './urls-retention.ts'
import { whenBack } from './when-back.ts'

export interface RunOptions {
  /** None: what is queued is worked off. */
  readonly seeds: AsyncIterable<SeedText> | Iterable<SeedText> | undefined
  readonly extractors: readonly LoadedExtractor[]
  /** A new crawl where not given. */
  readonly crawlId?: string
  readonly meta?: Readonly<Record<string, string>>
  /**
   * Asked for when all stages work, not before: a run that is refused must not touch what the one before has written. What it answers is given
   * the records of the crawl, of one that goes on also those of before; repeats among the last `REPEATS_AMONG` are left out.
   */
  readonly openOutput?: () => Promise<WriteRecord>
  readonly onOutput?: (text: string) => void
  /** Tasks that are due later than this are left queued. */
  readonly maxWaitMs: number
  readonly keepRunning: boolean
  readonly drainTimeoutMs: number
  readonly version: string
  /** The name of the crawl, before its first URL is produced. */
  readonly onCrawl?: (crawlId: string) => void
  readonly onProgress?: (progress: RunProgress) => void
  /** A signal may leave out the ledger at the end: this is told what is known without it, and the run ends with the signal's reason. */
  readonly onUncounted?: (report: UncountedRun) => Promise<void>
  readonly draining: AbortSignal
  readonly aborting: AbortSignal
}

export interface RunProgress {
  readonly accepted: number
  readonly final: number
  /** Those that were final when this run began; 0 where not given. */
  readonly finalBefore?: number
  /** What is counted; URLs where not given. Of whole topics it is messages: a URL that was put aside is several. */
  readonly unit?: 'message'
  /** Where every URL is done and the crawl has not ended: what it waits for. */
  readonly unread?: UnreadPages
  /** Why it can't be looked at just now whether the crawl has ended. */
  readonly away?: string
  /** What fetch waits for while it lasts; null: nothing. */
  readonly stalledBy: FetchView['stalledBy']
  readonly records: number
  readonly elapsedMs: number
  /** All is done, and it is added up what became of it. */
  readonly counting?: AuditProgress
}

export interface RunReport {
  /** Undefined when what was queued was worked off. */
  readonly crawlId: string | undefined
  readonly audit: AuditReport
  /** What ended since the run began, where what was queued was worked off: the ledger is that of the whole log then, of weeks ago too. */
  readonly endedNow?: EndedTasks
  /** A crawl that was there before goes on: its ledger has the URLs of all its runs. */
  readonly goesOn: boolean
  readonly records: number
  /** Of pages that were worked meanwhile, of other crawls too. */
  readonly deadLetters: LetterCounts
  readonly bad: readonly BadSeed[]
  readonly badCount: number
  readonly produced: number
  /** Left queued, since they are due later than `maxWaitMs`, or wait for what is or for a proxy: some of them, and how many there are. Of whole topics it is messages. */
  readonly waiting: readonly DelayedTask[]
  readonly waitingCount: number
  /** Tasks that the state store had counted as open, and that are on no topic: their messages are lost. Those that have ended are not among them. */
  readonly lostCount: number
  /** Or retention has deleted the messages of some, long after they had ended, and the store has forgotten the end. */
  readonly lostMayBeDeleted: boolean
  /** Pages that retention deleted before extract had read them, as this run has met them; of other crawls too. */
  readonly goneCount: number
  /** A signal ended it before the crawl had ended. */
  readonly interrupted: boolean
  readonly elapsedMs: number
}

/** How tasks ended: by kind, and by reason where that is not FETCHED. */
export type EndedTasks = Pick<AuditReport, 'outcomes' | 'reasons'>

type Lost = Pick<RunReport, 'lostCount' | 'lostMayBeDeleted' | 'goneCount'>
type Counted = Pick<RunReport, 'audit' | 'deadLetters' | 'endedNow'>

/** What is known of a run whose ledger was left out. */
export interface UncountedRun extends Omit<RunReport, keyof Counted | keyof Lost> {
  readonly audit: null
  /** As the state store has counted the tasks of the crawl; null where what was queued was worked off. */
  readonly tasks: { readonly accepted: number; readonly final: number } | null
}

const LOOK_EVERY_MS = 200

/**
 * The main job: every stage in this process, until the crawl has ended. Stages are started from the end of the flow to its beginning
 * and stopped the other way round, so that each finds its successor up.
 */
export function run(runtime: Runtime, options: RunOptions): Promise<RunReport> {
  return runtime.scoped(() => runScoped(runtime, options))
}

async function runScoped(runtime: Runtime, options: RunOptions): Promise<RunReport> {
  const lock = acquireRunLock(runtime.dataDir, 'millrace run')
  runtime.onClose('run lock', () => lock.release())
  const startedMono = runtime.clock.mono()
  await evictDeadMembers(runtime)
  await prepareTopics(runtime, options.extractors)
  if (options.crawlId !== undefined) await refuseStopped(runtime, options.crawlId)
  const crawlId = options.seeds === undefined ? options.crawlId : (options.crawlId ?? uuidV7(runtime.clock))
  // Who goes on with a crawl wants its records, not those that the process before had left to give.
  const isOld = crawlId === undefined || (options.crawlId !== undefined && (await goesOn(runtime, options.crawlId)))
  const from = options.crawlId !== undefined && isOld ? 'earliest' : 'latest'
  const { topics, admin } = runtime
  const ends = await Promise.all([topics.outcomes, topics.deadLetters].map((topic) => admin.endOffsets(topic, 'read_uncommitted')))
  const extractGroups = workingGroups(runtime, options.extractors)
  const goneBefore = await goneCountedBy(runtime, extractGroups)
  const output = await RecordOutput.open(runtime, recordTopics(runtime, options.extractors), crawlId, from)
  const stages = new StageGroup()
  stages.watch(runtime.failed)
  let last: Pick<RunProgress, 'accepted' | 'final' | 'stalledBy'> = { accepted: 0, final: 0, stalledBy: null }
  const unit = crawlId === undefined ? { unit: 'message' as const } : {}
  let finalBefore = isOld ? undefined : 0
  let ended = NOT_ENDED
  let produced = NOTHING_PRODUCED
  // Whatever ends the run ends its halves: else a generator of URLs would be read on, and its crawl be asked for, after the run has failed.
  const over = new AbortController()
  const cut = cutOff(runtime, options)
  const halves = { ...options, draining: AbortSignal.any([options.draining, over.signal]) }
  let seeding = Promise.resolve(NOTHING_PRODUCED)
  try {
    const fetch = await startStages(runtime, stages, options)
    if (crawlId !== undefined) options.onCrawl?.(crawlId)
    output.follow(await options.openOutput?.())
    const look = (state: CrawlProgress): void => {
      const { stalledBy } = fetch.view()
      last = { accepted: state.accepted, final: state.final, stalledBy }
      finalBefore ??= state.final
      options.onProgress?.({
        ...state,
        ...unit,
        finalBefore,
        stalledBy,
        records: output.count,
        elapsedMs: runtime.clock.mono() - startedMono,
      })
    }
    seeding = seed(runtime, halves, crawlId)
    const outcome = await Promise.race([waitForEnd(runtime, halves, crawlId, seeding, look), stages.failed, output.failed])
    produced = await seeding
    ended = outcome
  } finally {
    over.abort()
    await seeding.catch(() => undefined)
    const mode = cut.aborted ? 'abort' : 'drain'
    const stopping = stopStages(stages, { mode, timeoutMs: options.drainTimeoutMs }, cut)
    await stopping.finally(() => output.stop(cut))
  }
  const records = await finished(runtime, output, cut)
  const elapsedMs = runtime.clock.mono() - startedMono
  const goesOnWith = crawlId !== undefined && from === 'earliest'
  const { counted, ...end } = ended
  const report = { crawlId, goesOn: goesOnWith, records, ...produced, ...end, elapsedMs }
  const onProgress = (counting: AuditProgress): void => options.onProgress?.({ ...last, records, elapsedMs, counting })
  const ledger = await countedOr(runtime, options, cut, report, ends, onProgress)
  const lostCount = lostOf(counted, ledger.audit)
  const lostMayBeDeleted = lostCount > 0 && (await whenBack(runtime, cut, () => mayHaveDeleted(runtime, isOld ? undefined : elapsedMs)))
  const goneNow = ledger.audit.extract.reduce((sum, { group, gone }) => sum + (extractGroups.includes(group) ? gone : 0), 0)
  return { ...report, ...ledger, lostCount, lostMayBeDeleted, goneCount: Math.max(0, goneNow - goneBefore) }
}

/** Extract groups that this run has extractors for. */
function workingGroups(runtime: Runtime, extractors: readonly LoadedExtractor[]): readonly string[] {
  const names = [undefined, ...Object.keys(runtime.config['extract.groups'])]
  return names.filter((name) => extractorsOf(runtime, extractors, name).length > 0).map((name) => runtime.groups.extract(name))
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

/**
 * The first signal that comes while it is counted ends the count; where one has ended the crawl, what cuts that short. Brokers that are away
 * are waited for.
 */
async function countedOr(
  runtime: Runtime,
  { onUncounted, draining }: RunOptions,
  cut: AbortSignal,
  report: Omit<RunReport, keyof Counted | keyof Lost>,
  [outcomesFrom = new Map(), lettersFrom = new Map()]: readonly ReadonlyMap<number, bigint>[],
  onProgress: (progress: AuditProgress) => void,
): Promise<Counted> {
  const signal = draining.aborted || onUncounted === undefined ? cut : draining
  const of = report.crawlId === undefined ? {} : { crawlId: report.crawlId }
  try {
    const deadLetters = await whenBack(runtime, signal, () => pageLettersFrom(runtime, lettersFrom, { signal }))
    const counted = { deadLetters, audit: await whenBack(runtime, signal, () => audit(runtime, { ...of, onProgress, signal })) }
    if (report.crawlId !== undefined) return counted
    return { ...counted, endedNow: await whenBack(runtime, signal, () => endedFrom(runtime, outcomesFrom, { signal })) }
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

/** Resolves with the fetch worker, once all of them work. */
async function startStages(runtime: Runtime, stages: StageGroup, options: RunOptions): Promise<Pick<FetchWorker, 'view'>> {
  const { aborting: signal, drainTimeoutMs, onOutput, version } = options
  const versions = await followPromotions(runtime, options.extractors)
  measureDependencies(runtime)
  for (const name of [undefined, ...Object.keys(runtime.config['extract.groups'])]) {
    const group = liveGroup(runtime, name)
    // Without extractors the pages are left unread, for the run that brings some.
    if (group.own(versions.current).length === 0) continue
    await startExtract(runtime, stages, { ...group, versions, drainTimeoutMs, onOutput }, signal)
  }
  await startFrontier(runtime, stages, versions, signal)
  await startDelay(runtime, stages, signal)
  return startFetch(runtime, stages, { version, stages: STAGES, signal })
}

type Produced = Pick<RunReport, 'produced' | 'badCount' | 'bad'>

const NOTHING_PRODUCED: Produced = { produced: 0, badCount: 0, bad: [] }

async function seed(runtime: Runtime, options: RunOptions, crawlId: string | undefined): Promise<Produced> {
  let written = NOTHING_PRODUCED
  if (options.seeds === undefined || crawlId === undefined) return written
  const state = await runtime.state()
  const gate = new StoreGate({ clock: runtime.clock, observer: runtime.observer, signal: options.draining })
  const template = {
    crawlId,
    lane: 'normal' as const,
    maxDepth: runtime.config['crawl.maxDepth'],
    headers: {},
    meta: options.meta ?? {},
    notBefore: null,
    expiresAt: null,
    ifChanged: false,
  }
  try {
    return await produce(runtime, options.seeds, template, {
      signal: options.draining,
      onProgress: (report) => {
        written = report
      },
      // As the stages: a store that is away for a while ends no crawl.
      accept: (taskIds) => gate.run(() => state.accept(crawlId, taskIds)),
    })
  } catch (error) {
    if (options.draining.aborted) return written
    throw error
  }
}

type CrawlProgress = Pick<RunProgress, 'accepted' | 'final' | 'unread' | 'away'>
/** `counted`: as the store had it (`CrawlEnd`). */
type Ended = Pick<RunReport, 'waiting' | 'waitingCount' | 'interrupted'> & { readonly counted: CrawlEnd['counted'] }

const NOT_ENDED: Ended = { waiting: [], waitingCount: 0, interrupted: false, counted: { accepted: 0, dropped: 0 } }

async function waitForEnd(
  runtime: Runtime,
  options: RunOptions,
  crawlId: string | undefined,
  seeding: Promise<unknown>,
  onState: (state: CrawlProgress) => void,
): Promise<Ended> {
  const extractGroups = workingGroups(runtime, options.extractors)
  const { maxWaitMs } = options
  // Of a crawl that this run has named by itself nothing is there before.
  const mayBeQueued = options.crawlId !== undefined
  const end = new CrawlEnd(runtime, { extractGroups, maxWaitMs, mayBeQueued, ...(crawlId === undefined ? {} : { crawlId }) })
  const stop = AbortSignal.any([options.draining, options.aborting])
  let seeded = false
  let failure: unknown
  seeding.then(
    () => {
      seeded = true
    },
    (error: unknown) => {
      failure = error
    },
  )
  while (!stop.aborted) {
    // Its failure is ours.
    if (failure !== undefined) throw failure
    // A look at brokers that are away takes long, and what was stopped must not go on meanwhile.
    const state = await unlessAborted(stop, () => end.check()).catch((error: unknown) => {
      if (!stop.aborted) throw error
      return undefined
    })
    if (state === undefined) break
    if (state.kind === 'running') onState(state)
    else if (seeded && !options.keepRunning) {
      const ended = { ...NOT_ENDED, counted: end.counted }
      return state.kind === 'waiting' ? { ...ended, waiting: state.tasks, waitingCount: state.count } : ended
    }
    await pause(runtime, stop)
  }
  return { ...NOT_ENDED, interrupted: true }
}

function pause(runtime: Runtime, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      disarm()
      stop.removeEventListener('abort', done)
      resolve()
    }
    const disarm = runtime.clock.timer(LOOK_EVERY_MS, done)
    stop.addEventListener('abort', done, { once: true })
  })
}
