import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listDeadLetters } from '../../../src/control/dead-letters/dead-letters.ts'
import { resolveDeadLetters } from '../../../src/control/dead-letters/requeue.ts'
import { announceExtractors } from '../../../src/control/extractors/announce-extractors.ts'
import { liveVersions } from '../../../src/control/extractors/announced-versions.ts'
import { recordsOf } from '../../../src/control/records/stored-records.ts'
import { forgetReplay } from '../../../src/control/replay/forget-replay.ts'
import { cancelReplay } from '../../../src/control/replay/replay-in-place.ts'
import { beginRequest, knownRequest } from '../../../src/control/replay/replay-ledger.ts'
import { replayStatus } from '../../../src/control/replay/replay-status.ts'
import { compareShadow } from '../../../src/control/replay/shadow-comparison.ts'
import { createRecordsTopic, runShadow, type ShadowOptions, type ShadowReport } from '../../../src/control/replay/shadow-replay.ts'
import { createReplayLibrary, type ReplayLibrary } from '../../../src/control/replay-library.ts'
import { announce } from '../../../src/control/runtime/announce.ts'
import type { Runtime } from '../../../src/control/runtime/runtime.ts'
import { planRange } from '../../../src/control/trials/plan-range.ts'
import { type LoadedExtractor, loadDefinition } from '../../../src/extract/load-extractors.ts'
import { subject } from '../../../src/message/command.ts'
import { shadowTopicOf } from '../../../src/message/topics.ts'
import { Deployment } from '../../support/deployment.ts'
import { eventually } from '../../support/eventually.ts'
import { BOOK_1, BOOK_2, BOOK_BAD, range, storePages } from '../../support/stored-shop.ts'

const book = (text: string): LoadedExtractor => loadDefinition('book.yaml', text)
const never = new AbortController().signal

let deployment: Deployment
beforeEach(async () => {
  deployment = await Deployment.open()
})
afterEach(() => deployment.close())

async function shadow(
  runtime: Runtime,
  replayId: string,
  extractor: LoadedExtractor,
  options: Partial<ShadowOptions> = {},
): Promise<ShadowReport> {
  const plan = await planRange(runtime, runtime.groups.extract(), { start: { kind: 'earliest' }, filter: {} }, false)
  const rest = { filter: {}, plan, rate: undefined, out: undefined, drainTimeoutMs: 10_000, draining: never, aborting: never }
  return runShadow(runtime, { replayId, extractor, ...rest, ...options })
}

function libraryOf(runtime: Runtime, extractor: LoadedExtractor): ReplayLibrary {
  return createReplayLibrary({
    open: async () => runtime,
    find: async () => extractor,
    track: (work) => work,
    draining: never,
    aborting: never,
    drainTimeoutMs: 10_000,
  })
}

describe('a version that is tried as a shadow', () => {
  it('leaves dead letters that are not put back for the version that is live', async () => {
    await deployment.read(async (runtime) => {
      await storePages(runtime, range(4))
      expect(await shadow(runtime, 'broken', book(BOOK_BAD))).toMatchObject({ deadLetters: 4 })
      const infos = []
      for await (const { info } of listDeadLetters(runtime, {})) infos.push([info.extractor, info.replay])
      expect(infos).toEqual(Array(4).fill(['book:3', 'broken']))
      const report = await resolveDeadLetters(runtime, { action: 'requeued', filter: {}, execute: true })
      expect(report).toMatchObject({ pages: 0, tasks: 0, left: { 'of-trial': 4 } })
      expect(report.examples[0]?.detail).toContain('the shadow replay broken')
      expect(await resolveDeadLetters(runtime, { action: 'dropped', filter: {}, execute: true })).toMatchObject({ dropped: 4 })
    })
  })

  it('binds no later version to its types, until it is live', async () => {
    await deployment.read(async (runtime) => {
      await storePages(runtime, range(2))
      const text = (version: number): LoadedExtractor =>
        book(BOOK_2.replace('version: 2', `version: ${version}`).replace(', type: int', ''))
      await announceExtractors(runtime, [book(BOOK_1)])
      await shadow(runtime, 'typed', book(BOOK_2))
      await announceExtractors(runtime, [text(4)], 'beside')
      await announceExtractors(runtime, [book(BOOK_2)])
      // Again beside what is live, it stays live.
      await shadow(runtime, 'again', book(BOOK_2))
      await expect(announceExtractors(runtime, [text(5)])).rejects.toMatchObject({ code: 'EXTRACTOR_INCOMPATIBLE' })
    })
  })
})

describe('a shadow that writes to a topic of live work', () => {
  it('binds later versions to its types', async () => {
    await deployment.read(async (runtime) => {
      await storePages(runtime, range(2))
      await announceExtractors(runtime, [book(BOOK_1)])
      await shadow(runtime, 'typed', book(BOOK_2), { out: runtime.topics.records })
      const other = book(BOOK_2.replace('version: 2', 'version: 4').replace(', type: int', ''))
      await expect(announceExtractors(runtime, [other])).rejects.toMatchObject({ code: 'EXTRACTOR_INCOMPATIBLE' })
    })
  })
})

