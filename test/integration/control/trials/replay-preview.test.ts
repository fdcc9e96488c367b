import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compareShadow } from '../../../../src/control/replay/shadow-comparison.ts'
import { runShadow } from '../../../../src/control/replay/shadow-replay.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { planRange } from '../../../../src/control/trials/plan-range.ts'
import { estimateRange } from '../../../../src/control/trials/replay-estimate.ts'
import { type PreviewReport, previewReplay } from '../../../../src/control/trials/replay-preview.ts'
import { type LoadedExtractor, loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { Deployment } from '../../../support/deployment.ts'
import { BOOK_2, bookHtml, extractStored, range, storePages } from '../../../support/stored-shop.ts'

const PAGES = 4
const never = new AbortController().signal
const book = (text: string): LoadedExtractor => loadDefinition('book.yaml', text)
const planOfAll = (runtime: Runtime) => planRange(runtime, runtime.groups.extract(), { start: { kind: 'earliest' }, filter: {} }, false)

let deployment: Deployment
let elsewhere: LoadedExtractor

async function preview(runtime: Runtime, extractor: LoadedExtractor): Promise<PreviewReport> {
  return previewReplay(runtime, { extractor, against: undefined, plan: await planOfAll(runtime), filter: {}, sample: 'all' })
}

beforeAll(async () => {
  deployment = await Deployment.open()
  elsewhere = book(BOOK_2.replace('key: sku', `topic: ${deployment.prefix}records.books\nkey: sku`))
  await deployment.read((runtime) => storePages(runtime, range(PAGES)))
  await extractStored(deployment)
})
afterAll(() => deployment.close())

describe('a version that names another topic', () => {
  it('is held against the records of the version before, and it is told that they lie elsewhere', async () => {
    await deployment.read(async (runtime) => {
      const report = await preview(runtime, elsewhere)
      expect(report.records).toMatchObject({ added: 0, removed: 0 })
      expect(report.before.versions).toEqual({ 1: PAGES })
      expect(report).toMatchObject({ topic: `${deployment.prefix}records.books`, movedFrom: [runtime.topics.records] })
    })
  })

  it('is so as a shadow', async () => {
    await deployment.read(async (runtime) => {
      const plan = await planOfAll(runtime)
      const rest = { filter: {}, plan, rate: undefined, out: undefined, drainTimeoutMs: 10_000, draining: never, aborting: never }
      const report = await runShadow(runtime, { replayId: 'moved', extractor: elsewhere, ...rest })
      expect((await compareShadow(runtime, report, elsewhere, { plan, filter: {} })).records).toMatchObject({ added: 0, removed: 0 })
    })
  })
})

describe('records that their topic does not take', () => {
  it('are foreseen: the largest is told, and the version is held back', async () => {
    await deployment.read(async (runtime) => {
      const small = await preview(runtime, book(BOOK_2))
      expect(small.largestRecord?.bytes).toBeLessThan(2_000)
      expect(small.largestRecord?.limit).toBe(1_048_588 - 70)
      const large = bookHtml(9).replace('Book 9', 'x'.repeat(1_100_000))
      await storePages(runtime, [{ index: 9, html: large }])
      const report = await preview(runtime, book(BOOK_2))
      expect(report.largestRecord?.bytes).toBeGreaterThan(1_100_000)
      expect(report.largestRecord?.url).toContain('/b/9')
      expect(report.gate.reasons).toEqual([expect.stringMatching(/^1 page would become dead letters.*EXTRACT_RECORD_TOO_LARGE/)])
      // A topic that was made by hand takes less than we would set.
      await runtime.admin.createTopics(
        runtime
          .wantedTopics([elsewhere.topic ?? ''])
          .flatMap((wanted) =>
            wanted.topic === elsewhere.topic ? [{ ...wanted, configs: { ...wanted.configs, 'max.message.bytes': '300' } }] : [],
          ),
      )
      expect((await preview(runtime, elsewhere)).records.failed).toBe(PAGES + 1)
    })
  })
})

describe('what a replay would cost', () => {
  it('is not told from half a sample', async () => {
    await deployment.read(async (runtime) => {
      const whole = await planOfAll(runtime)
      // So long that single places of it are probed.
      const offsets = 100_000n
      const long = { ...whole, offsets, partitions: whole.partitions.map((each) => ({ ...each, until: each.from + offsets, offsets })) }
      const signal = AbortSignal.abort(new Error('stopped by SIGINT'))
      for (const plan of [whole, long])
        await expect(estimateRange(runtime, plan, { extractor: book(BOOK_2), filter: {}, signal })).rejects.toThrow('stopped by SIGINT')
    })
  })
})

describe('a page whose schema nobody here knows', () => {
  it('fails in a preview of all pages and of a sample, and what is no page does not', async () => {
    await deployment.read(async (runtime) => {
      const { topics } = runtime
      const [unknown, rubbish] = [Buffer.from('c301ffffffffffffffff02', 'hex'), Buffer.from('rubbish')]
      const sent = [unknown, rubbish].map((value) => ({ topic: topics.html, partition: 0, key: 'http://shop-books.com/', value }))
      await (await runtime.producer()).send(sent)
      const plan = await planOfAll(runtime)
      for (const sample of ['all', 100] as const) {
        const report = await previewReplay(runtime, { extractor: book(BOOK_2), against: undefined, plan, filter: {}, sample })
        const unread = report.failures.filter(({ code }) => code.startsWith('MESSAGE_'))
        expect(unread).toMatchObject([{ code: 'MESSAGE_SCHEMA_UNKNOWN', pages: 1, gaveRecords: 0 }])
      }
    })
  })
})
