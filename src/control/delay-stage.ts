import { showStage } from './heartbeat.ts'
import type { Runtime } from './runtime.ts'
import { measureDelay } from './stage-gauges.ts'
import type { StageGroup } from './stage-group.ts'
import { createDelay } from './stages.ts'

/** Delay with what tells of it. */
export async function startDelay(runtime: Runtime, stages: StageGroup, signal: AbortSignal): Promise<void> {
  const delay = await createDelay(runtime)
  await stages.start('delay', delay, signal)
  measureDelay(runtime, delay)
  await showStage(runtime, 'delay', runtime.groups.delay)
}
