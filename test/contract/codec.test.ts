import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/kernel/clock.ts'
import { parseSchema } from '../../src/message/avro.ts'
import { createMessageCodec, type MessageCodec } from '../../src/message/codec.ts'
import { newCommand } from '../../src/message/command.ts'
import type { Outcome } from '../../src/message/generated/types.ts'
import { createRegistryClient } from '../../src/message/registry.ts'
import { createSchemaStore } from '../../src/message/schema-store.ts'
import { newUrlTask } from '../../src/message/url-task.ts'
import { plain } from '../support/arbitrary-avro.ts'
import { type StubRegistry, startStubRegistry, testFetchJson } from '../support/stub-registry.ts'

/** One contract over both framings: what one codec writes, another one reads, whichever framing either of them writes itself. */
let registry: StubRegistry
beforeAll(async () => {
  registry = await startStubRegistry()
})
afterAll(async () => {
  await registry.close()
})

const withRegistry = (): MessageCodec =>
  createMessageCodec({ schemaStore: createSchemaStore(), registry: createRegistryClient({ url: registry.url, fetchJson: testFetchJson }) })
const withoutRegistry = (): MessageCodec => createMessageCodec({ schemaStore: createSchemaStore() })

const task = newUrlTask({
  url: 'https://example.test/é',
  headers: { accept: '*/*' },
  crawlId: 'c',
  lane: 'low',
  notBefore: 5,
  meta: { k: 'v' },
})
const outcome: Outcome = {
  taskId: 't',
  fetchId: null,
  url: 'https://example.test/',
  canonicalUrl: 'https://example.test/',
  kind: 'REFUSED',
  reason: 'robots',
  status: null,
  attempt: 1,
  at: 1_767_225_600_000,
  queuedMs: 12,
  crawlId: null,
  jobId: null,
  traceId: null,
}
const recordSchema = parseSchema(
  JSON.stringify({
    ...JSON.parse(createSchemaStore().current('RecordEnvelope').text),
    name: 'Book',
    namespace: 'io.millrace.records',
    fields: [
      ...JSON.parse(createSchemaStore().current('RecordEnvelope').text).fields,
      { name: 'data', type: { type: 'record', name: 'BookData', fields: [{ name: 'title', type: ['null', 'string'], default: null }] } },
    ],
  }),
)
const record = {
  recordId: 'r',
  url: 'https://example.test/',
  extractor: 'book',
  extractorVersion: 2,
  recordVersion: { fetchedAt: 1, extractorVersion: 2 },
  itemIndex: 0,
  entityKey: 'k',
  source: { topic: 'scrape.html', partition: 3, offset: 42 },
  bodySha256: 'ab',
  fetchedAt: 1,
  extractedAt: 2,
  data: { title: 'T' },
}

