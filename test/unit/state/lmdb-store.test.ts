import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { PolitenessKey } from '../../../src/kernel/brand.ts'
import { type Clock, systemClock } from '../../../src/kernel/clock.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { ownProcess } from '../../../src/machine/process-identity.ts'
import { uuidV7 } from '../../../src/message/ids.ts'
import { LmdbEnvironment } from '../../../src/state/lmdb/environment.ts'
import { digest, FILE_KEY, groupDigest, Keys } from '../../../src/state/lmdb/keys.ts'
import { LmdbFile } from '../../../src/state/lmdb/lmdb-file.ts'
import { openStateStore } from '../../../src/state/open-state-store.ts'
import type { LimiterKey } from '../../../src/state/state-store.ts'
import { backOff } from '../../support/back-off.ts'
import { eventually } from '../../support/eventually.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { StoreBench } from '../../support/state-stores.ts'

const KEY: LimiterKey = { key: 'a.example' as PolitenessKey, ratePerSecond: 1, burst: 1, concurrency: 1, crawlDelayMs: 0 }
const request = (change: Partial<LimiterKey> = {}, leaseMs = 60_000) => ({
  keys: [{ ...KEY, ...change }],
  leaseMs,
  owner: ownProcess('w'),
  countsForRate: true,
})

let bench: StoreBench
let clock: ManualClock
beforeEach(() => {
  bench = new StoreBench()
  clock = new ManualClock()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await bench.end()
})

