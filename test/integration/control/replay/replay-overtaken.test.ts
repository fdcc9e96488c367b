import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { announceExtractors } from '../../../../src/control/extractors/announce-extractors.ts'
import { createExtract } from '../../../../src/control/extractors/create-extract.ts'
import { followReplay } from '../../../../src/control/replay/replay-in-place.ts'
import { beginRequest } from '../../../../src/control/replay/replay-ledger.ts'
import { replayStatus } from '../../../../src/control/replay/replay-status.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { ExtractWorker } from '../../../../src/extract/extract-worker.ts'
import { loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { decodeMetadata } from '../../../../src/extract/offset-metadata.ts'
import { partitionId } from '../../../../src/kernel/brand.ts'
import { Deployment } from '../../../support/deployment.ts'
import { RecordingObserver } from '../../../support/embedded.ts'
import { eventually } from '../../../support/eventually.ts'
import { QUICK_MEMBER } from '../../../support/kafka-fixture.ts'
import { BOOK_1, caughtUp, storePages } from '../../../support/stored-shop.ts'

const PAGES = 30
const LOW = 20
const never = new AbortController().signal

let deployment: Deployment
beforeEach(async () => {
  deployment = await Deployment.open({ set: ['topics.partitions.urls=1'] })
})
afterEach(() => deployment.close())

/** A worker that holds two pages, so that it comes back to the log for each one, and commits each. */
async function worker(runtime: Runtime, work: () => Promise<void>): Promise<void> {
  const { client, admin, codec, topics, clock, observer } = runtime
  const extractors = [loadDefinition('book.yaml', BOOK_1)]
  await announceExtractors(runtime, extractors)
  const groupId = runtime.groups.extract()
  const { host } = await createExtract(runtime, extractors, { groupId, onReplayDone: async () => undefined })
  const held = new ExtractWorker({
    client,
    admin,
    groupId,
    topic: topics.html,
    recordsTopic: topics.records,
    deadLettersTopic: topics.deadLetters,
    extraction: host,
    codec,
    control: await runtime.control(),
    layout: await runtime.layout(),
    maxBatchBytes: runtime.maxBatchBytes,
    limits: { maxWaitingPages: 2, maxPages: 1 },
    settings: { ...QUICK_MEMBER, maxBytesPerPartition: 1 },
    clock,
    observer,
  })
  await host.start()
  await held.start()
  await work()
  await held.stop({ mode: 'drain', timeoutMs: 10_000 })
  await host.stop({ mode: 'drain', timeoutMs: 10_000 })
}

describe('a replay in place under which retention deletes the pages that come next', () => {
  it('goes on at what is left, and nothing of it or of live work is done again', async () => {
    const observer = new RecordingObserver()
    const status = await deployment.read(async (runtime) => {
      const { admin, topics } = runtime
      const groupId = runtime.groups.extract()
      for (let index = 0; index < PAGES; index += 1) await storePages(runtime, [{ index }])
      await worker(runtime, async () => {
        await caughtUp(deployment)
        const ranges = [{ partition: 0, from: '0', until: String(PAGES) }]
        await beginRequest(runtime, { replayId: 'r', groupId, extractor: 'book', extractorVersion: 1, filter: {}, ranges, rate: 2 })
        await eventually(async () => (await replayStatus(runtime, 'r')).doneOffsets >= 3, { what: 'the replay to read' })
        await admin.deleteRecordsBefore(topics.html, new Map([[0, BigInt(LOW)]]))
        await followReplay(runtime, 'r', { until: 'done', signal: never })
      })
      const stored = (await admin.committedOffsets(groupId, [topics.html])).get(partitionId(topics.html, 0))
      expect(stored?.offset).toBe(BigInt(PAGES))
      expect(decodeMetadata(stored?.metadata ?? '')).toMatchObject({ since: 0n, totals: { extractors: { book: { pages: PAGES } } } })
      return replayStatus(runtime, 'r')
    }, observer)
    expect(observer.events.filter(({ fields }) => fields.reason === 'while-reading')).toHaveLength(1)
    const { totals, gone = 0 } = status
    expect(status).toMatchObject({ state: 'done', doneOffsets: PAGES, totals: { pages: PAGES - gone } })
    expect(totals.pages).toBeGreaterThanOrEqual(PAGES - LOW + 3)
    expect(gone).toBeGreaterThan(0)
    const offsetsBy = async (replayId: string | null): Promise<number[]> =>
      (await deployment.records()).filter(({ value }) => value.replayId === replayId).map(({ value }) => Number(value.source.offset))
    expect(await offsetsBy(null)).toEqual(Array.from({ length: PAGES }, (_, offset) => offset))
    expect((await offsetsBy('r')).slice(LOW - PAGES)).toEqual(Array.from({ length: PAGES - LOW }, (_, index) => LOW + index))
    expect(await offsetsBy('r')).toHaveLength(totals.records)
  })
})
