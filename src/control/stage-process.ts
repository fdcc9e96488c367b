import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { MillraceError } from '../kernel/errors.ts'
import { evictDeadMembers } from './dead-members.ts'
import { startDiskGuard } from './disk-guard.ts'
import { announceExtractors, createExtract, extractorsOf, linkNarrowing } from './extraction.ts'
import { startHeartbeat } from './heartbeat.ts'
import { refuseOtherVersion } from './replay-in-place.ts'
import { prepareTopics } from './run.ts'
import type { Runtime } from './runtime.ts'
import { measureDelay, measureFetch, measureGroup } from './stage-gauges.ts'
import { StageGroup, stopStages } from './stage-group.ts'
import { createDelay, createFetch, createFrontier } from './stages.ts'
import { startUrlsRetention } from './urls-retention.ts'
import { listenForCommands } from './worker-socket.ts'

export type StageName = 'fetch' | 'extract' | 'frontier' | 'delay'

export interface StageProcessOptions {
  readonly stage: StageName
  /** Extract group by its name in `extract.groups`. */
  readonly group?: string
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
  stages.watch(runtime.controlFailed)
  try {
    const { groupId, own } = await startStage(runtime, stages, options)
    await refuseSplitState(runtime, groupId)
    const extractors = Object.fromEntries(own.map(({ name, version }) => [name, version]))
    measureGroup(runtime, options.stage, groupId)
    runtime.onClose('heartbeat', await startHeartbeat(runtime, { stage: options.stage, groupId, extractors }))
    options.onRunning?.()
    await Promise.race([stopped(options.draining), stages.failed])
  } finally {
    const mode = options.aborting.aborted ? 'abort' : 'drain'
    await stopStages(stages, { mode, timeoutMs: options.drainTimeoutMs }, options.aborting)
  }
}

async function startStage(
  runtime: Runtime,
  stages: StageGroup,
  { stage, group, extractors, version, onOutput, aborting }: StageProcessOptions,
): Promise<{ groupId: string; own: readonly LoadedExtractor[] }> {
  const { groups } = runtime
  switch (stage) {
    case 'fetch': {
      const fetch = await createFetch(runtime, version)
      runtime.onClose('disk guard', await startDiskGuard(runtime, fetch))
      await stages.start('fetch', fetch, aborting)
      runtime.onClose('retention of urls', startUrlsRetention(runtime))
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
      const own = extractorsOf(runtime, extractors, group)
      await announceExtractors(runtime, own)
      const groupId = groups.extract(group)
      await refuseOtherVersion(runtime, groupId, own)
      const { host, worker } = await createExtract(runtime, own, { groupId, ...(onOutput === undefined ? {} : { onOutput }) })
      await stages.start('extraction', host, aborting)
      await stages.start('extract', worker, aborting)
      return { groupId, own }
    }
  }
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

function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
