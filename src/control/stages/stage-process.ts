import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { ServiceGroup, stopServices } from '../../kernel/service-group.ts'
import { fixedVersions, followPromotions } from '../extractors/active-versions.ts'
import { evictDeadMembers } from '../groups/dead-members.ts'
import { refuseSplitState } from '../groups/split-state.ts'
import { measureDependencies } from '../groups/stage-gauges.ts'
import { createRecordsTopic } from '../replay/shadow-replay.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { prepareTopics } from '../runtime/topics.ts'
import { startDelay } from './delay-stage.ts'
import { type ExtractStageOptions, liveGroup, startExtract } from './extract-stage.ts'
import { startFetch } from './fetch-stage.ts'
import { startFrontier } from './frontier-stage.ts'

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
  const stages = new ServiceGroup()
  stages.watch(runtime.failed)
  try {
    const groupId = await startStage(runtime, stages, options)
    // Fetch has asked before its first request.
    if (options.stage !== 'fetch') await refuseSplitState(runtime, groupId)
    measureDependencies(runtime)
    options.onRunning?.()
    await Promise.race([stopped(options.draining), stages.failed])
  } finally {
    const mode = options.aborting.aborted ? 'abort' : 'drain'
    await stopServices(stages, { mode, timeoutMs: options.drainTimeoutMs }, options.aborting)
  }
}

/** Id of its group. */
async function startStage(runtime: Runtime, stages: ServiceGroup, options: StageProcessOptions): Promise<string> {
  const { stage, extractors, version, aborting } = options
  const { groups } = runtime
  switch (stage) {
    case 'fetch':
      await startFetch(runtime, stages, { version, stages: ['fetch'], signal: aborting })
      return groups.fetch
    case 'delay':
      await startDelay(runtime, stages, aborting)
      return groups.delay
    case 'frontier':
      await startFrontier(runtime, stages, await followPromotions(runtime, extractors), aborting)
      return groups.frontier
    case 'extract': {
      const { drainTimeoutMs, onOutput } = options
      const extract = options.candidate === true ? await candidate(runtime, extractors) : await live(runtime, extractors, options.group)
      await startExtract(runtime, stages, { ...extract, drainTimeoutMs, onOutput }, aborting)
      return extract.groupId
    }
  }
}

type Extract = Pick<ExtractStageOptions, 'versions' | 'own' | 'groupId' | 'isCandidate'>

async function live(runtime: Runtime, extractors: readonly LoadedExtractor[], group: string | undefined): Promise<Extract> {
  return { ...liveGroup(runtime, group), versions: await followPromotions(runtime, extractors) }
}

/** A version that is looked at before it is promoted: its records go to a topic of its own, all else is as in the live group. */
async function candidate(runtime: Runtime, extractors: readonly LoadedExtractor[]): Promise<Extract> {
  const [extractor, other] = extractors
  if (extractor === undefined || other !== undefined)
    throw new MillraceError('USAGE', `--candidate: give one extractor with --extractor, not ${extractors.length}`)
  const name = `${extractor.name}-v${extractor.version}`
  const topic = `${runtime.topics.records}.${name}`
  await createRecordsTopic(runtime, topic)
  return {
    versions: fixedVersions([{ ...extractor, topic }]),
    own: (working) => working,
    groupId: runtime.groups.extract(name),
    isCandidate: true,
  }
}

function stopped(signal: AbortSignal): Promise<'stopped'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('stopped')
    else signal.addEventListener('abort', () => resolve('stopped'), { once: true })
  })
}
