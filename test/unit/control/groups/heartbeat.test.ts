import { expect, it } from 'vitest'
import { startHeartbeat } from '../../../../src/control/groups/heartbeat.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { MillraceError } from '../../../../src/kernel/errors.ts'
import type { WorkerHeartbeat } from '../../../../src/state/state-store.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

it('a heartbeat whose store is away when its work has ended is told, and no reason to call the work failed', async () => {
  const seen = recordingObserver()
  const clock = new ManualClock()
  const away = (): Promise<void> => Promise.reject(new MillraceError('STATE_UNAVAILABLE', 'away'))
  const state = async () => ({ heartbeat: async () => undefined, removeWorker: away })
  const end = await startHeartbeat({ clock, observer: seen.observer, state, waitsFor: () => [] } as unknown as Runtime, {
    stage: 'fetch',
    groupId: 'g',
    extractors: {},
  })
  await end()
  expect(seen.count('HeartbeatFailed')).toBe(1)
  expect(clock.armedCount).toBe(0)
})

it('a heartbeat tells what its process waits for at that moment', async () => {
  const clock = new ManualClock()
  const told: unknown[] = []
  let waitsFor: readonly string[] = []
  const state = async () => ({
    heartbeat: async (worker: WorkerHeartbeat) => told.push(worker.waitsFor),
    removeWorker: async () => undefined,
  })
  const { observer } = recordingObserver()
  const end = await startHeartbeat({ clock, observer, state, waitsFor: () => waitsFor } as unknown as Runtime, {
    stage: 'delay',
    groupId: 'g',
    extractors: {},
  })
  waitsFor = ['registry']
  await clock.advance(5_000)
  await end()
  expect(told).toEqual([[], ['registry']])
})