describe.each([
  ['single-object encoding', withoutRegistry, 'c301'],
  ['Confluent framing', withRegistry, '00'],
] as const)('messages in %s', (_name, codecOf, start) => {
  it('come back as they were', async () => {
    const codec = codecOf()
    await codec.prepare('scrape.urls', 'UrlTask')
    await codec.prepare('scrape.outcomes', 'Outcome')
    const taskBytes = codec.encode('UrlTask', task, 'scrape.urls')
    expect(taskBytes.toString('hex').startsWith(start)).toBe(true)
    expect(plain(codec.decode('UrlTask', taskBytes))).toEqual(task)
    expect(plain(codec.decode('Outcome', codec.encode('Outcome', outcome, 'scrape.outcomes')))).toEqual(outcome)
  })

  it('that are commands stand in single-object encoding, prepared by nobody', () => {
    const codec = codecOf()
    const command = newCommand({ clock: systemClock, kind: 'set', subject: 'layout', by: 'a test' })
    const bytes = codec.encode('Command', command, 'scrape.control')
    expect(bytes.toString('hex').startsWith('c301')).toBe(true)
    expect(plain(codec.decode('Command', bytes))).toEqual(command)
  })

  it('are read by a process that has not written any', async () => {
    const writer = codecOf()
    await writer.prepare('scrape.urls', 'UrlTask')
    const bytes = writer.encode('UrlTask', task, 'scrape.urls')
    const reader = withRegistry()
    await reader.ensureSchemas([bytes, null, bytes])
    expect(plain(reader.decode('UrlTask', bytes))).toEqual(task)
    expect(reader.decodeAny(bytes)).toMatchObject({ schemaName: 'io.millrace.v1.UrlTask' })
  })

  it('of an extractor are read whole once their schema is announced', async () => {
    const writer = codecOf()
    await writer.prepare('scrape.records', recordSchema)
    const bytes = writer.encodeRecord(recordSchema, { ...record, crawlId: null }, 'scrape.records')
    const reader = withRegistry()
    reader.schemas.add(recordSchema.text)
    await reader.ensureSchemas([bytes])
    expect(plain(reader.decodeAny(bytes))).toEqual({
      schemaName: 'io.millrace.records.Book',
      fingerprint: recordSchema.fingerprint,
      value: { ...record, crawlId: null, jobId: null, replayId: null, traceId: null, meta: {} },
    })
  })

  it('of the smallest schema are whole tasks', async () => {
    const codec = codecOf()
    const minimal = codec.schemas.list().find(({ schema }) => schema.text.includes('smallest'))?.schema
    if (minimal === undefined) throw new Error('UrlTask.minimal.avsc is not in the store')
    await codec.prepare('scrape.urls.high', minimal)
    const bytes = codec.encodeRecord(minimal, { url: 'https://example.test/' }, 'scrape.urls.high')
    expect(plain(codec.decode('UrlTask', bytes))).toEqual(newUrlTask({ url: 'https://example.test/' }))
  })

  it('keep what a newer release has written in them when they are copied, in its framing', async () => {
    const [writer, codec] = [codecOf(), codecOf()]
    const { fields, ...rest } = JSON.parse(codec.schemas.current('UrlTask').text)
    const newer = parseSchema(JSON.stringify({ ...rest, fields: [...fields, { name: 'weight', type: 'int', default: 1 }] }))
    await writer.prepare('scrape.urls.low', newer)
    await codec.prepare('scrape.urls.low', 'UrlTask')
    const original = writer.encodeRecord(newer, { ...task, weight: 7 }, 'scrape.urls.low')
    codec.schemas.add(newer.text)
    await codec.ensureSchemas([original])
    const again = { ...task, attempt: 2 }
    const { bytes, schema } = codec.encodeCopy('UrlTask', again, 'scrape.urls.low', original)
    expect([bytes.toString('hex').startsWith(start), schema.fingerprint]).toEqual([true, newer.fingerprint])
    expect(codec.decodeAny(bytes).value).toMatchObject({ weight: 7, attempt: 2 })
    expect(plain(codec.decode('UrlTask', bytes))).toEqual(again)
  })

  it('that do not fit are refused by the name of the field', async () => {
    const codec = codecOf()
    await codec.prepare('scrape.urls', 'UrlTask')
    expect(() => codec.encode('UrlTask', { ...task, depth: 1.5 }, 'scrape.urls')).toThrow(
      'field depth: is 1.5; expected an integer of 32 bits',
    )
  })
})

describe('headers of a message', () => {
  it('name type, schema and trace', () => {
    const codec = withoutRegistry()
    const { fingerprint } = codec.schemas.current('Page')
    expect(codec.headers('Page')).toEqual({ 'content-type': 'application/avro', 'millrace-schema': `io.millrace.v1.Page:${fingerprint}` })
    expect(codec.headers(recordSchema, 'tp')).toMatchObject({
      traceparent: 'tp',
      'millrace-schema': `io.millrace.records.Book:${recordSchema.fingerprint}`,
    })
  })
})

