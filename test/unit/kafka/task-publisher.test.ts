import { describe, expect, it } from 'vitest'
import type { OutgoingMessage } from '../../../src/kafka/message.ts'
import { TaskPublisher } from '../../../src/kafka/task-publisher.ts'
import { createMessageCodec } from '../../../src/message/codec.ts'
import { singleObjectFrame } from '../../../src/message/framing.ts'
import { createSchemaStore } from '../../../src/message/schema-store.ts'
import { topicNames } from '../../../src/message/topics.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { partitionFor } from '../../../src/url/partition.ts'

const topics = topicNames('p.')
const codec = createMessageCodec({ schemaStore: createSchemaStore() })
const sent: OutgoingMessage[] = []
const partitionsOf = (topic: string): number => (topic.includes('delay') ? 5 : 12)
const publisher = new TaskPublisher({
  topics,
  codec,
  producer: {
    async send(messages) {
      sent.push(...messages)
    },
  },
  layout: () => ({ version: 3, knows: () => true, partitionsOf, countsOf: (topic) => [partitionsOf(topic)] }),
  clock: { now: () => 1_000 },
})
const task = newUrlTask({ url: 'http://www.shop.co.uk/x', taskId: 't', lane: 'high', traceId: 'a'.repeat(32) })
const original = {
  topic: 'p.urls',
  partition: 2,
  offset: 9n,
  timestamp: 5,
  key: Buffer.from('shop.co.uk'),
  value: Buffer.from('value'),
  headers: {},
}

