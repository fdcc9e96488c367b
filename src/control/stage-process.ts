import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { MillraceError } from '../kernel/errors.ts'
import { evictDeadMembers } from './dead-members.ts'
import { startDiskGuard } from './disk-guard.ts'
import { announceExtractors, createExtract, extractorsOf, linkNarrowing } from './extraction.ts'
import { startHeartbeat } from './heartbeat.ts'
import { refuseOtherVersion } from './replay-in-place.ts'
import { startRetention } from './retention.ts'
import { prepareTopics } from './run.ts'
import type { Runtime } from './runtime.ts'
import { createRecordsTopic } from './shadow-replay.ts'
import { measureDelay, measureFetch, measureGroup } from './stage-gauges.ts'
import { StageGroup, stopStages } from './stage-group.ts'
import { createDelay, createFetch, createFrontier } from './stages.ts'
import { activeExtractors, promotionOf } from './versions.ts'
import { listenForCommands } from './worker-socket.ts'

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
  // A promotion ends the stage as a signal does, drained, and it begins again with the other version.
  let isFirst = true
  while ((await runOnce(runtime, options, isFirst)) === 'promoted') isFirst = false
}

async function runOnce(runtime: Runtime, given: StageProcessOptions, isFirst: boolean): Promise<'stopped' | 'promoted'> {
  const options = { ...given, extractors: await activeVersionsOf(runtime, given) }
  const stages = new StageGroup()
  stages.watch(runtime.failed)
  let endHeartbeat = async (): Promise<void> => undefined
  const promotion = promotionOf(await runtime.control(), given.candidate === true ? [] : given.extractors, options.extractors)
  try {
    const { groupId, own } = await startStage(runtime, stages, options)
    await refuseSplitState(runtime, groupId)
    const extractors = Object.fromEntries(own.map(({ name, version }) => [name, version]))
    if (isFirst) measureGroup(runtime, options.stage, groupId)
    endHeartbeat = await startHeartbeat(runtime, { stage: options.stage, groupId, extractors })
    options.onRunning?.()
    const promoted = promotion.changed.then(() => 'promoted' as const)
    return await Promise.race([stopped(options.draining), stages.failed, promoted])
  } finally {
    promotion.end()
    const mode = options.aborting.aborted ? 'abort' : 'drain'
    await stopStages(stages, { mode, timeoutMs: options.drainTimeoutMs }, options.aborting)
    await endHeartbeat()
  }
}

function activeVersionsOf(runtime: Runtime, { extractors, candidate }: StageProcessOptions): Promise<readonly LoadedExtractor[]> {
  return candidate === true ? Promise.resolve(extractors) : activeExtractors(runtime, extractors)
}

async function startStage(
  runtime: Runtime,
  stages: StageGroup,
  { stage, group, candidate, extractors, version, onOutput, aborting }: StageProcessOptions,
): Promise<{ groupId: string; own: readonly LoadedExtractor[] }> {
  const { groups } = runtime
  switch (stage) {
    case 'fetch': {
      const fetch = await createFetch(runtime, version)
      runtime.onClose('disk guard', await startDiskGuard(runtime, fetch))
      await stages.start('fetch', fetch, aborting)
      runtime.onClose('retention', startRetention(runtime))
      measureFetch(runtime, fetch)
      const socket = { dataDir: runtime.dataDir, stages: ['fetch'], worker: fetch, clock: runtime.clock, observer: runtime.observer }
      runtime.onClose('socket for commands', await listenForCommands(socket))
      return { groupId: groups.fetch, own: [] }
    }
    case 'delay': {
      const delay = await createDelay(runtime)
      await stages.start('delay', delay, aborting)
      measureDelay(runtime, delay)
      return { groupId: groups.delay, own: [] }
    }
    case 'frontier':
      await stages.start('frontier', await createFrontier(runtime, linkNarrowing(extractors)), aborting)
      return { groupId: groups.frontier, own: [] }
    case 'extract': {
      const own = candidate === true ? await candidates(runtime, extractors) : extractorsOf(runtime, extractors, group)
      await announceExtractors(runtime, own)
      const groupId = groups.extract(candidate === true ? candidateName(own) : group)
      await refuseOtherVersion(runtime, groupId, own)
      const { host, worker } = await createExtract(runtime, own, { groupId, ...(onOutput === undefined ? {} : { onOutput }) })
      await stages.start('extraction', host, aborting)
      await stages.start('extract', worker, aborting)
      return { groupId, own }
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

/** State in the data folder is right for one machine: two hosts of one group would each keep a pace of their own. */
async function refuseSplitState(runtime: Runtime, groupId: string): Promise<void> {
  if (runtime.config.redis !== undefined || runtime.isEmbedded) return
  const { members } = await runtime.admin.describeGroup(groupId)
  const hosts = [...new Set(members.map(({ host }) => host))]
  if (hosts.length < 2) return
  throw new MillraceError(
    'CONFIG_INVALID',
    `group ${groupId} has members on ${hosts.join(' and ')}, and no redis is set: pace, dedup and limits would be kept twice. Set redis on all of them`,
  )
}

function stopped(signal: AbortSignal): Promise<'stopped'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('stopped')
    else signal.addEventListener('abort', () => resolve('stopped'), { once: true })
  })
}
