import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { promotedVersions } from '../../../src/control/active-versions.ts'
import { announce } from '../../../src/control/announce.ts'
import { replayInPlace } from '../../../src/control/replay-in-place.ts'
import { beginRequest, listReplays, planOf } from '../../../src/control/replay-ledger.ts'
import type { Runtime } from '../../../src/control/runtime.ts'
import { promote } from '../../../src/control/versions.ts'
import { loadDefinition } from '../../../src/extract/load-extractors.ts'
import { subject } from '../../../src/message/command.ts'
import { Deployment } from '../../support/deployment.ts'
import { envelopeText } from '../../support/extraction.ts'
import { BOOK_1, BOOK_2 } from '../../support/stored-shop.ts'

const loaded = [BOOK_1, BOOK_2].map((text) => loadDefinition('book.yaml', text, envelopeText))
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
    return producer()
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

  it('stands where the replay came behind it: that one is taken back by its own command', async () => {
    await deployment.read(async (runtime) => {
      const producer = runtime.producer.bind(runtime)
      const instead = async () => {
        Object.assign(runtime, { producer })
        const real = await producer()
        const send = real.send.bind(real)
        return Object.assign(Object.create(real), {
          send: async (...args: Parameters<typeof send>) => {
            const sent = await send(...args)
            await beginReplay(runtime)
            return sent
          },
        })
      }
      Object.assign(runtime, { producer: instead })
      expect(await promoteFirst(runtime)).toMatchObject({ version: 1 })
      expect(await standing(runtime)).toEqual({ promoted: 1, replays: ['open'] })
    })
  })
})
