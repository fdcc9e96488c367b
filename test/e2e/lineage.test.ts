import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { applyTopics } from '../../src/control/runtime/topics.ts'
import { lines } from '../support/cli.ts'
import { Deployment, type OnTopic, type RecordOnTopic } from '../support/deployment.ts'
import { uniqueName } from '../support/services.ts'
import { BOOK_1, bookHtml } from '../support/stored-shop.ts'

interface Lineage {
  readonly traceId: string
  readonly records: {
    at: { topic: string; partition: number }
    record: { recordId: string; data: object; source: { partition: number; offset: number } }
    tombstone: unknown
  }[]
  readonly page: { at: { partition: number; offset: string }; page: Record<string, unknown> }
  readonly pageAt: unknown
  readonly task: { at: { topic: string }; task: { url: string; taskId: string } }
  readonly outcomes: { outcome: { kind: string } }[]
  readonly timing: { step: string; at: number; afterMs: number }[]
}

/** Bytes that are no UTF-8 whole: a body that was transcoded would not come back. */
const body = Buffer.concat([Buffer.from(bookHtml(7)), Buffer.from([0xff, 0xfe, 0x00, 0xe9])])

let server: Server
let deployment: Deployment
let url: string

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/robots.txt') response.writeHead(404).end()
    else if (request.url === '/old') response.writeHead(301, { location: '/books/7' }).end()
    else if (request.url === '/books/void') response.writeHead(200, { 'content-type': 'text/html' }).end('<p>nothing of a book')
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'x-shelf': 'nine' }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://shop.example:${(server.address() as AddressInfo).port}/old`
  deployment = await Deployment.open()
  deployment.file('book.yaml', BOOK_1)
  const crawled = await deployment.run(['run', url, '--extractor', 'book.yaml', '--crawl', 'spring'])
  if (crawled.code !== 0) throw new Error(crawled.stderr)
})

afterAll(async () => {
  await deployment.close()
  server.close()
})

