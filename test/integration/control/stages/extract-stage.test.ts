import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { WorkingVersions } from '../../../../src/control/extractors/active-versions.ts'
import { announcedVersions } from '../../../../src/control/extractors/announced-versions.ts'
import { liveWorkers } from '../../../../src/control/groups/live-workers.ts'
import { cancelReplay } from '../../../../src/control/replay/replay-in-place.ts'
import { beginRequest } from '../../../../src/control/replay/replay-ledger.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { ExtractStage } from '../../../../src/control/stages/extract-stage.ts'
import { type LoadedExtractor, loadDefinition, loadExtractor } from '../../../../src/extract/load-extractors.ts'
import type { StopMode } from '../../../../src/kernel/lifecycle.ts'
import { committed, Deployment, readPages, readRecords } from '../../../support/deployment.ts'
import { RecordingObserver } from '../../../support/embedded.ts'
import { eventually } from '../../../support/eventually.ts'
import { expectInTime } from '../../../support/in-time.ts'
import { OwnBroker } from '../../../support/own-broker.ts'
import { BOOK_1, BOOK_2, caughtUp, range, storePages, urlOf } from '../../../support/stored-shop.ts'

const book = (text: string): LoadedExtractor => loadDefinition('book.yaml', text)

let deployment: Deployment
beforeEach(async () => {
  await deployment?.close()
  deployment = await Deployment.open()
})
afterAll(() => deployment.close())

/** A stage that runs version 1; `promote` makes others work. */
async function runningStage(
  runtime: Runtime,
  first = book(BOOK_1),
): Promise<{ stage: ExtractStage; promote: (next: LoadedExtractor) => void }> {
  let current = [first]
  const loaded = [book(BOOK_1), book(BOOK_2)]
  let changed = (): void => undefined
  const versions: WorkingVersions = {
    get current() {
      return current
    },
    get loaded() {
      return [...current, ...loaded.filter(({ version }) => !current.some((each) => each.version === version))]
    },
    onChange: (listener) => {
      changed = listener
      return () => undefined
    },
  }
  const groupId = runtime.groups.extract()
  const stage = new ExtractStage(runtime, { versions, own: (working) => working, groupId, drainTimeoutMs: 10_000 })
  await stage.start()
  const promote = (next: LoadedExtractor): void => {
    current = [next]
    changed()
  }
  return { stage, promote }
}

const left = async (runtime: Runtime): Promise<object> => {
  const { members } = await runtime.admin.describeGroup(runtime.groups.extract())
  const known = announcedVersions(await runtime.control(), 'book').map(({ version }) => version)
  return { workers: await liveWorkers(runtime), members, known }
}

describe('an extract stage that changes over to another version', () => {
  it.each<StopMode>(['drain', 'abort'])('begins nothing any more when it is stopped in the middle of it (%s)', async (mode) => {
    await deployment.read(async (runtime) => {
      const { stage, promote } = await runningStage(runtime)
      promote(book(BOOK_2))
      // What runs has begun to end, for the other version.
      await new Promise((resolve) => setImmediate(resolve))
      await stage.stop({ mode, timeoutMs: 10_000 })
      expect(await left(runtime)).toEqual({ workers: [], members: [], known: [1] })
    })
  })

  it('is at its end as a whole where the other version can not begin', async () => {
    await deployment.read(async (runtime) => {
      const { stage, promote } = await runningStage(runtime)
      promote(book(BOOK_1.replace('title: h1', 'title: h2')))
      await expect(stage.closed).rejects.toMatchObject({ code: 'EXTRACTOR_VERSION_CHANGED' })
      expect(await left(runtime)).toEqual({ workers: [], members: [], known: [1] })
    })
  })
})

