import { afterAll, describe, expect, it } from 'vitest'
import { createKafkaClient } from '../../../src/kafka/client.ts'
import { type LogPiece, type LogSearch, searchPieces } from '../../../src/kafka/log-search.ts'
import type { KafkaMessage } from '../../../src/kafka/message.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { limitReading } from '../../support/client-quota.ts'
import { closedEnd, readAll, readTexts, TRANSACTION_RETRY, testAdmin, testClient, testTopic } from '../../support/kafka.ts'
import { brokers, uniqueName } from '../../support/services.ts'

const client = testClient()
const admin = testAdmin(client)
const { CompressionTypes, Partitioners } = client.kafkajs
const producer = client.kafka.producer({ allowAutoTopicCreation: false, createPartitioner: Partitioners.DefaultPartitioner })
const connected = producer.connect()

type Written = { readonly key?: string; readonly value: string | Buffer; readonly headers?: Record<string, string> }

async function write(topic: string, messages: readonly Written[], compression = CompressionTypes.None): Promise<void> {
  await connected
  await producer.send({ topic, compression, messages: messages.map((message) => ({ partition: 0, ...message })) })
}

async function transact(topic: string, values: readonly string[], end: 'commit' | 'abort', id = uniqueName('tx')): Promise<void> {
  const transactional = client.kafka.producer({ transactionalId: id, retry: TRANSACTION_RETRY })
  await transactional.connect()
  const transaction = await transactional.transaction()
  await transaction.send({ topic, messages: values.map((value) => ({ partition: 0, value })) })
  await transaction[end]()
  await transactional.disconnect()
  await closedEnd(admin, topic)
}

async function searched(by: typeof admin, log: LogSearch): Promise<{ messages: KafkaMessage[]; searchedTo: bigint; pieces: LogPiece[] }> {
  const pieces: LogPiece[] = []
  for await (const piece of searchPieces(by.session, log)) pieces.push(piece)
  return { messages: pieces.flatMap(({ messages }) => messages), searchedTo: pieces.at(-1)?.searchedTo ?? log.from, pieces }
}

function search(topic: string, texts: readonly string[], range: { from?: bigint; until?: bigint } = {}) {
  const { from = 0n, until = 1_000_000n } = range
  return searched(admin, { topic, partition: 0, from, until, texts: texts.map((text) => Buffer.from(text)) })
}

afterAll(async () => {
  await Promise.all([admin.close(), producer.disconnect()])
})

