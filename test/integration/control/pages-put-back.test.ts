import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pageKey } from '../../../src/comparison/compare.ts'
import { audit } from '../../../src/control/crawls/audit.ts'
import { listDeadLetters } from '../../../src/control/dead-letters/dead-letters.ts'
import { resolveDeadLetters } from '../../../src/control/dead-letters/requeue.ts'
import { fieldDrift } from '../../../src/control/extractors/field-drift.ts'
import { lineage } from '../../../src/control/inspect/lineage.ts'
import { promote } from '../../../src/control/promote.ts'
import { recordsOf } from '../../../src/control/records/stored-records.ts'
import { followReplay } from '../../../src/control/replay/replay-in-place.ts'
import { runBeside, runInPlace } from '../../../src/control/replay/run-replay.ts'
import { planTombstones } from '../../../src/control/replay/tombstones.ts'
import type { Runtime } from '../../../src/control/runtime/runtime.ts'
import { planRange } from '../../../src/control/trials/plan-range.ts'
import { previewReplay } from '../../../src/control/trials/replay-preview.ts'
import { type LoadedExtractor, loadDefinition } from '../../../src/extract/load-extractors.ts'
import { shadowTopicOf } from '../../../src/message/topics.ts'
import { committed, Deployment } from '../../support/deployment.ts'
import { eventually } from '../../support/eventually.ts'
import { BOOK_1, BOOK_2, bookHtml, caughtUp, range, type ShopPage, storePages } from '../../support/stored-shop.ts'

const GOOD = 6
const BAD = 2
const PAGES = GOOD + BAD
const never = new AbortController().signal
const earliest = { start: { kind: 'earliest' }, filter: {} } as const
/** Reads what version 1 fails on. */
const LENIENT = BOOK_2.replace('key: sku', 'key: title').replace('  sku: { select: .sku, required: true }\n', '')

const book = (text: string): LoadedExtractor => loadDefinition('book.yaml', text)
const unnumbered = (index: number): ShopPage => ({ index, html: bookHtml(index).replace(/<p class="sku">.*?<\/p>/, '') })

let deployment: Deployment

beforeEach(async () => {
  deployment = await Deployment.open()
  deployment.file('book.yaml', BOOK_1)
  deployment.file('lenient.yaml', LENIENT)
  await deployment.read((runtime) => storePages(runtime, [...range(GOOD), unnumbered(GOOD), unnumbered(GOOD + 1)]))
  deployment.start(['extract', '--extractor', 'book.yaml', '--extractor', 'lenient.yaml'])
  await caughtUp(deployment)
})
afterEach(() => deployment.close())

async function putBack(runtime: Runtime): Promise<void> {
  expect(await resolveDeadLetters(runtime, { action: 'requeued', filter: {}, execute: true })).toMatchObject({ pages: BAD })
  await caughtUp(deployment)
}

async function inPlace(runtime: Runtime, replayId: string, text: string): Promise<object> {
  const request = { replayId, extractor: book(text), scope: earliest, group: undefined, rate: undefined, expect: undefined }
  await runInPlace(runtime, { ...request, force: 'a test', signal: never })
  return (await followReplay(runtime, replayId, { until: 'done', signal: never })).totals
}

async function shadow(runtime: Runtime, replayId: string, text: string, scope: Parameters<typeof planRange>[2] = earliest) {
  const rest = { group: undefined, out: undefined, drainTimeoutMs: 10_000, draining: never, aborting: never }
  const request = { replayId, extractor: book(text), scope, rate: undefined, expect: undefined, ...rest }
  const { report, comparison } = await runBeside(runtime, request)
  const sources = (await recordsOf(runtime, shadowTopicOf(runtime.topics, replayId), 'book')).map(({ source }) => pageKey(source))
  return { report, comparison, sources: sources.sort() }
}

async function preview(runtime: Runtime, text: string, sample: number | 'all', scope = earliest) {
  const plan = await planRange(runtime, runtime.groups.extract(), scope, false)
  return previewReplay(runtime, { extractor: book(text), against: undefined, plan, filter: {}, sample })
}

/** Where the pages lie that fetch has written. */
async function stored(runtime: Runtime): Promise<string[]> {
  const pages = await committed(runtime, runtime.topics.html)
  return pages.filter(({ headers }) => headers['millrace-requeued'] === undefined).map(pageKey)
}

async function letters(runtime: Runtime): Promise<number> {
  let count = 0
  for await (const _ of listDeadLetters(runtime, {})) count += 1
  return count
}

