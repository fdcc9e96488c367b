import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { FetchWorker } from '../../fetch/fetch-worker.ts'
import { StoreGate } from '../../fetch/store-gate.ts'
import { unlessAborted } from '../../kernel/abort.ts'
import { ServiceGroup, stopServices } from '../../kernel/service-group.ts'
import { CrawlEnd } from '../crawls/crawl-end.ts'
import { produce } from '../crawls/produce.ts'
import { followPromotions } from '../extractors/active-versions.ts'
import { extractGroupNames, extractorsOf } from '../groups/extract-groups.ts'
import { measureDependencies } from '../groups/stage-gauges.ts'
import type { RecordOutput } from '../records/record-output.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { startDelay } from '../stages/delay-stage.ts'
import { liveGroup, startExtract } from '../stages/extract-stage.ts'
import { startFetch } from '../stages/fetch-stage.ts'
import { startFrontier } from '../stages/frontier-stage.ts'
import { STAGES } from '../stages/stage-names.ts'
import type { RunOptions, RunProgress, RunReport } from './run-report.ts'

const LOOK_EVERY_MS = 200

export interface RunCrawl {
  /** Undefined: what is queued is worked off, of whatever crawl. */
  readonly crawlId: string | undefined
  /** Tasks of it may have ended before this run. */
  readonly isOld: boolean
  /** It is named, and was there before: who goes on with a crawl wants its records, not those that the process before had left to give. */
  readonly goesOn: boolean
}

type LastLook = Pick<RunProgress, 'accepted' | 'final' | 'stalledBy'>

interface RunParts {
  readonly crawl: RunCrawl
  readonly output: RecordOutput
  readonly cut: AbortSignal
  readonly startedMono: number
}

/** All stages at work until the crawl has ended, or is stopped. Resolves when they have stopped, with what was counted last. */
export async function workUntilEnd(
  runtime: Runtime,
  options: RunOptions,
  { crawl: { crawlId, isOld }, output, cut, startedMono }: RunParts,
): Promise<{ readonly produced: Produced; readonly ended: Ended; readonly last: LastLook }> {
  const stages = new ServiceGroup()
  stages.watch(runtime.failed)
  let last: LastLook = { accepted: 0, final: 0, stalledBy: null }
  const unit = crawlId === undefined ? { unit: 'message' as const } : {}
  let finalBefore = isOld ? undefined : 0
  // Whatever ends the run ends its halves: else a generator of URLs would be read on, and its crawl be asked for, after the run has failed.
  const over = new AbortController()
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
    const ended = await Promise.race([waitForEnd(runtime, halves, crawlId, seeding, look), stages.failed, output.failed])
    return { produced: await seeding, ended, last }
  } finally {
    over.abort()
    await seeding.catch(() => undefined)
    const mode = cut.aborted ? 'abort' : 'drain'
    const stopping = stopServices(stages, { mode, timeoutMs: options.drainTimeoutMs }, cut)
    await stopping.finally(() => output.stop(cut))
  }
}

/** Resolves with the fetch worker, once all of them work. */
async function startStages(runtime: Runtime, stages: ServiceGroup, options: RunOptions): Promise<Pick<FetchWorker, 'view'>> {
  const { aborting: signal, drainTimeoutMs, onOutput, version } = options
  const versions = await followPromotions(runtime, options.extractors)
  measureDependencies(runtime)
  for (const name of extractGroupNames(runtime)) {
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

/** Extract groups that this run has extractors for. */
export function workingGroups(runtime: Runtime, extractors: readonly LoadedExtractor[]): readonly string[] {
  const names = extractGroupNames(runtime).filter((name) => extractorsOf(runtime, extractors, name).length > 0)
  return names.map((name) => runtime.groups.extract(name))
}