describe('searching a log', () => {
  it.each([
    ['plain', CompressionTypes.None],
    ['packed', CompressionTypes.GZIP],
  ])('finds what a reader would give, in %s batches: by value, key and header', async (_, compression) => {
    const topic = await testTopic(admin, 'search')
    const filler = Array.from({ length: 300 }, (_, index) => ({ key: `k${index}`, value: `nothing ${index} ${'x'.repeat(index)}` }))
    await write(topic, [...filler, { key: 'k', value: 'a needle here', headers: { h: 'one', i: '' } }, ...filler], compression)
    await write(
      topic,
      [
        { key: 'the needle', value: 'by key' },
        { value: 'by header', headers: { x: 'needle' } },
      ],
      compression,
    )
    await write(topic, filler, compression)
    const found = await search(topic, ['needle'])
    const read = (await readAll(client, topic)).filter(({ value, key, headers }) =>
      /needle|by (key|header)/.test(`${key} ${value} ${headers.x}`),
    )
    expect(read).toHaveLength(3)
    expect(found.messages).toEqual(read)
  })

  it('passes over a batch that unpacks to too much', async () => {
    const topic = await testTopic(admin, 'bomb')
    await write(topic, [{ value: 'needle 1' }])
    await write(topic, [{ value: Buffer.concat([Buffer.from('needle 2'), Buffer.alloc(300_000_000)]) }], CompressionTypes.GZIP)
    await write(topic, [{ value: 'needle 3' }], CompressionTypes.GZIP)
    const found = await search(topic, ['needle'])
    expect(found.messages.map(({ value }) => String(value))).toEqual(['needle 1', 'needle 3'])
    expect(await readTexts(client, topic)).toEqual(['needle 1', expect.stringContaining('\u001f'), 'needle 3'])
  })

  it('finds any of several texts, each message once, and none that only two messages together hold', async () => {
    const topic = await testTopic(admin, 'texts')
    await write(topic, [
      { value: 'one and two and one' },
      { value: 'ends with thr' },
      { value: 'ee begins' },
      { value: 'two' },
      { value: 'three' },
    ])
    const found = await search(topic, ['one', 'two', 'three', 'absent'])
    expect(found.messages.map(({ value }) => String(value))).toEqual(['one and two and one', 'two', 'three'])
    expect((await search(topic, ['thr\u0000ee'])).messages).toEqual([])
  })

  it('keeps to its bounds, and says how far it came', async () => {
    const topic = await testTopic(admin, 'bounds')
    for (let batch = 0; batch < 5; batch += 1) await write(topic, [{ value: `needle ${batch}a` }, { value: `needle ${batch}b` }])
    const found = await search(topic, ['needle'], { from: 3n, until: 6n })
    expect(found.messages.map(({ offset }) => offset)).toEqual([3n, 4n, 5n])
    expect(found.searchedTo).toBe(6n)
    expect((await search(topic, ['needle'], { from: 10n })).messages).toEqual([])
    // A retention that went on meanwhile.
    expect((await search(topic, ['needle'], { from: 99n, until: 200n })).messages).toEqual([])
  })

  it('holds no more of what it finds than of the log, however small that was packed', async () => {
    const topic = await testTopic(admin, 'packed')
    const filler = 'x'.repeat(500)
    const batch = Array.from({ length: 2_000 }, (_, index) => ({ value: `needle ${index} ${filler}`, headers: { a: '1', b: '2' } }))
    for (let written = 0; written < 30; written += 1) await write(topic, batch, CompressionTypes.GZIP)
    const { messages, pieces } = await search(topic, ['needle'])
    expect(messages.map(({ offset }) => offset)).toEqual(Array.from({ length: 60_000 }, (_, offset) => BigInt(offset)))
    expect(Math.max(...pieces.map((piece) => piece.messages.length))).toBeLessThan(20_000)
    for (const piece of pieces) expect(piece.searchedTo).toBe((piece.messages.at(-1)?.offset ?? 0n) + 1n)
    expect(pieces.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(2_000_000)
  })

  it('finds every message where the text is empty', async () => {
    const topic = await testTopic(admin, 'every')
    await write(topic, [{ value: 'one' }, { value: '' }, { key: 'k', value: 'three' }])
    await write(topic, [{ value: 'four' }], CompressionTypes.GZIP)
    const { messages } = await search(topic, [''])
    expect(messages.map(({ value }) => String(value))).toEqual(['one', '', 'three', 'four'])
  })

  it('goes on at the first offset that is left where retention overtakes it', async () => {
    const topic = await testTopic(admin, 'retention')
    for (let batch = 0; batch < 3; batch += 1) await write(topic, [{ value: `needle ${batch}a` }, { value: `needle ${batch}b` }])
    const values = async (range: { from?: bigint; until?: bigint }): Promise<string[]> =>
      (await search(topic, ['needle'], range)).messages.map(({ value }) => String(value))
    // In the middle of a batch, of which the broker gives what is deleted too.
    await admin.deleteRecordsBefore(topic, new Map([[0, 3n]]))
    expect(await values({})).toEqual(['needle 1b', 'needle 2a', 'needle 2b'])
    expect((await search(topic, ['needle'])).searchedTo).toBe(6n)
    expect(await values({ until: 2n })).toEqual([])
  })

  it('asks again where a broker throttles, which answers without the topic', async () => {
    const topic = await testTopic(admin, 'throttled')
    for (let batch = 0; batch < 12; batch += 1) await write(topic, [{ value: Buffer.alloc(900_000, batch) }, { value: `needle ${batch}` }])
    const clientId = uniqueName('throttled')
    await limitReading(admin, clientId, 700_000)
    const slow = testAdmin(createKafkaClient({ brokers: brokers(), clientId }, silentObserver))
    try {
      const texts = [Buffer.from('needle')]
      const found = await searched(slow, { topic, partition: 0, from: 0n, until: 24n, texts })
      expect(found.messages).toHaveLength(12)
      expect(found.searchedTo).toBe(24n)
    } finally {
      await slow.close()
    }
  })

  it('ends before a transaction that is open', async () => {
    const topic = await testTopic(admin, 'open')
    await write(topic, [{ value: 'needle before' }])
    const open = client.kafka.producer({ transactionalId: uniqueName('tx'), retry: TRANSACTION_RETRY })
    await open.connect()
    const transaction = await open.transaction()
    await transaction.send({ topic, messages: [{ partition: 0, value: 'needle open' }] })
    await write(topic, [{ value: 'needle behind' }])
    const found = await search(topic, ['needle'], { until: 3n })
    expect(found.messages.map(({ value }) => String(value))).toEqual(['needle before'])
    expect(found.searchedTo).toBe(1n)
    await transaction.abort()
    await open.disconnect()
  })

  it('passes over markers and over what was aborted', async () => {
    const topic = await testTopic(admin, 'aborted')
    const id = uniqueName('tx')
    await transact(topic, ['needle committed'], 'commit')
    await transact(topic, ['needle aborted'], 'abort', id)
    await transact(topic, ['needle of the same producer'], 'commit', id)
    await transact(topic, ['needle aborted too'], 'abort')
    await write(topic, [{ value: 'needle last' }])
    expect((await search(topic, ['needle'])).messages.map(({ value }) => String(value))).toEqual([
      'needle committed',
      'needle of the same producer',
      'needle last',
    ])
  })

  it('reads a log of many fetches to its end', async () => {
    const topic = await testTopic(admin, 'long')
    for (let batch = 0; batch < 12; batch += 1) await write(topic, [{ value: Buffer.alloc(900_000, batch) }, { value: `needle ${batch}` }])
    const found = await search(topic, ['needle'])
    expect(found.messages).toHaveLength(12)
    expect(found.pieces.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThan(10_000_000)
  })
})