describe('an extract stage in whose group a replay in place is open', () => {
  const runs = async (runtime: Runtime): Promise<number[]> => (await liveWorkers(runtime)).map(({ extractors }) => extractors.book ?? 0)

  /** Of ten pages, a page a minute. */
  const replayed = async (runtime: Runtime, extractorVersion = 2): Promise<void> => {
    await storePages(runtime, range(10))
    const ranges = [0, 1, 2, 3].map((partition) => ({ partition, from: '0', until: '10' }))
    const groupId = runtime.groups.extract()
    const request = { replayId: 'r', groupId, extractor: 'book', extractorVersion, filter: {}, ranges, rate: 1 / 60 }
    await beginRequest(runtime, request)
  }

  it('keeps its version where another one is promoted meanwhile, says so, and changes over when it has ended', async () => {
    const observer = new RecordingObserver()
    await deployment.read(async (runtime) => {
      const { stage, promote } = await runningStage(runtime, book(BOOK_2))
      // A replay of what no owner has worked yet is through as it begins.
      await storePages(runtime, range(10))
      await caughtUp(deployment)
      await replayed(runtime)
      await eventually(() => observer.names().includes('ReplayPartitionBegan'), { what: 'the replay' })
      promote(book(BOOK_1))
      await Promise.race([eventually(() => observer.names().includes('PromotionHeld'), { what: 'a word of it' }), stage.closed])
      expect(await runs(runtime)).toEqual([2])
      await cancelReplay(runtime, 'r')
      await Promise.race([eventually(async () => (await runs(runtime))[0] === 1, { what: 'version 1' }), stage.closed])
      await stage.stop({ mode: 'drain', timeoutMs: 10_000 })
    }, observer)
  })

  it('begins with its version, whatever is promoted', async () => {
    await deployment.read(async (runtime) => {
      await replayed(runtime)
      const { stage } = await runningStage(runtime, book(BOOK_1))
      const first = await eventually(async () => (await runs(runtime)).length > 0 && runs(runtime), { what: 'its heartbeat' })
      expect(first).toEqual([2])
      await stage.stop({ mode: 'drain', timeoutMs: 10_000 })
    })
  })

  it('passes over one that is through, though nobody has closed it', async () => {
    const observer = new RecordingObserver()
    await deployment.read(async (runtime) => {
      const groupId = runtime.groups.extract()
      await beginRequest(runtime, { replayId: 'r', groupId, extractor: 'book', extractorVersion: 2, filter: {}, ranges: [], rate: 1 })
      const { stage, promote } = await runningStage(runtime, book(BOOK_1))
      // Behind the look at replays with which each start ends.
      promote(book(BOOK_2.replace('version: 2', 'version: 3')))
      await Promise.race([eventually(async () => (await runs(runtime))[0] === 3, { what: 'version 3' }), stage.closed])
      await stage.stop({ mode: 'drain', timeoutMs: 10_000 })
    }, observer)
    expect(observer.names()).not.toContain('PromotionHeld')
  })

  it('is refused at its start without a file of it, and goes on where it runs', async () => {
    const observer = new RecordingObserver()
    const book3 = book(BOOK_2.replace('version: 2', 'version: 3'))
    await deployment.read(async (runtime) => {
      const { stage, promote } = await runningStage(runtime)
      await replayed(runtime, 9)
      promote(book3)
      await Promise.race([eventually(async () => (await runs(runtime))[0] === 3, { what: 'version 3' }), stage.closed])
      await eventually(() => observer.names().includes('ReplayRefused'), { what: 'the word about the missing file' })
      await stage.stop({ mode: 'drain', timeoutMs: 10_000 })
      await expect(runningStage(runtime)).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
    }, observer)
  })
})

