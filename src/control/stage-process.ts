import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { MillraceError } from '../kernel/errors.ts'
import { fixedVersions, followPromotions } from './active-versions.ts'
import { evictDeadMembers } from './dead-members.ts'
import { extractorsOf } from './extract-groups.ts'
import { ExtractStage } from './extract-stage.ts'
import { startFetch } from './fetch-stage.ts'
import { startFrontier } from './frontier-stage.ts'
import { startHeartbeat } from './heartbeat.ts'
import type { Runtime } from './runtime.ts'
import { createRecordsTopic } from './shadow-replay.ts'
import { refuseSplitState } from './split-state.ts'
import { measureDelay, measureDependencies, measureGroup } from './stage-gauges.ts'
import { StageGroup, stopStages } from './stage-group.ts'
import { createDelay } from './stages.ts'
import { prepareTopics } from './topics.ts'

export type StageName = 'fetch' | 'extract' | 'frontier' | 'delay'

export interface StageProcessOptions {
  readonly stage: StageName
  /** Extract group by its name in `extract.groups`. */
  readonly group?: string
  /** One extractor beside the live ones: a group and a topic of its own. */
  readonly candidate?: boolean
  readonly extractors: readonly LoadedExtractor[]
  readonly drainTimeoutMs: number
  readonly version: string
  readonly onOutput?: (text: string) => void
  readonly onRunning?: () => void
  readonly draining: AbortSignal
  readonly aborting: AbortSignal
}

/** One stage as a process, until a signal ends it. Errors: what ended the stage by itself. */
export async function runStage(runtime: Runtime, options: StageProcessOptions): Promise<void> {
  await evictDeadMembers(runtime)
  await prepareTopics(runtime, options.extractors)
  const stages = new StageGroup()
  stages.watch(runtime.failed)
  let endHeartbeat = async (): Promise<void> => undefined
  try {
    const groupId = await startStage(runtime, stages, options)
    // Fetch has asked before its first request.
    if (options.stage !== 'fetch') await refuseSplitState(runtime, groupId)
    measureGroup(runtime, options.stage, groupId)
    measureDependencies(runtime)
    // The extract stage tells its versions itself.
    if (options.stage !== 'extract') endHeartbeat = await startHeartbeat(runtime, { stage: options.stage, groupId, extractors: {} })
    options.onRunning?.()
    await Promise.race([stopped(options.draining), stages.failed])
  } finally {
    const mode = options.aborting.aborted ? 'abort' : 'drain'
    await stopStages(stages, { mode, timeoutMs: options.drainTimeoutMs }, options.aborting)
    await endHeartbeat()
  }
}

/** Id of its group. */
async function startStage(runtime: Runtime, stages: StageGroup, options: StageProcessOptions): Promise<string> {
  const { stage, group, candidate, extractors, version, aborting } = options
  const { groups } = runtime
  switch (stage) {
    case 'fetch': {
      await startFetch(runtime, stages, { version, stages: ['fetch'], signal: aborting })
      return groups.fetch
    }
    case 'delay': {
      const delay = await createDelay(runtime)
      await stages.start('delay', delay, aborting)
      measureDelay(runtime, delay)
      return groups.delay
    }
    case 'frontier': {
      const versions = await followPromotions(runtime, extractors)
      await startFrontier(runtime, stages, versions, aborting)
      return groups.frontier
    }
    case 'extract': {
      const versions =
        candidate === true ? fixedVersions(await candidates(runtime, extractors)) : await followPromotions(runtime, extractors)
      const groupId = groups.extract(candidate === true ? candidateName(extractors) : group)
      const own = (working: readonly LoadedExtractor[]): readonly LoadedExtractor[] =>
        candidate === true ? working : extractorsOf(runtime, working, group)
      const { drainTimeoutMs, onOutput } = options
      const output = onOutput === undefined ? {} : { onOutput }
      const purpose = candidate === true ? 'tried' : 'live'
      await stages.start('extract', new ExtractStage(runtime, { versions, own, groupId, purpose, drainTimeoutMs, ...output }), aborting)
      return groupId
    }
  }
}

/** A version that is looked at before it is promoted: its records go to a topic of its own, all else is as in the live group. */
async function candidates(runtime: Runtime, extractors: readonly LoadedExtractor[]): Promise<readonly LoadedExtractor[]> {
  const topic = `${runtime.topics.records}.${candidateName(extractors)}`
  await createRecordsTopic(runtime, topic)
  return extractors.map((extractor) => ({ ...extractor, topic }))
}

function candidateName(extractors: readonly LoadedExtractor[]): string {
  const [extractor, other] = extractors
  if (extractor === undefined || other !== undefined)
    throw new MillraceError('USAGE', `--candidate: give one extractor with --extractor, not ${extractors.length}`)
  return `${extractor.name}-v${extractor.version}`
}

function stopped(signal: AbortSignal): Promise<'stopped'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('stopped')
    else signal.addEventListener('abort', () => resolve('stopped'), { once: true })
  })
}
