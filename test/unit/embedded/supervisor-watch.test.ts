import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { brokerFolder, createBrokerFolder } from '../../../src/embedded/broker-folder.ts'
import { SupervisorWatch } from '../../../src/embedded/supervisor-watch.ts'
import { type Clock, systemClock } from '../../../src/kernel/clock.ts'
import { ownIdentity } from '../../../src/machine/process-identity.ts'
import { RecordingObserver } from '../../support/embedded.ts'
import { eventually } from '../../support/eventually.ts'

const clock: Clock = { ...systemClock, timer: (_ms, callback, options) => systemClock.timer(1, callback, options) }

it('a look that fails is told, and the next one follows: nothing ends for it', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-watch-'))
  const folder = brokerFolder(dataDir)
  // Reading it fails by other than its absence.
  mkdirSync(folder.process, { recursive: true })
  const observer = new RecordingObserver()
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

it('a folder that was made anew in its place is told at once, whatever broker runs there by now', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-watch-'))
  const folder = brokerFolder(dataDir)
  createBrokerFolder(folder)
  const observer = new RecordingObserver()
  const watch = new SupervisorWatch(folder, { clock, observer, owner: 'a test' })
  rmSync(folder.path, { recursive: true })
  createBrokerFolder(folder)
  const note = { phase: 'up', clusterId: 'a'.repeat(22), port: 1, supervisor: ownIdentity(), broker: ownIdentity() }
  writeFileSync(folder.process, JSON.stringify(note))
  writeFileSync(folder.failure, '{"reason":"of another broker"}')
  await expect(watch.lost).rejects.toMatchObject({
    code: 'KAFKA_LOST',
    message: `Apache Kafka in ${folder.path} has ended and is not started again: its data folder was moved, removed or replaced`,
  })
  await watch.release()
  expect(observer.names()).toEqual(['BrokerLost'])
  rmSync(dataDir, { recursive: true })
})
