import type { ServiceGroup } from '../../kernel/service-group.ts'
import { showStage } from '../groups/heartbeat.ts'
import { measureDelay } from '../groups/stage-gauges.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createDelay } from './stages.ts'

/** Delay with what tells of it. */
export async function startDelay(runtime: Runtime, stages: ServiceGroup, signal: AbortSignal): Promise<void> {
  const delay = await createDelay(runtime)
  await stages.start('delay', delay, signal)
  measureDelay(runtime, delay)
  await showStage(runtime, 'delay', runtime.groups.delay)
}
