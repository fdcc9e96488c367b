import { errorText } from '../../kernel/errors.ts'
import { ownProcess } from '../../machine/process-identity.ts'
import { uuidV7 } from '../../message/ids.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { measureGroup } from './stage-gauges.ts'

const EVERY_MS = 5_000
/** A worker that was not heard of for three beats is gone. */
const TTL_MS = 3 * EVERY_MS

/** Says in the state store that this worker lives, until the returned function is called. A beat that fails is told and tried again. */
export async function startHeartbeat(
  runtime: Runtime,
  worker: { readonly stage: string; readonly groupId: string; readonly extractors: Readonly<Record<string, number>> },
): Promise<() => Promise<void>> {
  const { clock, observer } = runtime
  const state = await runtime.state()
  const { workerId, host, pid, pidStartedAt } = ownProcess(uuidV7(clock))
  const heartbeat = { workerId, host, pid, pidStartedAt, startedAt: clock.now(), ...worker }
  let disarm = (): void => undefined
  let beating: Promise<void> = Promise.resolve()
  const told = async (step: Promise<void>): Promise<void> => {
    try {
      await step
    } catch (error) {
      observer.emit('HeartbeatFailed', { stage: worker.stage, error: errorText(error) })
    }
  }
  const beat = (): Promise<void> => told(state.heartbeat({ ...heartbeat, waitsFor: runtime.waitsFor() }, TTL_MS))
  const schedule = (): void => {
    disarm = clock.timer(
      EVERY_MS,
      () => {
        beating = beat()
        schedule()
      },
      { unref: true },
    )
  }
  await beat()
  schedule()
  return async () => {
    disarm()
    await beating
    // What is left of it ends by itself: no reason to call work failed that is done.
    await told(state.removeWorker(workerId))
  }
}

/** Until the runtime is closed: that this stage lives, and how far its group is behind. */
export async function showStage(runtime: Runtime, stage: string, groupId: string): Promise<void> {
  measureGroup(runtime, stage, groupId)
  runtime.onClose(`heartbeat of ${stage}`, await startHeartbeat(runtime, { stage, groupId, extractors: {} }))
}