describe('after the machine was started again', () => {
  /** The machine was off meanwhile: its clock begins anew. */
  const restart = async (): Promise<ManualClock> => {
    const restarted = new ManualClock()
    await restarted.advance(5)
    return restarted
  }

  it('waits for what was left of each wait', async () => {
    await clock.advance(1_000_000)
    const before = await bench.lmdb({ clock, bootId: 'boot-1' })
    await backOff(before, KEY.key, 10_000)
    await before.spillSlot(KEY.key, 0, 30_000)
    await before.claim([{ crawlId: 'c', canonicalUrl: 'u', round: 0, claimant: 'x', ttlMs: 60_000 }])
    await before.markFinished([{ taskId: 't', attempt: 1, final: true }], 60_000)
    await clock.advance(9_000)
    await before.close()

    const restarted = await restart()
    const after = await bench.lmdb({ clock: restarted, bootId: 'boot-2' })
    expect(await after.acquire(request())).toMatchObject({ kind: 'wait', reason: 'back-off', waitMs: 1_000 })
    expect(await after.spillSlot(KEY.key, 0, 0)).toBe(21_000)
    await restarted.advance(1_000)
    expect(await after.acquire(request())).toMatchObject({ kind: 'lease' })
    await restarted.advance(49_000)
    expect(await after.isFinished([{ taskId: 't', attempt: 1 }])).toEqual([true])
    await restarted.advance(1_001)
    expect(await after.isFinished([{ taskId: 't', attempt: 1 }])).toEqual([false])
    expect(await after.claim([{ crawlId: 'c', canonicalUrl: 'u', round: 0, claimant: 'y' }])).toEqual(['new'])
  })

  it('leaves ended what had ended, also after a second start', async () => {
    const before = await bench.lmdb({ clock, bootId: 'boot-1' })
    await backOff(before, KEY.key, 10_000)
    await before.spillSlot('spilled' as PolitenessKey, 0, 600_000)
    await before.claim([{ crawlId: 'c', canonicalUrl: 'u', round: 0, claimant: 'x', ttlMs: 60_000 }])
    await before.markFinished([{ taskId: 't', attempt: 1, final: true }], 60_000)
    await before.writeRobots('https://a.example', { verdict: 'absent', body: '', status: 404, fetchedAt: 0 }, 60_000)
    await clock.advance(700_000)
    // Nothing is forgotten: the site is in use.
    await before.release('none', [{ key: KEY.key, crawlDelayMs: 0 }])
    await before.close()

    for (const bootId of ['boot-2', 'boot-3']) {
      const after = await bench.lmdb({ clock: await restart(), bootId })
      expect((await after.limiterState(KEY.key)).backOffMs).toBe(0)
      expect(await after.lookUpClaims([{ crawlId: 'c', canonicalUrl: 'u', round: 0, claimant: 'y' }])).toEqual(['new'])
      expect(await after.isFinished([{ taskId: 't', attempt: 1 }])).toEqual([false])
      expect(await after.readRobots('https://a.example')).toBeUndefined()
      expect(await after.spillSlot('spilled' as PolitenessKey, 0, 1_000)).toBeLessThanOrEqual(2_000)
      await after.close()
    }
  })

  it('ends a wait that is longer than the machine is ever up', async () => {
    const first = await bench.lmdb({ clock, bootId: 'boot-0' })
    await backOff(first, KEY.key, 21_600_000)
    await first.close()
    const left: number[] = []
    for (let day = 1; day <= 4; day += 1) {
      const daily = await restart()
      const store = await bench.lmdb({ clock: daily, bootId: `boot-${day}` })
      await daily.advance(5_400_000)
      left.push((await store.limiterState(KEY.key)).backOffMs)
      await store.close()
    }
    expect(left).toEqual([16_200_000, 10_800_000, 5_400_000, 0])
  })

  it('knows the time to the last second where the power failed', async () => {
    const before = await bench.lmdb({ clock, bootId: 'boot-1' })
    await backOff(before, KEY.key, 10_000)
    await clock.advance(3_000)
    await before.writeValue('n', 'v')
    await clock.advance(1_000)
    const file = await LmdbFile.open(bench.folder, { clock, observer: silentObserver, bootId: 'boot-1' })
    await eventually(() => file.read(() => file.get<{ lastAt?: number }>(FILE_KEY))?.lastAt === 4_000)
    // The first one is never closed: the file is as its last flush left it.
    await file.close()
    const after = await bench.lmdb({ clock: await restart(), bootId: 'boot-2' })
    expect((await after.limiterState(KEY.key)).backOffMs).toBe(6_000)
  })

  it('asks a rate and a crawl delay from where they were, and finds the leases of before to be of processes that are gone', async () => {
    await clock.advance(500_000)
    const before = await bench.lmdb({ clock, bootId: 'boot-1', isGone: () => false })
    await before.acquire(request({ crawlDelayMs: 4_000 }))
    await before.close()
    const after = await bench.lmdb({ clock: await restart(), bootId: 'boot-2', isGone: () => true })
    expect((await after.limiterState(KEY.key)).leases).toBe(1)
    const asker = { ...ownProcess('w'), pid: 1, pidStartedAt: 'other' }
    const answer = await after.acquire({ ...request({ crawlDelayMs: 4_000 }), owner: asker })
    expect(answer).toMatchObject({ kind: 'wait', reason: 'crawl-delay', waitMs: 4_000 })
    expect((await after.limiterState(KEY.key)).leases).toBe(0)
  })

  it('takes a clock that went back for a new start where the system tells no boot id', async () => {
    await clock.advance(1_000_000)
    const before = await bench.lmdb({ clock, bootId: '' })
    await backOff(before, KEY.key, 10_000)
    await before.close()
    const after = await bench.lmdb({ clock: new ManualClock(), bootId: '' })
    expect((await after.limiterState(KEY.key)).backOffMs).toBe(10_000)
  })

  it('starts each wait of an older format anew from its whole length: it does not say how late it had become', async () => {
    await clock.advance(1_000_000)
    const before = await bench.lmdb({ clock, bootId: 'boot-1' })
    await backOff(before, KEY.key, 10_000)
    await before.spillSlot(KEY.key, 0, 30_000)
    await clock.advance(9_000)
    await before.close()
    const older = open({ path: bench.folder, encoding: 'json', keyEncoding: 'binary' })
    await older.put(FILE_KEY, { format: 2, bootId: 'boot-1', boot: 1, openedAt: 1_000_000 })
    await older.close()
    const restarted = await restart()
    const after = await bench.lmdb({ clock: restarted, bootId: 'boot-2' })
    expect((await after.limiterState(KEY.key)).backOffMs).toBe(10_000)
    expect(await after.spillSlot(KEY.key, 0, 0)).toBe(30_000)
    await restarted.advance(4_000)
    await after.close()
    const again = await bench.lmdb({ clock: await restart(), bootId: 'boot-3' })
    expect((await again.limiterState(KEY.key)).backOffMs).toBe(6_000)
  })

  it('goes on where it was within one boot', async () => {
    const before = await bench.lmdb({ clock, bootId: 'boot-1' })
    await backOff(before, KEY.key, 10_000)
    await before.close()
    await clock.advance(4_000)
    const after = await bench.lmdb({ clock, bootId: 'boot-1' })
    expect((await after.limiterState(KEY.key)).backOffMs).toBe(6_000)
  })
})