describe('messages that can not be read', () => {
  it.each<[string, Buffer | null, string]>([
    ['no value', null, 'MESSAGE_EMPTY'],
    ['an empty value', Buffer.alloc(0), 'MESSAGE_EMPTY'],
    ['C157: text', Buffer.from('48656c6c6f', 'hex'), 'MESSAGE_FRAMING_UNKNOWN'],
    ['C169: a start that is cut', Buffer.from('00000001', 'hex'), 'MESSAGE_FRAMING_UNKNOWN'],
    ['half a fingerprint', Buffer.from('c30138', 'hex'), 'MESSAGE_FRAMING_UNKNOWN'],
    ['a fingerprint that nobody knows', Buffer.from('c301000000000000000000', 'hex'), 'MESSAGE_SCHEMA_UNKNOWN'],
    ['an id without a registry', Buffer.from('000000000102', 'hex'), 'MESSAGE_SCHEMA_UNKNOWN'],
  ])('%s: a code, never a crash', (_what, bytes, code) => {
    expect(() => withoutRegistry().decode('UrlTask', bytes)).toThrow(expect.objectContaining({ code }))
    expect(() => withoutRegistry().decodeAny(bytes)).toThrow(expect.objectContaining({ code }))
  })

  it('C157: truncated Avro and another message than was expected', () => {
    const codec = withoutRegistry()
    const bytes = codec.encode('UrlTask', task, 'scrape.urls')
    expect(() => codec.decode('UrlTask', bytes.subarray(0, -3))).toThrow(expect.objectContaining({ code: 'MESSAGE_MALFORMED' }))
    const other = codec.encode('Outcome', outcome, 'scrape.outcomes')
    expect(() => codec.decode('UrlTask', other)).toThrow(expect.objectContaining({ code: 'SCHEMA_INCOMPATIBLE' }))
  })
})

