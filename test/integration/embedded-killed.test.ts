import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { brokerFolder, readProcessFile, START_LOCK } from '../../src/embedded/broker-folder.ts'
import { acquireBroker } from '../../src/embedded/embedded-broker.ts'
import { tryLock } from '../../src/embedded/file-lock.ts'
import { brokerMark } from '../../src/embedded/launch-spec.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { folderMark } from '../../src/machine/folder-mark.ts'
import { findProcess, isAlive } from '../../src/machine/process-identity.ts'
import { brokerOptions, RecordingObserver } from '../support/embedded.ts'
import { eventually } from '../support/eventually.ts'

let dataDir: string
let observer: RecordingObserver

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'millrace-embedded-'))
  observer = new RecordingObserver()
})

afterEach(async () => {
  const java = brokerProcess()
  rmSync(dataDir, { recursive: true, force: true })
  await eventually(() => java === undefined || !isAlive(java), { what: 'the broker to end' })
})

function noted() {
  const file = readProcessFile(brokerFolder(dataDir))
  return file === 'broken' ? undefined : file
}

async function killSupervisor() {
  const before = noted()
  if (before === undefined) throw new Error('no broker is noted')
  process.kill(before.supervisor.pid, 'SIGKILL')
  await eventually(() => !isAlive(before.supervisor), { what: 'the supervisor to be gone' })
  return before
}

function brokerProcess() {
  return findProcess(brokerMark(folderMark(brokerFolder(dataDir).path)))
}

describe('kill -9 of the supervisor', () => {
  it('while the broker starts: another one goes on with the same broker', async () => {
    const acquiring = acquireBroker(brokerOptions(dataDir, observer))
    const before = await eventually(() => noted(), { everyMs: 2, what: 'the supervisor to note the broker' })
    expect(before.phase).toBe('starting')
    process.kill(before.supervisor.pid, 'SIGKILL')
    const broker = await acquiring
    const after = noted()
    expect(after?.broker).toEqual(before.broker)
    expect(after?.supervisor.pid).not.toBe(before.supervisor.pid)
    expect(observer.repairs()).toEqual([])
    await broker.release()
    expect(isAlive(before.broker)).toBe(false)
  })

  it('with the broker it had not noted yet: the next command finds it all the same, and begins anew', async () => {
    // Whoever uses it would start another supervisor in a moment; this one only looks when it leaves.
    const first = await acquireBroker({ ...brokerOptions(dataDir, observer), clock: { ...systemClock, timer: () => () => undefined } })
    const before = await killSupervisor()
    rmSync(brokerFolder(dataDir).process)
    expect(brokerProcess()).toEqual(before.broker)
    const second = await acquireBroker(brokerOptions(dataDir, observer))
    expect(second.clusterId).toBe(first.clusterId)
    expect(isAlive(before.broker)).toBe(false)
    expect(observer.repairs().join('\n')).toContain('that no supervisor knows of: it is ended')
    await second.release()
    await first.release()
  })
})

describe('kill -9 of the supervisor of a broker that is used', () => {
  it('alone: a user starts another one, which ends the broker with its last user', async () => {
    const broker = await acquireBroker(brokerOptions(dataDir, observer))
    const before = await killSupervisor()
    const after = await eventually(() => (noted()?.supervisor.pid === before.supervisor.pid ? undefined : noted()), {
      what: 'another supervisor',
    })
    expect(after.broker).toEqual(before.broker)
    await eventually(() => observer.repairs().join('\n').includes('started another'), { what: 'that to be said' })
    await broker.release()
    expect(isAlive(before.broker)).toBe(false)
  })

  it('just before that user leaves: the broker ends all the same', async () => {
    const broker = await acquireBroker(brokerOptions(dataDir, observer))
    const before = await killSupervisor()
    await broker.release()
    expect(isAlive(before.broker)).toBe(false)
  })

  it('with the broker, and again while it comes back: it is up again for those who use it', async () => {
    const broker = await acquireBroker(brokerOptions(dataDir, observer))
    const first = await killSupervisor()
    process.kill(first.broker.pid, 'SIGKILL')
    const second = await eventually(() => (noted()?.broker.pid === first.broker.pid ? undefined : noted()), {
      everyMs: 5,
      what: 'the broker to be started again',
    })
    process.kill(second.broker.pid, 'SIGKILL')
    await eventually(() => noted()?.phase === 'up' && noted()?.broker.pid !== second.broker.pid, {
      what: 'the broker to be up again',
    })
    expect(observer.names()).not.toContain('BrokerLost')
    await broker.release()
  })

  it('is told from one that was told to end, which is said to whoever uses the broker and left alone', async () => {
    const broker = await acquireBroker(brokerOptions(dataDir, observer))
    const before = noted()
    if (before === undefined) throw new Error('no broker is noted')
    process.kill(before.supervisor.pid, 'SIGTERM')
    await expect(broker.lost).rejects.toMatchObject({ code: 'KAFKA_LOST' })
    expect(observer.names()).toContain('BrokerLost')
    expect(isAlive(before.broker)).toBe(false)
    expect(noted()).toBeUndefined()
    await broker.release()
  })
})

describe('a broker that another command starts', () => {
  it('is not lost, however long that takes', async () => {
    let looks = 0
    const clock: Clock = {
      ...systemClock,
      timer: (ms, run, options) => {
        looks += 1
        return systemClock.timer(Math.min(ms, 50), run, options)
      },
    }
    const broker = await acquireBroker({ ...brokerOptions(dataDir, observer), clock })
    const before = noted()
    if (before === undefined) throw new Error('no broker is noted')
    const starting = tryLock(brokerFolder(dataDir).path, START_LOCK, 'a start that takes long')
    if (starting.kind === 'refused') throw new Error('somebody else holds the lock')
    process.kill(before.supervisor.pid, 'SIGTERM')
    await eventually(() => noted() === undefined, { what: 'the note to be gone' })
    const seen = looks
    await eventually(() => looks > seen + 20, { what: 'many looks' })
    expect(observer.names()).not.toContain('BrokerLost')
    starting.lock.release()
    await expect(broker.lost).rejects.toMatchObject({ code: 'KAFKA_LOST' })
    await broker.release()
  })
})

describe('kill -9 of the broker', () => {
  it('again while it comes back: it is started once more for those who use it', async () => {
    const broker = await acquireBroker(brokerOptions(dataDir, observer))
    const first = noted()?.broker
    if (first === undefined) throw new Error('no broker is noted')
    process.kill(first.pid, 'SIGKILL')
    const second = await eventually(
      () => {
        const file = noted()
        return file?.phase === 'starting' && file.broker.pid !== first.pid ? file.broker : undefined
      },
      { everyMs: 5, what: 'the broker to be started again' },
    )
    process.kill(second.pid, 'SIGKILL')
    const third = await eventually(() => (noted()?.phase === 'up' ? noted()?.broker : undefined), {
      what: 'the broker to be up again',
    })
    expect(third.pid).not.toBe(second.pid)
    await broker.release()
    expect(isAlive(third)).toBe(false)
  })
})
