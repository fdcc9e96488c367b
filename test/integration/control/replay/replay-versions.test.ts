import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { promotedVersions } from '../../../../src/control/extractors/active-versions.ts'
import { startHeartbeat } from '../../../../src/control/groups/heartbeat.ts'
import { promote } from '../../../../src/control/promote.ts'
import { followReplay, replayInPlace } from '../../../../src/control/replay/replay-in-place.ts'
import { beginRequest } from '../../../../src/control/replay/replay-ledger.ts'
import { listReplays } from '../../../../src/control/replay/replay-status.ts'
import { runBeside, runInPlace } from '../../../../src/control/replay/run-replay.ts'
import { announce } from '../../../../src/control/runtime/announce.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { planOf } from '../../../../src/control/trials/replay-plan.ts'
import { type LoadedExtractor, loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { encodeMetadata, freshMetadata, NO_TOTALS } from '../../../../src/extract/offset-metadata.ts'
import { subject } from '../../../../src/message/command.ts'
import { Deployment } from '../../../support/deployment.ts'
import { expectInTime } from '../../../support/in-time.ts'
import { BOOK_1, BOOK_2 } from '../../../support/stored-shop.ts'

const loaded = [BOOK_1, BOOK_2].map((text) => loadDefinition('book.yaml', text))
const ranges = [{ partition: 0, from: '0', until: '10' }]

let deployment: Deployment
beforeEach(async () => {
  await deployment?.close()
  deployment = await Deployment.open()
})
afterAll(() => deployment.close())

const asked = (runtime: Runtime) => {
  const groupId = runtime.groups.extract()
  return { replayId: 'r', groupId, extractor: 'book', extractorVersion: 2, filter: {} }
}
const replay = (runtime: Runtime) => replayInPlace(runtime, asked(runtime), planOf(runtime.topics.html, ranges))
const promoteFirst = (runtime: Runtime) =>
  promote(runtime, { loaded, name: 'book', version: 1, force: 'a test', signal: new AbortController().signal })
const announceFirst = (runtime: Runtime) => announce(runtime, { kind: 'set', subject: subject.promoted('book'), payload: { version: 1 } })

/** What stands in the end: the version that is promoted, and how the replay stands. */
async function standing(runtime: Runtime): Promise<object> {
  const control = await runtime.control()
  await control.readToEnd()
  return { promoted: promotedVersions(control).get('book'), replays: (await listReplays(runtime)).map(({ state }) => state) }
}

/** Another command writes in the moment in which this one is about to. */
function justBefore(runtime: Runtime, write: (runtime: Runtime) => Promise<unknown>): void {
  const producer = runtime.producer.bind(runtime)
  const instead = async () => {
    Object.assign(runtime, { producer })
    await write(runtime)
    return runtime.producer()
  }
  Object.assign(runtime, { producer: instead })
}

/** Another command writes as soon as this one has. */
function justBehind(runtime: Runtime, write: (runtime: Runtime) => Promise<unknown>): void {
  const producer = runtime.producer.bind(runtime)
  const instead = async () => {
    Object.assign(runtime, { producer })
    const real = await producer()
    const send = real.send.bind(real)
    return Object.assign(Object.create(real), {
      send: async (...args: Parameters<typeof send>) => {
        const sent = await send(...args)
        await write(runtime)
        return sent
      },
    })
  }
  Object.assign(runtime, { producer: instead })
}

describe('a replay in place of another version than the promoted one', () => {
  it('is refused on a stopped group too, and nothing is written', async () => {
    await deployment.read(async (runtime) => {
      await announceFirst(runtime)
      await expect(replay(runtime)).rejects.toMatchObject({
        code: 'REPLAY_REFUSED',
        message: expect.stringContaining('millrace promote book:2'),
      })
      expect(await standing(runtime)).toEqual({ promoted: 1, replays: [] })
    })
  })

  it('is taken back where the promotion came in the same moment, and before it', async () => {
    await deployment.read(async (runtime) => {
      justBefore(runtime, announceFirst)
      await expect(replay(runtime)).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
      expect(await standing(runtime)).toEqual({ promoted: 1, replays: ['cancelled'] })
    })
  })
})

describe('a replay under an id that would not fit where it has to stand', () => {
  const asIs = { scope: { start: { kind: 'earliest' }, filter: {} }, group: undefined, rate: undefined, expect: undefined } as const
  const signal = new AbortController().signal

  it.each(['x'.repeat(65), '', 'a/b', 'ü'])('%j is refused, whoever asks', async (replayId) => {
    const [, extractor = loaded[0] as LoadedExtractor] = loaded
    await deployment.read(async (runtime) => {
      const inPlace = runInPlace(runtime, { ...asIs, replayId, extractor, force: 'a test', signal })
      await expect(inPlace).rejects.toMatchObject({ code: 'USAGE' })
      const beside = { out: undefined, drainTimeoutMs: 1_000, draining: signal, aborting: signal }
      await expect(runBeside(runtime, { ...asIs, replayId, extractor, ...beside })).rejects.toMatchObject({ code: 'USAGE' })
    })
  })
})

describe('a replay that is looked at when it is done', () => {
  it('has no pace that a plan could go by', async () => {
    await deployment.read(async (runtime) => {
      const { admin, topics, groups } = runtime
      const totals = { ...NO_TOTALS, pages: 300, records: 300 }
      const done = { replayId: 'r', phase: 'done', until: 300n, resumeAt: 300n, totals } as const
      const metadata = encodeMetadata({ ...freshMetadata(0n), replay: done })
      await beginRequest(runtime, { ...asked(runtime), ranges: [{ partition: 0, from: '0', until: '300' }] })
      await admin.commitDirect(groups.extract(), [{ topic: topics.html, partition: 0, offset: 300n, metadata }])
      const status = await followReplay(runtime, 'r', { until: 'done', signal: new AbortController().signal })
      expect(status).toMatchObject({ state: 'done', totals })
      expect(await (await runtime.state()).readValue('replay-pace:book')).toBeUndefined()
    })
  })
})

describe('a promotion', () => {
  it('does not wait for a candidate, which stays what it is', async () => {
    await deployment.read(async (runtime) => {
      const candidate = { stage: 'extract', groupId: runtime.groups.extract('book-v2'), extractors: { book: 2 } }
      const end = await startHeartbeat(runtime, candidate)
      const begunMono = performance.now()
      expect(await promoteFirst(runtime)).toMatchObject({ version: 1, running: [], others: [] })
      // It would be waited for for half a minute.
      expectInTime(performance.now() - begunMono, 25_000)
      await end()
    })
  })
})

describe('a promotion of another version than that of an open replay in place', () => {
  const beginReplay = (runtime: Runtime) => beginRequest(runtime, { ...asked(runtime), ranges })

  it.each([2, undefined])('is taken back where the replay came in the same moment, and before it (%s before)', async (version) => {
    await deployment.read(async (runtime) => {
      if (version !== undefined) await announce(runtime, { kind: 'set', subject: subject.promoted('book'), payload: { version } })
      justBefore(runtime, beginReplay)
      await expect(promoteFirst(runtime)).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
      expect(await standing(runtime)).toEqual({ promoted: version, replays: ['open'] })
    })
  })

  it('takes back nothing that somebody has promoted meanwhile', async () => {
    await deployment.read(async (runtime) => {
      const third = () => announce(runtime, { kind: 'set', subject: subject.promoted('book'), payload: { version: 3 } })
      justBefore(runtime, async () => {
        await beginReplay(runtime)
        justBehind(runtime, third)
      })
      await expect(promoteFirst(runtime)).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
      expect(await standing(runtime)).toEqual({ promoted: 3, replays: ['open'] })
    })
  })

  it.each([2, undefined])(
    'is taken back to what stood before the replay, not to another one that is refused behind it (%s before)',
    async (version) => {
      await deployment.read(async (runtime) => {
        if (version !== undefined) await announce(runtime, { kind: 'set', subject: subject.promoted('book'), payload: { version } })
        // It has looked already, and tells what it finds from here on for what was promoted before.
        const state = runtime.state.bind(runtime)
        const instead = async () => {
          Object.assign(runtime, { state })
          await beginReplay(runtime)
          await announce(runtime, { kind: 'set', subject: subject.promoted('book'), payload: { version: 3 } })
          return state()
        }
        Object.assign(runtime, { state: instead })
        await expect(promoteFirst(runtime)).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
        expect(await standing(runtime)).toEqual({ promoted: version, replays: ['open'] })
      })
    },
  )

  it('stands where the replay came behind it: that one is taken back by its own command', async () => {
    await deployment.read(async (runtime) => {
      justBehind(runtime, beginReplay)
      expect(await promoteFirst(runtime)).toMatchObject({ version: 1 })
      expect(await standing(runtime)).toEqual({ promoted: 1, replays: ['open'] })
    })
  })
})
