import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { brokerFolder } from '../../../src/embedded/broker-folder.ts'
import { SupervisorWatch } from '../../../src/embedded/supervisor-watch.ts'
import { type Clock, systemClock } from '../../../src/kernel/clock.ts'
import { RecordingObserver } from '../../support/embedded.ts'
import { eventually } from '../../support/eventually.ts'

it('a look that fails is told, and the next one follows: nothing ends for it', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-watch-'))
  const folder = brokerFolder(dataDir)
  // Reading it fails by other than its absence.
  mkdirSync(folder.process, { recursive: true })
  const observer = new RecordingObserver()
  const clock: Clock = { ...systemClock, timer: (_ms, callback, options) => systemClock.timer(1, callback, options) }
  const watch = new SupervisorWatch(folder, { clock, observer, owner: 'a test' })
  await eventually(() => observer.events.length > 1, { what: 'a second look' })
  expect(observer.events[0]).toEqual({
    name: 'BrokerLookFailed',
    fields: { reason: expect.stringContaining('EISDIR'), folder: folder.path },
  })
  rmSync(folder.process, { recursive: true })
  await watch.release()
  rmSync(dataDir, { recursive: true })
})