describe('pages that are put back', () => {
  it('count once, round for round, whoever reads what is stored', async () => {
    await deployment.read(async (runtime) => {
      for (const round of [1, 2, 3]) {
        await putBack(runtime)
        expect(await inPlace(runtime, `round-${round}`, BOOK_1)).toEqual({ pages: PAGES, records: GOOD, none: 0, deadLetters: BAD })
        // Of live work and of the replay.
        expect(await letters(runtime)).toBe(2 * BAD)
      }
      expect((await committed(runtime, runtime.topics.html)).length).toBe(PAGES + 3 * BAD)
      for (const sample of ['all', PAGES] as const) {
        const { records, pages, failures } = await preview(runtime, BOOK_1, sample)
        expect(pages.compared).toBe(PAGES)
        expect(records).toEqual({ same: GOOD, added: 0, removed: 0, changed: 0, failed: BAD })
        expect(failures).toMatchObject([{ pages: BAD }])
      }
      const { report, comparison } = await shadow(runtime, 'beside', BOOK_1)
      expect(report).toMatchObject({ records: GOOD, deadLetters: BAD })
      expect(comparison?.records).toMatchObject({ same: GOOD, failed: BAD })
      const { extract } = await audit(runtime)
      expect(extract).toMatchObject([{ noMatch: 0, extractors: [{ extractor: 'book', totals: { pages: PAGES, records: GOOD } }] }])
      expect(await fieldDrift(runtime)).toMatchObject([{ version: 1, records: GOOD, pages: GOOD, recordsPerPage: 1 }])
    })
  })

  it('count for live work no more than the replay did whose dead letters they were, round for round', async () => {
    await deployment.read(async (runtime) => {
      await resolveDeadLetters(runtime, { action: 'dropped', filter: {}, execute: true })
      expect(await inPlace(runtime, 'failing', BOOK_1)).toMatchObject({ pages: PAGES, deadLetters: BAD })
      for (const _round of [1, 2]) {
        await putBack(runtime)
        expect(await letters(runtime)).toBe(BAD)
      }
      const totals = { pages: PAGES, records: GOOD, none: 0, deadLetters: BAD }
      expect((await audit(runtime)).extract).toMatchObject([{ noMatch: 0, extractors: [{ extractor: 'book', totals }] }])
    })
  })

  it('give the records that a replay gives of the page itself', async () => {
    await deployment.read(async (runtime) => {
      await promote(runtime, { loaded: [book(BOOK_1), book(LENIENT)], name: 'book', version: 2, force: 'a test', signal: never })
      await putBack(runtime)
      const live = await eventually(async () => {
        const found = await recordsOf(runtime, runtime.topics.records, 'book', 2)
        return found.length === BAD && found
      })
      expect(await stored(runtime)).toEqual(expect.arrayContaining(live.map(({ source }) => pageKey(source))))
      const { comparison } = await shadow(runtime, 'same', LENIENT)
      // Of version 1 every key was another one.
      expect(comparison?.records).toMatchObject({ same: BAD, added: GOOD, removed: GOOD, failed: 0 })
      expect(await inPlace(runtime, 'all', LENIENT)).toMatchObject({ pages: PAGES, records: PAGES })
      const twice = (await recordsOf(runtime, runtime.topics.records, 'book', 2)).filter(({ recordId }) =>
        live.some((record) => record.recordId === recordId),
      )
      expect(twice.length).toBe(2 * BAD)
      for (const record of twice) {
        const first = live.find(({ recordId }) => recordId === record.recordId)
        const ofWork = { extractedAt: 0, replayId: null, traceId: null }
        expect({ ...record, ...ofWork }).toEqual({ ...first, ...ofWork })
      }
      expect((await planTombstones(runtime, 'all')).keys.length).toBe(GOOD)
      expect((await audit(runtime)).extract).toMatchObject([{ extractors: [{ totals: { pages: PAGES, deadLetters: BAD } }] }])
    })
  })

  it('are read where the page itself lies outside of what is replayed, or is gone: once', async () => {
    await deployment.read(async (runtime) => {
      const { admin, topics } = runtime
      const pages = await stored(runtime)
      const ends = await admin.endOffsets(topics.html, 'read_uncommitted')
      const failed = (await committed(runtime, topics.deadLetters)).map(({ headers }) =>
        [headers['millrace-orig-partition'], headers['millrace-orig-offset']].join(':'),
      )
      await putBack(runtime)
      await putBack(runtime)
      const path = deployment.file('from.csv', [...ends].map(([partition, end]) => `${topics.html},${partition},${end}\n`).join(''))
      const late = { start: { kind: 'file', path }, filter: {} } as const
      const { report, sources } = await shadow(runtime, 'late', LENIENT, late)
      expect(report).toMatchObject({ records: BAD, deadLetters: 0 })
      expect(sources).toEqual(failed.sort())
      expect(pages).toEqual(expect.arrayContaining(sources))
      const plan = await planRange(runtime, runtime.groups.extract(), late, false)
      const { pages: seen } = await previewReplay(runtime, {
        extractor: book(LENIENT),
        against: undefined,
        plan,
        filter: {},
        sample: 'all',
      })
      expect(seen.compared).toBe(BAD)

      await admin.deleteRecordsBefore(topics.html, ends)
      await eventually(async () =>
        [...(await admin.earliestOffsets(topics.html))].every(([partition, low]) => low >= (ends.get(partition) ?? 0n)),
      )
      const rest = await shadow(runtime, 'rest', LENIENT)
      expect(rest.report).toMatchObject({ records: BAD })
      expect(rest.sources).toEqual(failed)
      const [record] = await recordsOf(runtime, shadowTopicOf(topics, 'rest'), 'book')
      const found = await lineage(runtime, record?.recordId ?? '')
      expect(found.page?.page.url).toBe(record?.url)
    })
  })
})