describe('an extract stage with a page that takes longer than its session', () => {
  const ENDLESS = `export default {
  name: 'endless', version: 1,
  schema: { type: 'record', name: 'Endless', fields: [{ name: 'title', type: 'string' }] },
  extract({ $, url }) {
    const title = $('h1').text()
    while (title === 'Book 0') {}
    return [{ key: url, data: { title } }]
  },
}
`
  let patient: Deployment
  beforeEach(async () => {
    // Time for the other thread, which a busy machine takes a while to start.
    patient = await Deployment.open({ set: ['kafka.sessionTimeout=10s', 'extract.pageTimeout=30s', 'extract.threads=2'] })
    return () => patient.close()
  })

  it('stays the member that it was, and writes the records of other partitions meanwhile', async () => {
    const observer = new RecordingObserver()
    await patient.read(async (runtime) => {
      const members = async (): Promise<string[]> =>
        (await runtime.admin.describeGroup(runtime.groups.extract())).members.map(({ memberId }) => memberId)
      const { stage } = await runningStage(runtime, await loadExtractor(patient.file('endless.mjs', ENDLESS)))
      const before = await members()
      await storePages(runtime, [{ index: 0 }])
      await storePages(runtime, range(8, 1))
      const looping = (await readPages(runtime)).find(({ value }) => value.url === urlOf(0))?.message.partition
      const isElsewhere = async (): Promise<boolean> => (await readRecords(runtime)).some(({ value }) => value.source.partition !== looping)
      await eventually(isElsewhere, { everyMs: 200, what: 'a record of another partition' })
      const letters = () => committed(runtime, runtime.topics.deadLetters)
      expect(await letters()).toEqual([])
      await eventually(async () => (await letters()).length > 0, { everyMs: 200, what: 'the end of the page' })
      await eventually(async () => (await readRecords(runtime)).length === 8, { everyMs: 200, what: 'all other records' })
      expect(await members()).toEqual(before)
      await stage.stop({ mode: 'drain', timeoutMs: 10_000 })
      expect(await letters()).toHaveLength(1)
    }, observer)
    expect(observer.names().filter((name) => name === 'GroupJoined' || name === 'ConsumerRestarted')).toEqual(['GroupJoined'])
  })
})

describe('an extract stage that changes over while the broker is away', () => {
  let broker: OwnBroker
  let alone: Deployment
  beforeEach(async () => {
    broker = await OwnBroker.start()
    alone = await Deployment.open({ set: [`brokers=${broker.address}`] })
    return async () => {
      await alone.close()
      await broker.end()
    }
  })

  /** Version 1 has ended, and version 2 could not begin. */
  const between = async (runtime: Runtime, observer: RecordingObserver): Promise<ExtractStage> => {
    const { stage, promote } = await runningStage(runtime)
    await broker.stop('SIGTERM')
    promote(book(BOOK_2))
    const tries = eventually(() => observer.names().includes('ChangeOverRetried'), { what: 'another try' })
    await Promise.race([tries, stage.closed])
    return stage
  }

  it('runs the other version when the broker is back, and has said so once', async () => {
    const observer = new RecordingObserver()
    await alone.read(async (runtime) => {
      const stage = await between(runtime, observer)
      await broker.start()
      const runs = async (): Promise<boolean> => (await liveWorkers(runtime)).some(({ extractors }) => extractors.book === 2)
      await Promise.race([eventually(runs, { what: 'version 2' }), stage.closed])
      const isAlone = async (): Promise<boolean> => (await runtime.admin.describeGroup(runtime.groups.extract())).members.length === 1
      await eventually(isAlone, { what: 'one member' })
      await stage.stop({ mode: 'drain', timeoutMs: 10_000 })
      expect(observer.names().filter((name) => name === 'ChangeOverRetried')).toHaveLength(1)
    }, observer)
  })

  it.each<StopMode>(['drain', 'abort'])('ends at once when it is stopped meanwhile (%s)', async (mode) => {
    const observer = new RecordingObserver()
    await alone.read(async (runtime) => {
      const stage = await between(runtime, observer)
      const askedMono = performance.now()
      await stage.stop({ mode, timeoutMs: 60_000 })
      await stage.closed
      expectInTime(performance.now() - askedMono, 30_000)
      expect(await liveWorkers(runtime)).toEqual([])
    }, observer)
  })
})
