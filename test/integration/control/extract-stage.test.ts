import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { WorkingVersions } from '../../../src/control/active-versions.ts'
import { announcedVersions } from '../../../src/control/announced-versions.ts'
import { ExtractStage } from '../../../src/control/extract-stage.ts'
import { liveWorkers } from '../../../src/control/live-workers.ts'
import type { Runtime } from '../../../src/control/runtime.ts'
import { type LoadedExtractor, loadDefinition } from '../../../src/extract/load-extractors.ts'
import type { StopMode } from '../../../src/kernel/lifecycle.ts'
import { Deployment } from '../../support/deployment.ts'
import { RecordingObserver } from '../../support/embedded.ts'
import { eventually } from '../../support/eventually.ts'
import { envelopeText } from '../../support/extraction.ts'
import { OwnBroker } from '../../support/own-broker.ts'
import { BOOK_1, BOOK_2 } from '../../support/stored-shop.ts'

const book = (text: string): LoadedExtractor => loadDefinition('book.yaml', text, envelopeText)

let deployment: Deployment
beforeEach(async () => {
  await deployment?.close()
  deployment = await Deployment.open()
})
afterAll(() => deployment.close())

/** A stage that runs version 1; `promote` makes others work. */
async function runningStage(runtime: Runtime): Promise<{ stage: ExtractStage; promote: (next: LoadedExtractor) => void }> {
  let current = [book(BOOK_1)]
  let changed = (): void => undefined
  const versions: WorkingVersions = {
    get current() {
      return current
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
  it.each<StopMode>(['drain', 'abort'])(
    'begins nothing any more when it is stopped in the middle of it (%s)',
    async (mode) => {
      await deployment.read(async (runtime) => {
        const { stage, promote } = await runningStage(runtime)
        promote(book(BOOK_2))
        // What runs has begun to end, for the other version.
        await new Promise((resolve) => setImmediate(resolve))
        await stage.stop({ mode, timeoutMs: 10_000 })
        expect(await left(runtime)).toEqual({ workers: [], members: [], known: [1] })
      })
    },
    60_000,
  )

  it('is at its end as a whole where the other version can not begin', async () => {
    await deployment.read(async (runtime) => {
      const { stage, promote } = await runningStage(runtime)
      promote(book(BOOK_1.replace('title: h1', 'title: h2')))
      await expect(stage.closed).rejects.toMatchObject({ code: 'EXTRACTOR_VERSION_CHANGED' })
      expect(await left(runtime)).toEqual({ workers: [], members: [], known: [1] })
    })
  }, 60_000)
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
    const tries = eventually(() => observer.names().includes('ChangeOverRetried'), { timeoutMs: 60_000, what: 'another try' })
    await Promise.race([tries, stage.closed])
    return stage
  }

  it('runs the other version when the broker is back, and has said so once', async () => {
    const observer = new RecordingObserver()
    await alone.read(async (runtime) => {
      const stage = await between(runtime, observer)
      await broker.start()
      const runs = async (): Promise<boolean> => (await liveWorkers(runtime)).some(({ extractors }) => extractors.book === 2)
      await Promise.race([eventually(runs, { timeoutMs: 60_000, what: 'version 2' }), stage.closed])
      expect((await runtime.admin.describeGroup(runtime.groups.extract())).members).toHaveLength(1)
      await stage.stop({ mode: 'drain', timeoutMs: 10_000 })
      expect(observer.names().filter((name) => name === 'ChangeOverRetried')).toHaveLength(1)
    }, observer)
  }, 150_000)

  it.each<StopMode>(['drain', 'abort'])(
    'ends at once when it is stopped meanwhile (%s)',
    async (mode) => {
      const observer = new RecordingObserver()
      await alone.read(async (runtime) => {
        const stage = await between(runtime, observer)
        const askedMono = performance.now()
        await stage.stop({ mode, timeoutMs: 60_000 })
        await stage.closed
        expect(performance.now() - askedMono).toBeLessThan(5_000)
        expect(await liveWorkers(runtime)).toEqual([])
      }, observer)
    },
    150_000,
  )
})
