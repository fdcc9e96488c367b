import type { FetchWorker } from '../fetch/fetch-worker.ts'
import { startDiskGuard } from './disk-guard.ts'
import { showStage } from './heartbeat.ts'
import { startRetention } from './retention.ts'
import type { Runtime } from './runtime.ts'
import { refuseSplitState } from './split-state.ts'
import { measureFetch } from './stage-gauges.ts'
import type { StageGroup } from './stage-group.ts'
import { createFetch } from './stages.ts'
import { listenForCommands } from './worker-socket.ts'

/**
 * Fetch with what looks after it. `stages`: those of this process, for commands that ask it. Errors: CONFIG_INVALID, as `refuseSplitState`.
 */
export async function startFetch(
  runtime: Runtime,
  group: StageGroup,
  { version, stages, signal }: { readonly version: string; readonly stages: readonly string[]; readonly signal: AbortSignal },
): Promise<FetchWorker> {
  const fetch = await createFetch(runtime, version)
  runtime.onClose('disk guard', await startDiskGuard(runtime, fetch))
  // It joins and reads, and asks no site until it is known that nobody else keeps a pace of its own.
  const mayBeSplit = !runtime.isEmbedded && runtime.config.redis === undefined
  if (mayBeSplit) fetch.holdRequests(true)
  await group.start('fetch', fetch, signal)
  await refuseSplitState(runtime, runtime.groups.fetch)
  if (mayBeSplit) fetch.holdRequests(false)
  runtime.onClose('retention', startRetention(runtime))
  measureFetch(runtime, fetch)
  const { dataDir, clock, observer } = runtime
  runtime.onClose('socket for commands', await listenForCommands({ dataDir, stages, worker: fetch, clock, observer }))
  await showStage(runtime, 'fetch', runtime.groups.fetch)
  return fetch
}