describe('the publisher of tasks', () => {
  it('keys a task by its registrable domain, in the lane it names and the partition of the layout', async () => {
    await publisher.publish([task])
    const [message] = sent
    expect(message).toMatchObject({ topic: 'p.urls.high', key: 'shop.co.uk', partition: partitionFor('shop.co.uk', 12) })
    expect(codec.decode('UrlTask', message?.value as Buffer)).toEqual(task)
    expect(message?.headers?.['content-type']).toBe('application/avro')
    expect(message?.headers?.['millrace-schema']).toMatch(/^io\.millrace\.v1\.UrlTask:[0-9a-f]{16}$/)
    expect(message?.headers?.traceparent).toMatch(new RegExp(`^00-${'a'.repeat(32)}-[0-9a-f]{16}-01$`))
    expect(publisher.laneMessage({ ...task, lane: null }).topic).toBe('p.urls')
  })

  it('says in a delayed copy when it is due, why it waits and where it was first read, and keeps that through every copy', () => {
    const failure = { code: 'FETCH_FAILED', message: 'x'.repeat(2_000), at: 900 } as const
    const copy = publisher.delayMessage({ ...task, attempt: 2 }, { dueAt: 61_000.2, reason: 'http-503', original, failure })
    expect(copy).toMatchObject({ topic: 'p.urls.delay.1m', partition: partitionFor('shop.co.uk', 5) })
    expect(copy.headers).toMatchObject({
      'millrace-attempt': '2',
      'millrace-due-ms': '61001',
      'millrace-first-ms': '900',
      'millrace-reason': 'http-503',
      'millrace-error-code': 'FETCH_FAILED',
      'millrace-orig-topic': 'p.urls',
      'millrace-orig-partition': '2',
      'millrace-orig-offset': '9',
      'millrace-orig-timestamp': '5',
    })
    expect(copy.headers?.['millrace-error-message']).toHaveLength(500)
    const read = {
      ...original,
      topic: copy.topic,
      offset: 44n,
      value: Buffer.from('of a newer release'),
      headers: Object.fromEntries(Object.entries(copy.headers ?? {}).map(([name, value]) => [name, Buffer.from(value)])),
    }
    const forwarded = publisher.forwardMessage(task, read)
    expect(forwarded).toMatchObject({ topic: 'p.urls.high', headers: { 'millrace-orig-offset': '9', 'millrace-first-ms': '900' } })
    expect(forwarded.headers).not.toHaveProperty('millrace-due-ms')
    expect(forwarded.value).toBe(read.value)
    const { traceparent, 'content-type': contentType, 'millrace-schema': schema } = copy.headers ?? {}
    expect(forwarded.headers).toMatchObject({ traceparent, 'content-type': contentType, 'millrace-schema': schema })
    const again = publisher.delayMessage(task, { dueAt: 2_000, reason: 'spill', original: read })
    expect(again.headers).toMatchObject({ 'millrace-orig-offset': '9', 'millrace-first-ms': '900', 'millrace-reason': 'spill' })
  })

  it('keeps the lane that was asked for first in every copy of a task that goes into another one', () => {
    const copy = { dueAt: 61_000, reason: 'challenge', original }
    expect(publisher.delayMessage(task, copy).headers).not.toHaveProperty('millrace-asked-lane')
    const low = { ...task, lane: 'low' } as const
    let { headers } = publisher.delayMessage(low, { ...copy, askedLane: 'high' })
    const read = () => ({ ...original, headers: headers ?? {} })
    for (const next of [
      () => publisher.forwardMessage(low, read()),
      () => publisher.movedMessage(low, read()),
      () => publisher.delayMessage(low, { ...copy, original: read() }),
      () => publisher.delayMessage(low, { ...copy, original: read(), askedLane: 'low' }),
    ]) {
      ;({ headers } = next())
      expect(headers).toMatchObject({ 'millrace-asked-lane': 'high' })
    }
  })

  it('keeps in every copy what a newer release has written that is not known here', () => {
    const { fields, ...record } = JSON.parse(codec.schemas.current('UrlTask').text)
    const ofLater = [
      { name: 'weight', type: 'int', default: 1 },
      { name: 'hints', type: { type: 'map', values: 'string' }, default: {} },
    ]
    const newer = codec.schemas.add(JSON.stringify({ ...record, fields: [ofLater[0], ...fields, ofLater[1]] }))
    const value = singleObjectFrame(newer.fingerprint, newer.encode({ ...task, weight: 7, hints: { a: 'b' } }))
    const read = { ...original, value }
    const again = { ...codec.decode('UrlTask', value), attempt: 2, lane: 'low' } as const
    for (const copy of [
      publisher.delayMessage(again, { dueAt: 61_000, reason: 'http-503', original: read }),
      publisher.movedMessage(again, read),
      publisher.completedForwardMessage(again, read),
    ]) {
      expect(codec.decodeAny(copy.value as Buffer).value).toMatchObject({ weight: 7, hints: { a: 'b' }, attempt: 2, lane: 'low' })
      expect(codec.decode('UrlTask', copy.value as Buffer)).toEqual(again)
      expect(copy.headers?.['millrace-schema']).toBe(`${newer.name}:${newer.fingerprint}`)
    }
  })

  it('writes a copy with its own schema where that of the original has no place for what it says', () => {
    const schema = JSON.stringify({
      type: 'record',
      name: 'UrlTask',
      namespace: 'io.millrace.v1',
      fields: [
        { name: 'url', type: 'string' },
        { name: 'note', type: 'string' },
      ],
    })
    const foreign = codec.schemas.add(schema)
    const written = singleObjectFrame(foreign.fingerprint, foreign.encode({ url: task.url, note: 'mine' }))
    for (const value of [written, Buffer.from('{"url":"http://www.shop.co.uk/x"}'), null]) {
      const copy = publisher.delayMessage(task, { dueAt: 2_000, reason: 'spill', original: { ...original, value } })
      expect(codec.decode('UrlTask', copy.value as Buffer)).toEqual(task)
      expect(codec.decodeAny(copy.value as Buffer).fingerprint).toBe(codec.schemas.current('UrlTask').fingerprint)
    }
  })

  it('says since when the slots of its site count, and not where they always did', () => {
    const headers = (liftedAt?: number) =>
      publisher.delayMessage(task, { dueAt: 2_000, reason: 'spill', original, ...(liftedAt === undefined ? {} : { liftedAt }) }).headers
    expect(headers(1_700_000_000_000)).toMatchObject({ 'millrace-slots-ms': '1700000000000' })
    for (const none of [headers(), headers(0)]) expect(none).not.toHaveProperty('millrace-slots-ms')
  })

  it('lets a task come back when it expires, where that is before it would be due', () => {
    const due = (expiresAt: number | null): unknown =>
      publisher.delayMessage({ ...task, expiresAt }, { dueAt: 4_000_000, reason: 'spill', original }).headers?.['millrace-due-ms']
    expect([due(null), due(5_000_000), due(70_000)]).toEqual(['4000000', '4000000', '70000'])
    expect(publisher.delayMessage({ ...task, expiresAt: 70_000 }, { dueAt: 4_000_000, reason: 'spill', original }).topic).toBe(
      'p.urls.delay.1m',
    )
  })

  it.each([9e15, 1e300, Number.POSITIVE_INFINITY])('gives a time that can be read, however far it lies (%d)', (dueAt) => {
    expect(publisher.delayMessage(task, { dueAt, reason: 'spill', original }).headers?.['millrace-due-ms']).toBe('8640000000000000')
  })

  it('passes a message on to the next delay topic as it is', () => {
    const headers = { 'millrace-due-ms': Buffer.from('5000'), 'millrace-put-ms': Buffer.from('1000') }
    const message = publisher.againMessage({ ...original, headers }, { dueAt: 5_000, leftMs: 1_500 })
    expect(message).toMatchObject({ topic: 'p.urls.delay.10s', partition: partitionFor('shop.co.uk', 5), value: original.value })
    expect(message.headers).toMatchObject({ 'millrace-due-ms': '5000', 'millrace-put-ms': '3500' })
  })

  it('marks a moved task with the version of the layout', () => {
    expect(publisher.movedMessage(task, original).headers).toMatchObject({ 'millrace-moved': '3', 'millrace-orig-partition': '2' })
  })
})
