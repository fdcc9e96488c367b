import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Runtime } from '../../src/control/runtime/runtime.ts'
import { startDiskGuard } from '../../src/control/stages/disk-guard.ts'
import { brokerFolder, readProcessFile } from '../../src/embedded/broker-folder.ts'
import { acquireBroker } from '../../src/embedded/embedded-broker.ts'
import { tryLock } from '../../src/embedded/file-lock.ts'
import { brokerMark } from '../../src/embedded/launch-spec.ts'
import { KafkaAdmin } from '../../src/kafka/admin.ts'
import { createKafkaClient } from '../../src/kafka/client.ts'
import { DurableProducer } from '../../src/kafka/producer.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { folderMark } from '../../src/machine/folder-mark.ts'
import { findProcess, isAlive } from '../../src/machine/process-identity.ts'
import { brokerOptions, RecordingObserver } from '../support/embedded.ts'
import { eventually } from '../support/eventually.ts'
import { fillDisk } from '../support/full-disk.ts'
import { readTexts } from '../support/kafka.ts'

const MIB = 1024 * 1024
const disk = mkdtempSync(join(tmpdir(), 'millrace-disk-'))
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256m', 'tmpfs', disk], { encoding: 'utf8' })
const reason = mounted.status === 0 ? '' : ` (skipped: no disk of its own can be mounted: ${(mounted.stderr ?? 'no mount').trim()})`

afterAll(() => {
  if (reason === '') spawnSync('umount', ['--lazy', disk])
  rmSync(disk, { recursive: true, force: true })
})

function noted() {
  const file = readProcessFile(brokerFolder(disk))
  return file === 'broken' ? undefined : file
}

function fill(): string {
  const path = join(disk, 'filler')
  // The broker may take some of the space while this writes.
  fillDisk(disk, path, 0)
  return path
}

describe.skipIf(reason !== '')(`a full disk${reason}`, () => {
  it('lets a lock be given back', () => {
    const lock = () => tryLock(disk, 'full.lock', 'a test')
    const first = lock()
    const filler = fill()
    try {
      if (first.kind === 'held') first.lock.release()
    } finally {
      rmSync(filler)
    }
    const second = lock()
    expect(second.kind === 'held' && second.lock.takenOverFrom === undefined).toBe(true)
  })

  // Two starts of a broker, a disk that is filled, and a run into its end: minutes on a busy machine.
  it('ends the broker, which comes back by itself when there is space, with all that was acknowledged', { timeout: 600_000 }, async () => {
    const observer = new RecordingObserver()
    const broker = await acquireBroker(brokerOptions(disk, observer))
    const client = createKafkaClient({ brokers: broker.brokers, clientId: 'test' }, silentObserver)
    const admin = new KafkaAdmin(client, systemClock)
    const producer = new DurableProducer({ client, clock: systemClock, observer: silentObserver, maxBatchBytes: () => MIB })
    try {
      await producer.start()
      await admin.createTopics([{ topic: 'pages', partitions: 1, replication: 1, configs: {} }])
      const send = (text: string) =>
        producer.send([{ topic: 'pages', partition: 0, key: null, value: Buffer.from(text.padEnd(200_000, '.')) }])
      await send('before')

      const first = noted()?.broker
      if (first === undefined) throw new Error('no broker is noted')
      const filler = fill()
      const sent = [1, 2, 3].map((index) => send(`while ${index}`))
      await eventually(() => !isAlive(first), { what: 'the broker to end for want of space' })
      // One that ends for another reason is started again at once.
      const until = performance.now() + 2_000
      while (performance.now() < until) {
        expect(findProcess(brokerMark(folderMark(brokerFolder(disk).path)))).toBeUndefined()
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      // Whoever uses it, and whoever comes, is told of the disk.
      const full = /the disk of .* is full: \d+ MiB are free, and it starts by itself once 32 MiB are/
      await eventually(() => observer.events.some(({ name }) => name === 'BrokerRests'), { what: 'word of the disk' })
      await expect(acquireBroker(brokerOptions(disk, new RecordingObserver()))).rejects.toMatchObject({ code: 'DISK_FULL', message: full })
      const held: boolean[] = []
      const about = { isEmbedded: true, dataDir: disk, clock: systemClock, config: { 'fetch.minFreeDisk': 0 }, observer: silentObserver }
      const stop = await startDiskGuard(about as unknown as Runtime, { holdRequests: (isHeld) => void held.push(isHeld) })
      stop()
      expect(held).toEqual([true])
      rmSync(filler)
      await Promise.all(sent)
      await send('after')
      expect((await readTexts(client, 'pages')).map((text) => text.replace(/\.+$/, ''))).toEqual([
        'before',
        'while 1',
        'while 2',
        'while 3',
        'after',
      ])
      await eventually(() => noted()?.phase === 'up', { what: 'the word that the broker is up' })
      expect(noted()?.broker.pid).not.toBe(first.pid)
    } finally {
      await producer.stop({ mode: 'abort', timeoutMs: 0 })
      await admin.close()
      await broker.release()
    }
  })
})
