import type { FetchWorker } from '../../fetch/fetch-worker.ts'
import type { ServiceGroup } from '../../kernel/service-group.ts'
import { startRetention } from '../crawls/retention.ts'
import { showStage } from '../groups/heartbeat.ts'
import { refuseSplitState } from '../groups/split-state.ts'
import { measureFetch } from '../groups/stage-gauges.ts'
import { listenForCommands } from '../groups/worker-socket.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { startDiskGuard } from './disk-guard.ts'
import { createFetch } from './stages.ts'

/**
 * Fetch with what looks after it. `stages`: those of this process, for commands that ask it. Errors: CONFIG_INVALID, as `refuseSplitState`.
 */
export async function startFetch(
  runtime: Runtime,
  group: ServiceGroup,
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
