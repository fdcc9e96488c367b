import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collectBlobs } from '../../../src/control/blobs.ts'
import { resolveDeadLetters } from '../../../src/control/dead-letters/requeue.ts'
import type { Runtime } from '../../../src/control/runtime/runtime.ts'
import { DeadLetterPublisher } from '../../../src/kafka/dead-letter-publisher.ts'
import { bodyRefOf } from '../../../src/message/body-ref.ts'
import { Deployment } from '../../support/deployment.ts'
import { eventually } from '../../support/eventually.ts'
import { testPage } from '../../support/extraction.ts'
import { setTopicConfigs } from '../../support/kafka.ts'
import { uniqueName } from '../../support/services.ts'

const DAY_MS = 86_400_000
const HOURS = 1 / 24
/** In days, of html where nothing else is set. */
const RETENTION = 14
const now = Date.now()
let deployment: Deployment
let folder: string

const blobs = (): string[] => readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.'))

/** A page of some days ago whose body is in the blob store; the page itself has left html. */
async function storeBody(runtime: Runtime, daysAgo: number) {
  const page = testPage(`<h1>${daysAgo}</h1>`, undefined, { fetchedAt: now - daysAgo * DAY_MS })
  const ref = bodyRefOf(page)
  await (await runtime.blobs())?.put(ref, page.body)
  const seconds = page.fetchedAt / 1_000
  utimesSync(join(folder, ref.slice(0, 2), ref), seconds, seconds)
  return { ref, page: { ...page, body: Buffer.alloc(0), bodyRef: ref } }
}

async function bury(runtime: Runtime, page: Awaited<ReturnType<typeof storeBody>>['page']): Promise<void> {
  const { topics, codec } = runtime
  await codec.prepare(topics.html, 'Page')
  const original = {
    topic: topics.html,
    partition: 0,
    offset: 7n,
    timestamp: page.fetchedAt,
    key: Buffer.from(page.canonicalUrl),
    value: codec.encode('Page', page, topics.html),
    headers: {},
  }
  const maxBytes = runtime.maxBatchBytes(topics.deadLetters)
  const publisher = new DeadLetterPublisher({ topics, layout: await runtime.layout(), maxBytes })
  const failure = { stage: 'extract', code: 'EXTRACT_FAILED', message: 'no', extractor: 'book:1', failedAt: now } as const
  await (await runtime.producer()).send([publisher.message(original, failure)])
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-collect-'))
  deployment = await Deployment.open({ set: [`blobs.url=${pathToFileURL(folder).href}`] })
})
afterAll(async () => {
  await deployment.close()
  rmSync(folder, { recursive: true, force: true })
})

/** As Kafka's tool sets it, however long the configuration says. */
async function keepPages(runtime: Runtime, retentionMs: number): Promise<void> {
  await setTopicConfigs(runtime.admin, runtime.topics.html, { 'retention.ms': String(retentionMs) })
}

describe('collecting bodies', () => {
  it('goes by the retention of html, the longer of the two, and a day; where pages are kept for ever, so is all', async () => {
    await deployment.read(async (runtime) => {
      const left = async (...daysAgo: readonly number[]): Promise<boolean[]> => {
        const stored = await Promise.all(daysAgo.map((days) => storeBody(runtime, days)))
        await collectBlobs(runtime, { execute: true })
        const names = blobs().map((name) => name.slice(3))
        return stored.map(({ ref }) => names.includes(ref))
      }
      expect(await left(RETENTION + 23 * HOURS, RETENTION + 25 * HOURS)).toEqual([true, false])
      await keepPages(runtime, 20 * DAY_MS)
      expect(await left(20 + 23 * HOURS, 20 + 25 * HOURS)).toEqual([true, false])
      await keepPages(runtime, -1)
      expect(await left(400)).toEqual([true])
      // What is kept longer by the configuration alone is kept as well.
      await keepPages(runtime, 2 * DAY_MS)
      expect(await left(RETENTION + 23 * HOURS, 400)).toEqual([true, false])
      await keepPages(runtime, RETENTION * DAY_MS)
    })
    rmSync(folder, { recursive: true })
    mkdirSync(folder)
  })

  it('keeps those of dead letters that are open, however old, and of none that are dealt with', async () => {
    await deployment.read(async (runtime) => {
      const [needed, forgotten] = [await storeBody(runtime, 40), await storeBody(runtime, 45)]
      await bury(runtime, needed.page)
      const report = await collectBlobs(runtime, { execute: true })
      expect(report.collected.count).toBe(1)
      expect(blobs().map((name) => name.slice(3))).toEqual([needed.ref])
      expect(forgotten.ref).not.toBe(needed.ref)
      await expect(resolveDeadLetters(runtime, { action: 'requeued', filter: {}, execute: false })).resolves.toMatchObject({ pages: 1 })

      await resolveDeadLetters(runtime, { action: 'dropped', filter: {}, execute: true })
      // Until the mark of the transaction is seen the dead letter counts as open.
      await eventually(async () => (await collectBlobs(runtime, { execute: true })).collected.count === 1, { what: 'the mark of the drop' })
      expect(blobs()).toEqual([])
    })
  })

  it('keeps those of pages behind a marker of a transaction that lies first', async () => {
    await deployment.read(async (runtime) => {
      const { admin, client, codec, topics } = runtime
      const { ref, page } = await storeBody(runtime, 60)
      const producer = client.kafka.producer({ transactionalId: uniqueName('marker'), idempotent: true, maxInFlightRequests: 1 })
      await producer.connect()
      const transaction = await producer.transaction()
      await transaction.send({ topic: topics.html, messages: [{ partition: 3, value: 'x' }] })
      await transaction.commit()
      await producer.disconnect()
      await codec.prepare(topics.html, 'Page')
      const value = codec.encode('Page', page, topics.html)
      await (await runtime.producer()).send([{ topic: topics.html, partition: 3, key: null, value, timestamp: page.fetchedAt }])
      await admin.deleteRecordsBefore(topics.html, new Map([[3, 1n]]))
      await eventually(async () => (await admin.earliestOffsets(topics.html)).get(3) === 1n, { what: 'the deletion' })
      expect((await collectBlobs(runtime, { execute: true })).collected.count).toBe(0)
      expect(blobs().map((name) => name.slice(3))).toEqual([ref])
    })
  })
})
