import { expect, it } from 'vitest'
import { startHeartbeat } from '../../../src/control/heartbeat.ts'
import type { Runtime } from '../../../src/control/runtime.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('a heartbeat whose store is away when its work has ended is told, and no reason to call the work failed', async () => {
  const seen = recordingObserver()
  const clock = new ManualClock()
  const away = (): Promise<void> => Promise.reject(new MillraceError('STATE_UNAVAILABLE', 'away'))
  const state = async () => ({ heartbeat: async () => undefined, removeWorker: away })
  const end = await startHeartbeat({ clock, observer: seen.observer, state } as unknown as Runtime, {
    stage: 'fetch',
    groupId: 'g',
    extractors: {},
  })
  await end()
  expect(seen.count('HeartbeatFailed')).toBe(1)
  expect(clock.armedCount).toBe(0)
})