describe('a version that goes live while a shadow of it begins', () => {
  it('stays live', async () => {
    await deployment.read(async (runtime) => {
      const state = await runtime.state()
      const control = await runtime.control()
      const claim = state.writeValueOnce.bind(state)
      state.writeValueOnce = async (name, value) => {
        state.writeValueOnce = claim
        await announceExtractors(runtime, [book(BOOK_2)])
        return claim(name, value)
      }
      await announceExtractors(runtime, [book(BOOK_2)], 'beside')
      expect(liveVersions(control, 'book').map(({ version }) => version)).toEqual([2])
    })
  })
})

describe('a shadow that is called off', () => {
  it('is closed by its process, though that was told to stop before it had heard of it', async () => {
    await deployment.read(async (runtime) => {
      await storePages(runtime, range(200))
      const stop = new AbortController()
      let atWork = 0n
      const onProgress: ShadowOptions['onProgress'] = ({ done }) => {
        atWork = done
      }
      const running = shadow(runtime, 'stopped', book(BOOK_2), { rate: 5, onProgress, draining: stop.signal })
      await eventually(() => atWork > 0n, { what: 'the first page' })
      await cancelReplay(runtime, 'stopped')
      stop.abort(new Error('no more'))
      expect(await running).toMatchObject({ cancelled: true, interrupted: true })
      expect(await knownRequest(runtime, 'stopped')).toMatchObject({ isClosed: true, request: { cancelled: true } })
      expect(await forgetReplay(runtime, 'stopped')).toMatchObject({ isDeleted: true })
    })
  })

  it('can be forgotten where its process was killed before it had closed it', async () => {
    await deployment.read(async (runtime) => {
      const { topics, groups } = runtime
      const of = { replayId: 'killed', groupId: groups.replay('killed'), extractor: 'book', extractorVersion: 2, filter: {} }
      const shadow = { topic: shadowTopicOf(topics, 'killed'), ranges: [{ partition: 0, from: '0', until: '9' }] }
      await createRecordsTopic(runtime, shadow.topic)
      await beginRequest(runtime, { ...of, shadow })
      await expect(forgetReplay(runtime, 'killed')).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
      const payload = { ...of, shadow, cancelled: true }
      await announce(runtime, { kind: 'request', subject: subject.replay('killed'), payload })
      expect(await forgetReplay(runtime, 'killed')).toMatchObject({ isDeleted: true })
    })
  })

  it('has its records counted until its process has ended', async () => {
    await deployment.read(async (runtime) => {
      await storePages(runtime, range(200))
      let atWork = 0n
      const onProgress: ShadowOptions['onProgress'] = ({ done }) => {
        atWork = done
      }
      const running = shadow(runtime, 'off', book(BOOK_2), { rate: 5, onProgress })
      await eventually(() => atWork > 0n, { what: 'the first page' })
      expect(await cancelReplay(runtime, 'off')).toMatchObject({ state: 'cancelled' })
      const report = await running
      expect(report.cancelled).toBe(true)
      const { state, totals } = await replayStatus(runtime, 'off')
      const written = await recordsOf(runtime, report.topic, 'book')
      expect([state, totals.records]).toEqual(['cancelled', written.length])
      await expect(cancelReplay(runtime, 'off')).rejects.toMatchObject({ code: 'USAGE' })
    })
  })
})

describe('what a shadow is held against', () => {
  it('is compared item by item, where retention has taken the first of a page', async () => {
    await deployment.read(async (runtime) => {
      const html = '<p>a</p><p>b</p><p>c</p>'
      await storePages(runtime, [{ index: 1, html }])
      const extractor = book("name: book\nversion: 1\neach: p\nfields: { text: '.' }")
      const report = await shadow(runtime, 'many', extractor)
      expect(report.records).toBe(3)
      // The records may not be seen yet: their transactions have ended, and leave their marks.
      const { low } = await eventually(() => firstOf(runtime, report.topic))
      await runtime.admin.deleteRecordsBefore(report.topic, new Map([[low.partition, low.offset + 1n]]))
      const plan = await planRange(runtime, runtime.groups.extract(), { start: { kind: 'earliest' }, filter: {} }, false)
      const comparison = await compareShadow(runtime, report, extractor, { plan, filter: {} })
      expect(comparison.records).toMatchObject({ added: 2, removed: 0 })
      const stop = AbortSignal.abort(new Error('no more'))
      await expect(compareShadow(runtime, report, extractor, { plan, filter: {} }, { signal: stop })).rejects.toThrow('no more')
    })
  })

  it('is the same pages for a preview and the run that goes by it, however the domain is written', async () => {
    await deployment.read(async (runtime) => {
      await storePages(runtime, range(4))
      const library = libraryOf(runtime, book(BOOK_2))
      const options = { extractor: 'book', filter: { domain: 'Shop-Books.COM' } }
      const preview = await library.preview(options)
      expect(preview.pages.compared).toBe(4)
      const ran = await library.run({ ...options, mode: 'shadow', expect: preview.hash })
      expect(ran).toMatchObject({ records: 4 })
    })
  })
})

/** Where the first message of a topic lies, in the partition that has any. */
async function firstOf(runtime: Runtime, topic: string): Promise<{ low: { partition: number; offset: bigint } }> {
  for (const partition of await runtime.admin.partitions(topic)) {
    const { low, stableEnd } = await runtime.admin.logBounds({ topic, partition })
    if (stableEnd > low) return { low: { partition, offset: low } }
  }
  throw new Error(`${topic} is empty`)
}