describe('a state folder that can not be used', () => {
  const dataFile = (): string => join(bench.folder, 'data.mdb')
  const broken = async (): Promise<string> => {
    const failure = await bench.lmdb({ clock }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(MillraceError)
    expect(failure).toMatchObject({ code: 'STATE_BROKEN' })
    return (failure as Error).message
  }
  const fill = async (): Promise<void> => {
    const store = await bench.lmdb({ clock })
    const urls = Array.from({ length: 3_000 }, (_, index) => `https://a.example/${index}`)
    await store.claim(urls.map((canonicalUrl) => ({ crawlId: 'c', canonicalUrl, round: 0, claimant: 'x'.repeat(40) })))
    await store.close()
  }

  it('says so, and what to do, when its file is something else', async () => {
    writeFileSync(dataFile(), 'This is a text. '.repeat(1_000))
    expect(await broken()).toMatch(/no LMDB file.*move the folder away/)
    writeFileSync(dataFile(), 'short')
    expect(await broken()).toContain('it ends within its head')
  })

  it('says so when the file holds something else, or a later format', async () => {
    const foreign = open({ path: bench.folder, encoding: 'json' })
    await foreign.put('some', 'thing')
    await foreign.close()
    expect(await broken()).toContain('it holds something else')
    const later = open({ path: bench.folder, encoding: 'json', keyEncoding: 'binary' })
    await later.put(FILE_KEY, { format: 4 })
    await later.close()
    expect(await broken()).toContain('its format is 4')
  })

  it('says so when the file was cut off, and does not end the process', async () => {
    await fill()
    truncateSync(dataFile(), Math.floor(statSync(dataFile()).size / 8_192) * 4_096)
    expect(await broken()).toContain('MDB_')
  })

  it('says so when pages were overwritten, at the latest when they are asked for', async () => {
    await fill()
    const file = openSync(dataFile(), 'r+')
    // All pages but the two heads and every fifth one: some of the root may be left, not all of the leaves.
    for (let page = 2; page < statSync(dataFile()).size / 4_096; page += page % 5 === 0 ? 2 : 1)
      writeSync(file, Buffer.alloc(4_096), 0, 4_096, page * 4_096)
    closeSync(file)
    const used = async (): Promise<void> => {
      const store = await bench.lmdb({ clock })
      const urls = Array.from({ length: 3_000 }, (_, index) => `https://a.example/${index}`)
      await store.claim(urls.map((canonicalUrl) => ({ crawlId: 'c', canonicalUrl, round: 0, claimant: 'y' })))
    }
    await expect(used()).rejects.toMatchObject({ code: 'STATE_BROKEN' })
  })

  it('opens an empty file, as a kill right after its creation leaves it', async () => {
    writeFileSync(dataFile(), '')
    const store = await bench.lmdb({ clock })
    expect(await store.readValue('n')).toBeUndefined()
  })
})

/** What opening a file does that another process writes: the number of the last transaction, which all share, is one too small. */
function setBack(folder: string): void {
  const lock = openSync(join(folder, 'lock.mdb'), 'r+')
  const number = Buffer.alloc(8)
  readSync(lock, number, 0, 8, TRANSACTION_AT)
  number.writeBigUInt64LE(number.readBigUInt64LE(0) - 1n)
  writeSync(lock, number, 0, 8, TRANSACTION_AT)
  closeSync(lock)
}
const TRANSACTION_AT = 8

describe('LmdbFile', () => {
  const openFile = (time: Clock = clock): Promise<LmdbFile> =>
    LmdbFile.open(join(bench.folder, 'file'), { clock: time, observer: silentObserver, bootId: 'b' })
  const key = (name: string): Buffer => Buffer.concat([FILE_KEY, Buffer.from(name)])

  it('undoes a step that throws, and only that one of those that shared its transaction', async () => {
    const file = await openFile()
    const steps = [1, 2, 3].map((number) =>
      file.step(() => {
        file.put(key(`${number}`), number)
        if (number === 2) throw new MillraceError('INTERNAL', 'two')
        return number
      }),
    )
    expect((await Promise.allSettled(steps)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(file.read(() => [1, 2, 3].map((number) => file.get(key(`${number}`))))).toEqual([1, undefined, 3])
    await file.close()
  })

  it('does at its close what was asked before, and nothing afterwards', async () => {
    const file = await openFile()
    const asked = file.step(() => file.put(key('x'), 1))
    const closed = file.close()
    await asked
    await closed
    await expect(file.step(() => 1)).rejects.toMatchObject({ code: 'STATE_UNAVAILABLE' })
    const again = await openFile()
    expect(again.read(() => again.get(key('x')))).toBe(1)
    await again.close()
  })

  it('leaves the folder alone once it is closed, also where steps waited until then', async () => {
    const file = await openFile()
    const asked = file.step(() => file.put(key('x'), 1))
    await file.close()
    await asked
    rmSync(file.folder, { recursive: true })
    await clock.advance(5_000)
    expect(existsSync(file.folder)).toBe(false)
  })

  it('is broken where no opening anew mends the count of transactions, and opens it anew for the next steps all the same', async () => {
    const file = await openFile(systemClock)
    const old = vi.spyOn(LmdbEnvironment.prototype, 'transaction')
    const reopened = vi.spyOn(LmdbEnvironment.prototype, 'reopen')
    for (let stale = 0; stale < 11; stale += 1) old.mockReturnValueOnce(undefined)
    await expect(file.step(() => 1)).rejects.toMatchObject({ code: 'STATE_BROKEN' })
    expect(reopened).toHaveBeenCalledTimes(10)
    old.mockReturnValueOnce(undefined)
    expect(await file.step(() => 2)).toBe(2)
    expect(reopened).toHaveBeenCalledTimes(11)
    await file.close()
  })

  it('leaves other processes a moment before it is opened anew once more', async () => {
    const file = await openFile()
    const old = vi.spyOn(LmdbEnvironment.prototype, 'transaction')
    const reopened = vi.spyOn(LmdbEnvironment.prototype, 'reopen')
    for (let stale = 0; stale < 2; stale += 1) old.mockReturnValueOnce(undefined)
    const asked = file.step(() => 1)
    await eventually(() => old.mock.calls.length === 2)
    await new Promise((resolve) => setImmediate(resolve))
    expect(reopened).toHaveBeenCalledTimes(1)
    await clock.advance(2)
    expect(await asked).toBe(1)
    expect(reopened).toHaveBeenCalledTimes(2)
    await file.close()
  })

  it('is opened anew for all who hold it in this process, where their transactions would begin from an old state', async () => {
    const one = await openFile(systemClock)
    const other = await openFile(systemClock)
    await one.step(() => one.put(key('x'), 1))
    await other.step(() => other.put(key('y'), 2))
    setBack(one.folder)
    expect(await Promise.all([one, other].map((file) => file.step(() => [file.get(key('x')), file.get(key('y'))])))).toEqual([
      [1, 2],
      [1, 2],
    ])
    await one.close()
    // It is the other's as long as that holds it.
    setBack(other.folder)
    expect(await other.step(() => other.get(key('x')))).toBe(1)
    await other.close()
    const later = await openFile()
    expect(await later.step(() => later.get(key('y')))).toBe(2)
    await later.close()
  })

  it('fails the steps that wait where it can not be opened anew, and goes on once it can', async () => {
    const lost: unknown[] = []
    const observer = { ...silentObserver, emit: (name: string) => void (name === 'StateStoreLost' && lost.push(name)) }
    const file = await LmdbFile.open(join(bench.folder, 'file'), { clock, observer, bootId: 'b' })
    const old = vi.spyOn(LmdbEnvironment.prototype, 'transaction')
    const beginsFromAnOldState = (): void => void old.mockReturnValueOnce(undefined)
    await file.step(() => file.put(key('x'), 1))
    renameSync(file.folder, `${file.folder}-away`)
    writeFileSync(file.folder, 'no folder')
    beginsFromAnOldState()
    await expect(file.step(() => 1)).rejects.toBeInstanceOf(MillraceError)
    // The flush finds it closed.
    await clock.advance(1_000)
    await eventually(() => lost.length > 0)
    rmSync(file.folder)
    renameSync(`${file.folder}-away`, file.folder)
    beginsFromAnOldState()
    expect(await file.step(() => file.get(key('x')))).toBe(1)
    await file.close()
  })
})

describe('what has expired', () => {
  it('is taken away as new things come, so that the file stays bounded', async () => {
    const store = await bench.lmdb({ clock, bootId: 'b' })
    for (let round = 0; round < 20; round += 1) {
      const names = Array.from({ length: 100 }, (_, index) => `${round}-${index}`)
      await store.markFinished(
        names.map((taskId) => ({ taskId, attempt: 1, final: false })),
        1_000,
      )
      await store.claim(names.map((canonicalUrl) => ({ crawlId: 'c', canonicalUrl, round: 0, claimant: 'x', ttlMs: 1_000 })))
      for (const name of names.slice(0, 20)) {
        await store.release('none', [{ key: name as PolitenessKey, crawlDelayMs: 0 }])
        await store.acquire(request({ key: `k${name}` as PolitenessKey }, 500))
      }
      await clock.advance(700_000)
    }
    await store.close()
    const file = await LmdbFile.open(bench.folder, { clock, observer: silentObserver, bootId: 'b' })
    const keys = new Keys(bench.clusterId, 'test.')
    const count = (kind: 'finished' | 'timedClaim' | 'pace'): number => file.read(() => file.entries(keys.kind(kind), 100_000).length)
    // Of 2,000 each (of 800 keys) those of the last round live.
    expect(count('finished')).toBeLessThan(300)
    expect(count('timedClaim')).toBeLessThan(300)
    expect(count('pace')).toBeLessThan(150)
    await file.close()
  })

  it('takes away timed values that are over when another one is written, by whichever process', async () => {
    for (let index = 0; index < 30; index += 1) {
      const store = await bench.lmdb({ clock, bootId: 'b' })
      await store.writeTimed(`preview:${index}`, 'x', index === 0 ? 100_000_000 : 1_000)
      await store.close()
      await clock.advance(700_000)
    }
    const file = await LmdbFile.open(bench.folder, { clock, observer: silentObserver, bootId: 'b' })
    const keys = new Keys(bench.clusterId, 'test.')
    expect(file.read(() => file.entries(keys.kind('timedValue'), 100)).length).toBe(2)
    await file.close()
  })
})

describe('the tasks of a crawl', () => {
  const keys = () => new Keys(bench.clusterId, 'test.')
  const openFile = () => LmdbFile.open(bench.folder, { clock, observer: silentObserver, bootId: 'b' })

  it('lie in the file as they were made, so that those that end together are neighbours', async () => {
    const made: string[] = []
    for (let index = 0; index < 200; index += 1) {
      made.push(uuidV7(clock))
      await clock.advance(1)
    }
    const store = await bench.lmdb({ clock, bootId: 'b' })
    await store.accept('c', made.toReversed())
    await store.finalise('c', made.slice(0, 50))
    await store.close()
    const file = await openFile()
    const tasks = (kind: 'openTask' | 'finalTask') =>
      file.read(() => file.entries(keys().of(kind, groupDigest('c')), 1_000)).map(({ key }) => key.subarray(-16).toString('hex'))
    const bytes = made.map((taskId) => taskId.replaceAll('-', ''))
    expect(tasks('finalTask')).toEqual(bytes.slice(0, 50))
    expect(tasks('openTask')).toEqual(bytes.slice(50))
    await file.close()
  })

  it('are found again where an older version began it, which can not open the file any more', async () => {
    const taskIds = [uuidV7(clock), uuidV7(clock)]
    const [first = '', second = ''] = taskIds
    const file = await openFile()
    await file.step(() => {
      const group = groupDigest('c')
      for (const taskId of taskIds) file.put(keys().of('openTask', group, digest([taskId], 16)), 1)
      file.put(keys().of('openCrawl', group), 'c')
      file.put(keys().of('crawl', group), { crawlId: 'c', open: 2, final: 0, endedAt: null })
      file.put(FILE_KEY, { ...file.get<object>(FILE_KEY), format: 1 })
    })
    await file.close()
    const store = await bench.lmdb({ clock, bootId: 'b' })
    await store.finalise('c', [first])
    expect(await store.accept('c', [first, second, uuidV7(clock)])).toEqual([true, false, false])
    expect(await store.crawlCounts('c')).toEqual({ accepted: 3, final: 1 })
    await store.close()
    const after = await openFile()
    expect(after.read(() => after.get(FILE_KEY))).toMatchObject({ format: 3, bootId: 'b' })
    await after.close()
  })
})

describe('openStateStore', () => {
  const options = () => ({ namespace: { clusterId: bench.clusterId, prefix: 'p.' }, clock, observer: silentObserver })

  it('warms up only where the data folder is not new as a whole', async () => {
    const fresh = await openStateStore({ ...options(), dataDir: join(bench.folder, 'new') })
    expect(await fresh.acquire(request())).toMatchObject({ kind: 'lease' })
    await fresh.close()
    mkdirSync(join(bench.folder, 'old', 'kafka'), { recursive: true })
    const lost = await openStateStore({ ...options(), dataDir: join(bench.folder, 'old') })
    expect(await lost.acquire(request())).toMatchObject({ kind: 'wait', reason: 'warm-up', waitMs: 1_000 })
    await lost.close()
  })

  it('refuses when there is no place for the state', async () => {
    await expect(openStateStore(options())).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    writeFileSync(join(bench.folder, 'a-file'), '')
    await expect(openStateStore({ ...options(), dataDir: join(bench.folder, 'a-file') })).rejects.toBeInstanceOf(MillraceError)
  })
})