describe('millrace lineage', () => {
  it('leads from a record to its page, its task, its outcome and the time of each step', async () => {
    const [record] = await deployment.records()
    const result = await deployment.run(['lineage', record?.value.recordId ?? '', '--json'])
    const found = JSON.parse(result.stdout) as Lineage
    expect(found.records.map(({ record: { recordId, data } }) => [recordId, data])).toEqual([[record?.value.recordId, record?.value.data]])
    expect(found.page.page).toMatchObject({
      status: 200,
      bodySha256: record?.value.bodySha256,
      redirects: [{ status: 301, location: '/books/7' }],
      headers: expect.arrayContaining([{ name: 'x-shelf', value: 'nine' }]) as unknown,
    })
    expect(found.page.page.body).toBeUndefined()
    expect(found.task.task).toMatchObject({ url, taskId: found.page.page.taskId, crawlId: 'spring' })
    expect(found.outcomes.map(({ outcome }) => outcome.kind)).toEqual(['FETCHED'])
    expect(found.timing.map(({ step }) => step)).toEqual(['enqueued', 'request sent', 'fetched', 'outcome', 'extracted'])
    expect(found.traceId).toMatch(/^[0-9a-f]{32}$/)
    const [consumed] = lines<{ value: { body: string } }>(
      await deployment.run(['consume', 'html', '--offset', `${found.page.at.partition}:${found.page.at.offset}`, '--max', '1', '--body']),
    )
    expect(Buffer.from(consumed?.value.body ?? '', 'base64').equals(body)).toBe(true)
  })

  it('leads from a URL to what was made of its last page, for people', async () => {
    const result = await deployment.run(['lineage', url])
    const [record] = await deployment.records()
    expect(result.code).toBe(0)
    expect(result.stdout).toContain(`record   ${record?.value.recordId}  book version 1`)
    expect(result.stdout).toContain('x-shelf: nine')
    expect(result.stdout).toContain('redirect 301')
    expect(result.stdout).toContain('outcome  FETCHED')
  })

  it('leads to the same page from the URL that answered, which the record names', async () => {
    const [record] = await deployment.records()
    const result = await deployment.run(['lineage', url.replace('/old', '/books/7'), '--json'])
    const found = JSON.parse(result.stdout) as Lineage
    expect([found.page?.page.url, found.pageAt]).toEqual([url, { ...record?.value.source, offset: `${record?.value.source.offset}` }])
    expect(found.records).toHaveLength(1)
  })

  it('tells the dead letter of a page that gave no record, and the reason', async () => {
    const page = url.replace('/old', '/books/void')
    const crawled = await deployment.run(['run', page, '--extractor', 'book.yaml', '--crawl', 'autumn'])
    expect(crawled.code, crawled.stderr).toBe(0)
    const result = await deployment.run(['lineage', page])
    expect(result.stdout).toMatch(/^failure {2}EXTRACT_FIELD_MISSING, book:1\n {9}dead letter \d+:\d+: .+sku/m)
    expect(result.stdout).toContain('record   none is there of this page')
  })

  it('finds records on topics that an extractor or a shadow replay has named, whatever they are called', async () => {
    const [named, beside] = [uniqueName('books'), uniqueName('beside')]
    deployment.file('named.yaml', `${BOOK_1.replace('name: book', 'name: named')}topic: ${named}\n`)
    await deployment.read((runtime) => applyTopics(runtime, [named]))
    const again = await deployment.run(['run', url.replace('/old', '/books/8'), '--extractor', 'named.yaml', '--crawl', 'summer'])
    expect(again.code, again.stderr).toBe(0)
    const shadow = await deployment.run(['replay', 'run', '--extractor', 'named.yaml', '--shadow', '--out', beside, '--crawl', 'summer'])
    expect(shadow.code, shadow.stderr).toBe(0)
    const [consumed] = lines<{ value: { recordId: string } }>(await deployment.run(['consume', named]))
    const result = await deployment.run(['lineage', consumed?.value.recordId ?? '', '--json'])
    expect(result.code, result.stderr).toBe(0)
    const { records } = JSON.parse(result.stdout) as { records: { at: { topic: string } }[] }
    expect(records.map(({ at }) => at.topic)).toEqual([named, beside])
    const drift = JSON.parse((await deployment.run(['status', '--fields', '--json'])).stdout) as {
      fields: { extractor: string; records: number }[]
    }
    expect(drift.fields.map(({ extractor, records: count }) => [extractor, count])).toEqual([
      ['book', 1],
      ['named', 1],
    ])
  })

  it.each([
    ['00000000000000000000000000000000', 'no topic of records holds a record'],
    ['http://nobody.example/', 'html holds no page of'],
    ['nonsense', 'is neither a record id'],
  ])('%s ends with 2 and says what was not found', async (what, text) => {
    const result = await deployment.run(['lineage', what])
    expect([result.code, result.stdout]).toEqual([2, ''])
    expect(result.stderr).toContain(text)
  })

  it('shows what is left of a page that is gone by retention, and says what is gone', async () => {
    const [record] = (await deployment.records()) as [OnTopic<RecordOnTopic>]
    const { recordId, source } = record.value
    const before = JSON.parse((await deployment.run(['lineage', recordId, '--json'])).stdout) as Lineage
    await deployment.read(({ admin, topics }) =>
      admin.deleteRecordsBefore(topics.html, new Map([[source.partition, BigInt(source.offset) + 1n]])),
    )
    // By the URL that was asked for, by the one that answered, and by the record.
    for (const what of [recordId, url, url.replace('/old', '/books/7')]) {
      const found = JSON.parse((await deployment.run(['lineage', what, '--json'])).stdout) as Lineage
      expect({ ...found, timing: undefined }, what).toEqual({ ...before, page: null, timing: undefined })
      expect(found.timing.map(({ step }) => step)).toEqual(['enqueued', 'fetched', 'outcome', 'extracted'])
    }
    const told = await deployment.run(['lineage', recordId])
    expect(told.stdout).toContain(
      `page     gone by retention (topics.retention.html); it was at ${source.topic}/${source.partition} offset ${source.offset}\ntask     `,
    )
    expect(told.stdout).toContain('outcome  FETCHED')
    await deployment.read(async ({ admin, topics }) => {
      for (const topic of [topics.urls.normal, topics.outcomes])
        await admin.deleteRecordsBefore(topic, await admin.endOffsets(topic, 'read_committed'))
    })
    const least = await deployment.run(['lineage', recordId])
    expect(least.stdout).toContain(
      '\ntask     gone: URLs that are done are deleted after a time (topics.retention.urls)\noutcome  none is left',
    )
    expect(JSON.parse((await deployment.run(['lineage', recordId, '--json'])).stdout)).toMatchObject({
      records: before.records,
      pageAt: before.pageAt,
      task: null,
      outcomes: [],
    })
  })

  it('tells that the key of a record was deleted behind it, and nothing of what came after that', async () => {
    const [record] = await deployment.records()
    const found = async (): Promise<Lineage['records']> => {
      const result = await deployment.run(['lineage', record?.value.recordId ?? '', '--json'])
      return (JSON.parse(result.stdout) as Lineage).records
    }
    const [before] = await found()
    expect(before?.tombstone).toBeNull()
    const { topic = '', partition = 0 } = before?.at ?? {}
    const deleted = { topic, partition, key: record?.message.key?.toString() ?? '', value: null }
    await deployment.read(async (runtime) => (await runtime.producer()).send([deleted]))
    expect((await found()).map(({ tombstone }) => tombstone)).toEqual([{ topic, partition, offset: expect.any(String) as unknown }])
    const text = await deployment.run(['lineage', record?.value.recordId ?? ''])
    expect(text.stdout).toMatch(/deleted by a tombstone at /)
    const { value = null, headers = {} } = record?.message ?? {}
    await deployment.read(async (runtime) => (await runtime.producer()).send([{ ...deleted, value, headers }]))
    expect((await found()).map(({ tombstone }) => tombstone !== null)).toEqual([true, false])
  })
})