describe('the schema registry', () => {
  const frame = (id: number): Buffer => Buffer.from([0, 0, 0, id >> 8, id & 0xff, 2])

  it('is asked once per topic and schema, by TopicNameStrategy for messages and TopicRecordNameStrategy for records', async () => {
    const codec = withRegistry()
    await codec.prepare('p.urls', 'UrlTask')
    await codec.prepare('p.records', recordSchema)
    const before = registry.requests.length
    await codec.prepare('p.urls', 'UrlTask')
    expect(registry.requests.length).toBe(before)
    expect(Object.keys(registry.subjects())).toEqual(expect.arrayContaining(['p.urls-value', 'p.records-io.millrace.records.Book']))
  })

  it('is not asked about ids that are known, and all others once per batch', async () => {
    registry.put(300, '{"type":"record","name":"UrlTask","fields":[{"name":"url","type":"string"}]}')
    const codec = withRegistry()
    const foreign = Buffer.concat([Buffer.from([0, 0, 0, 1, 44]), Buffer.from('1c687474703a2f2f612e746573742f', 'hex')])
    const before = registry.requests.length
    await codec.ensureSchemas([foreign, foreign, foreign])
    expect(registry.requests.slice(before)).toEqual(['GET /schemas/ids/300'])
    expect(codec.decode('UrlTask', foreign).url).toBe('http://a.test/')
    expect(codec.ensureSchemas([foreign])).toBeUndefined()
  })

  it('that has no such id, another kind of schema, or a broken one makes a dead letter of that message alone', async () => {
    registry.put(301, 'syntax = "proto3";', 'PROTOBUF')
    registry.put(302, '{"type":"record","name":"R"}')
    const codec = withRegistry()
    await codec.ensureSchemas([frame(299), frame(301), frame(302)])
    expect(() => codec.decodeAny(frame(299))).toThrow(expect.objectContaining({ code: 'MESSAGE_SCHEMA_UNKNOWN' }))
    expect(() => codec.decodeAny(frame(301))).toThrow(expect.objectContaining({ code: 'MESSAGE_SCHEMA_UNKNOWN' }))
    expect(() => codec.decodeAny(frame(302))).toThrow(expect.objectContaining({ code: 'SCHEMA_INVALID' }))
  })

  it('is not asked for an id that no registry can have, and one that refuses the id does not have it', async () => {
    const [codec, client] = [withRegistry(), createRegistryClient({ url: registry.url, fetchJson: testFetchJson })]
    for (const start of ['00ffffffff01', '008000000001']) {
      const bytes = Buffer.from(start, 'hex')
      expect(codec.ensureSchemas([bytes])).toBeUndefined()
      expect(() => codec.decodeAny(bytes)).toThrow(expect.objectContaining({ code: 'MESSAGE_SCHEMA_UNKNOWN' }))
    }
    expect(await client.schemaById(0x8000_0000)).toBeUndefined()
    registry.failWith(422)
    expect(await client.schemaById(1)).toBeUndefined()
    registry.failWith(undefined)
  })

  it('that refuses one id makes a dead letter of that message, but not where it refuses our own as well', async () => {
    registry.refuse(399)
    const codec = withRegistry()
    await expect(codec.ensureSchemas([frame(399)])).rejects.toMatchObject({ code: 'REGISTRY_REFUSED' })
    await codec.prepare('scrape.urls', 'UrlTask')
    await codec.ensureSchemas([frame(399), codec.encode('UrlTask', task, 'scrape.urls')])
    expect(() => codec.decodeAny(frame(399))).toThrow(expect.objectContaining({ code: 'MESSAGE_SCHEMA_UNKNOWN' }))
    registry.failWith(403)
    await expect(codec.ensureSchemas([frame(398)])).rejects.toMatchObject({ code: 'REGISTRY_REFUSED' })
    registry.failWith(undefined)
    expect(codec.decode('UrlTask', codec.encode('UrlTask', task, 'scrape.urls'))).toMatchObject({ url: task.url })
  })

  it('tells schemas apart that have one fingerprint and other logical types', async () => {
    const client = createRegistryClient({ url: registry.url, fetchJson: testFetchJson })
    const decimal = (scale: number): ReturnType<typeof parseSchema> =>
      parseSchema(
        `{"type":"record","name":"W","fields":[{"name":"w","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":${scale}}}]}`,
      )
    const [two, three] = [decimal(2), decimal(3)]
    const written: Buffer[] = []
    for (const [topic, schema, w] of [
      ['two', two, '12.34'],
      ['three', three, '12.345'],
    ] as const) {
      await client.register(`${topic}-value`, schema.text)
      const writer = withRegistry()
      await writer.prepare(topic, schema)
      written.push(writer.encodeRecord(schema, { w }, topic))
    }
    const reader = withRegistry()
    reader.schemas.add(two.text)
    await reader.ensureSchemas(written)
    expect(written.map((bytes) => plain(reader.decodeAny(bytes).value))).toEqual([{ w: '12.34' }, { w: '12.345' }])
  })

  it('that has no such id is not asked for it again for each batch, but a moment later, and ever more seldom', async () => {
    const clock = { mono: () => mono }
    let mono = 1
    const port = createRegistryClient({ url: registry.url, fetchJson: testFetchJson })
    const codec = createMessageCodec({ schemaStore: createSchemaStore(), registry: port, clock })
    const before = registry.requests.length
    for (let batch = 0; batch < 50; batch += 1) await codec.ensureSchemas([frame(310)])
    expect(registry.requests.slice(before)).toEqual(['GET /schemas/ids/310'])
    for (const waitMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
      const asked = registry.requests.length
      mono += waitMs - 1
      expect(codec.ensureSchemas([frame(310)])).toBeUndefined()
      mono += 1
      await codec.ensureSchemas([frame(310)])
      expect(registry.requests.length).toBe(asked + 1)
    }
    registry.put(310, '{"type":"record","name":"UrlTask","fields":[{"name":"url","type":"string"}]}')
    mono += 5_001
    await codec.ensureSchemas([frame(310)])
    expect(registry.requests.length).toBe(before + 10)
    expect(codec.ensureSchemas([frame(310)])).toBeUndefined()
  })

  it('that fails is an error to wait for, not a dead letter', async () => {
    const codec = withRegistry()
    registry.failWith(503)
    await expect(codec.ensureSchemas([frame(299)])).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE', disposition: 'retry' })
    await expect(codec.prepare('scrape.new', 'UrlTask')).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE' })
    registry.failWith(401)
    await expect(codec.prepare('scrape.new', 'UrlTask')).rejects.toMatchObject({ code: 'REGISTRY_REFUSED' })
    registry.failWith(undefined)
    await codec.prepare('scrape.new', 'UrlTask')
    const closed = createRegistryClient({ url: 'http://127.0.0.1:1', fetchJson: testFetchJson })
    await expect(closed.schemaById(1)).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE' })
  })

  it('that refuses an incompatible schema says so', async () => {
    const client = createRegistryClient({ url: registry.url, fetchJson: testFetchJson })
    await client.register('s', '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
    const next = '{"type":"record","name":"R","fields":[{"name":"b","type":"int"}]}'
    await expect(client.register('s', next)).rejects.toMatchObject({
      code: 'SCHEMA_INCOMPATIBLE',
      message: expect.stringContaining('409: incompatible'),
    })
  })

  it('must be prepared before a topic is written', () => {
    expect(() => withRegistry().encode('UrlTask', task, 'scrape.urls')).toThrow('the topic scrape.urls was not prepared')
  })
})
