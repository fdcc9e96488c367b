import { afterAll, describe, expect, it } from 'vitest'
import type { LogEvent } from '../../../src/kafka/log-cursor.ts'
import { readLog, readOne } from '../../../src/kafka/log-reader.ts'
import { partitionId } from '../../../src/kernel/brand.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { cuttingClient } from '../../support/cutting-client.ts'
import { eventually } from '../../support/eventually.ts'
import { expectInTime } from '../../support/in-time.ts'
import { closedEnd, readEvents, readTexts, TRANSACTION_RETRY, testAdmin, testClient, testTopic } from '../../support/kafka.ts'
import { kafkaTool } from '../../support/kafka-tools.ts'
import { brokers, uniqueName } from '../../support/services.ts'

const client = testClient()
const admin = testAdmin(client)
const producer = client.kafka.producer({ allowAutoTopicCreation: false, createPartitioner: client.kafkajs.Partitioners.DefaultPartitioner })
const connected = producer.connect()

async function write(topic: string, values: readonly string[], partition = 0): Promise<void> {
  await connected
  await producer.send({ topic, messages: values.map((value) => ({ partition, value })) })
}

/** Values in a transaction of their own, committed or aborted. */
async function transact(topic: string, values: readonly string[], end: 'commit' | 'abort'): Promise<void> {
  const transactional = client.kafka.producer({ transactionalId: uniqueName('tx'), retry: TRANSACTION_RETRY })
  await transactional.connect()
  const transaction = await transactional.transaction()
  await transaction.send({ topic, messages: values.map((value) => ({ partition: 0, value })) })
  await transaction[end]()
  await transactional.disconnect()
  await closedEnd(admin, topic)
}

const range = (count: number, from = 0): string[] => Array.from({ length: count }, (_, index) => `v${from + index}`)

afterAll(async () => {
  await Promise.all([admin.close(), producer.disconnect()])
})

describe('reading a log', () => {
  it('gives everything up to the end seen at the start, with an end for each partition', async () => {
    const topic = await testTopic(admin, 'log', 2)
    await write(topic, range(5), 0)
    await write(topic, range(3, 10), 1)
    const events = await readEvents(client, topic)
    expect(events.filter(({ kind }) => kind === 'end')).toEqual(
      expect.arrayContaining([
        { kind: 'end', topic, partition: 0, position: 5n },
        { kind: 'end', topic, partition: 1, position: 3n },
      ]),
    )
    expect((await readTexts(client, topic)).sort()).toEqual([...range(5), ...range(3, 10)].sort())
  })

  it('ends at once on an empty topic', async () => {
    const topic = await testTopic(admin, 'empty')
    expect(await readEvents(client, topic)).toEqual([{ kind: 'end', topic, partition: 0, position: 0n }])
  })

  it('goes on in partitions that are added while it follows, from their beginning', async () => {
    const topic = await testTopic(admin, 'grows')
    await write(topic, ['first'])
    const stop = new AbortController()
    let ahead = 0
    const clock = { ...systemClock, mono: () => systemClock.mono() + ahead }
    const seen: string[] = []
    for await (const event of readLog({
      client,
      clock,
      from: new Map([[topic, new Map([[0, 0n]])]]),
      follow: true,
      withAdded: true,
      signal: stop.signal,
    })) {
      if (event.kind !== 'batch') continue
      for (const { partition, value } of event.messages) seen.push(`${partition} ${value}`)
      if (seen.length === 1 && ahead === 0) {
        await admin.addPartitions(topic, 2)
        await eventually(() => write(topic, ['second'], 1).then(() => true), { what: 'the partition can be written' })
        ahead = 31_000
      }
      if (seen.length === 2) stop.abort()
    }
    expect(seen).toEqual(['0 first', '1 second'])
  })

  it('ends at its bounds though partitions are added meanwhile', async () => {
    const topic = await testTopic(admin, 'bounded')
    await write(topic, ['first'])
    let ahead = 0
    const clock = { ...systemClock, mono: () => systemClock.mono() + ahead }
    const seen: string[] = []
    const until = new Map([[partitionId(topic, 0), 2n]])
    for await (const event of readLog({ client, clock, from: new Map([[topic, 'earliest']]), follow: true, withAdded: true, until })) {
      if (event.kind !== 'batch') continue
      for (const { partition, value } of event.messages) seen.push(`${partition} ${value}`)
      if (ahead > 0) continue
      await admin.addPartitions(topic, 2)
      ahead = 31_000
      await write(topic, ['second'])
    }
    expect(seen).toEqual(['0 first', '0 second'])
  })

  it('begins and stops where it is told', async () => {
    const topic = await testTopic(admin, 'bounds', 2)
    await write(topic, range(20))
    const from = new Map([[topic, new Map([[0, 5n]])]])
    const until = new Map([[partitionId(topic, 0), 9n]])
    expect(await readTexts(client, topic, { from, until })).toEqual(range(4, 5))
    expect(await readTexts(client, topic, { from: new Map([[topic, 'end' as const]]) })).toEqual([])
    // Nothing is waited for beyond the end.
    expect(await readTexts(client, topic, { from, until: new Map([[partitionId(topic, 0), 99n]]) })).toEqual(range(15, 5))
  })

  it('comes to its end over aborted transactions and markers', async () => {
    const topic = await testTopic(admin, 'aborted')
    await transact(topic, ['kept'], 'commit')
    await transact(topic, range(3), 'abort')
    await transact(topic, range(3), 'abort')
    const events = await readEvents(client, topic)
    expect(events.flatMap((event) => (event.kind === 'batch' ? event.messages.map(({ value }) => String(value)) : []))).toEqual(['kept'])
    expect(events.at(-1)).toEqual({ kind: 'end', topic, partition: 0, position: 10n })
  })

  it('sees what was aborted only where it asks for it', async () => {
    const topic = await testTopic(admin, 'uncommitted')
    await transact(topic, ['aborted'], 'abort')
    expect(await readTexts(client, topic, { isolation: 'read_uncommitted' })).toEqual(['aborted'])
    expect(await readTexts(client, topic)).toEqual([])
  })

  it('begins in the middle of an aborted transaction and shows nothing of it', async () => {
    const topic = await testTopic(admin, 'middle')
    await transact(topic, range(6), 'abort')
    await transact(topic, ['after'], 'commit')
    for (const offset of [1n, 3n, 6n]) {
      expect(await readTexts(client, topic, { from: new Map([[topic, new Map([[0, offset]])]]) })).toEqual(['after'])
    }
  })

  it('says so when retention has overtaken its start, and goes on at the first message', async () => {
    const topic = await testTopic(admin, 'overtaken')
    await write(topic, range(10))
    await admin.deleteRecordsBefore(topic, new Map([[0, 6n]]))
    const events = await readEvents(client, topic, { from: new Map([[topic, new Map([[0, 2n]])]]) })
    expect(events[0]).toEqual({ kind: 'out-of-range', topic, partition: 0, from: 2n, to: 6n })
    expect(await readTexts(client, topic, { from: new Map([[topic, new Map([[0, 2n]])]]) })).toEqual(range(4, 6))
    const beyond = await readEvents(client, topic, { from: new Map([[topic, new Map([[0, 50n]])]]) })
    expect(beyond.map(({ kind }) => kind)).toEqual(['out-of-range', 'end'])
  })

  it('says so when messages are deleted under it', async () => {
    const topic = await testTopic(admin, 'under')
    await write(topic, range(10))
    const events: LogEvent[] = []
    const abort = new AbortController()
    for await (const event of readLog({
      client,
      clock: systemClock,
      from: new Map([[topic, 'earliest' as const]]),
      follow: true,
      signal: abort.signal,
    })) {
      events.push(event)
      if (event.kind === 'end') {
        await write(topic, range(10, 10))
        await admin.deleteRecordsBefore(topic, new Map([[0, 15n]]))
      }
      if (event.kind === 'batch' && event.position === 20n) abort.abort()
    }
    expect(events.find(({ kind }) => kind === 'out-of-range')).toMatchObject({ from: 10n, to: 15n })
  })

  it('follows what is written later, and ends without an error when it is told to', async () => {
    const topic = await testTopic(admin, 'follow')
    await write(topic, ['first'])
    const abort = new AbortController()
    const texts: string[] = []
    const began = performance.now()
    for await (const event of readLog({
      client,
      clock: systemClock,
      from: new Map([[topic, 'earliest' as const]]),
      follow: true,
      signal: abort.signal,
    })) {
      if (event.kind === 'batch') texts.push(...event.messages.map(({ value }) => String(value)))
      if (event.kind === 'end') await write(topic, ['second'])
      if (texts.length === 2) abort.abort()
    }
    expect(texts).toEqual(['first', 'second'])
    // The partitions are looked at again after half a minute: it does not wait for that.
    expectInTime(performance.now() - began, 20_000)
  })

  it('throws the reason where it is stopped before its end: a part is not what was asked for', async () => {
    const topic = await testTopic(admin, 'stopped')
    await write(topic, range(5))
    const stop = new AbortController()
    const seen: LogEvent['kind'][] = []
    const reading = (async () => {
      for await (const { kind } of readLog({ client, clock: systemClock, from: new Map([[topic, 'earliest']]), signal: stop.signal })) {
        seen.push(kind)
        stop.abort(new Error('enough'))
      }
    })()
    await expect(reading).rejects.toThrow('enough')
    expect(seen[0]).toBe('batch')
  })

  it('does not wait for the broker when it is stopped while nothing comes', async () => {
    const topic = await testTopic(admin, 'quiet')
    const abort = new AbortController()
    let stoppedMono = Number.NaN
    const stop = (): void => {
      stoppedMono = performance.now()
      abort.abort()
    }
    const reading = (async () => {
      for await (const event of readLog({
        client,
        clock: systemClock,
        from: new Map([[topic, 'earliest' as const]]),
        follow: true,
        signal: abort.signal,
      })) {
        if (event.kind === 'end') setImmediate(stop)
      }
    })()
    await expect(reading).resolves.toBeUndefined()
    // The broker would answer after half a second.
    expectInTime(performance.now() - stoppedMono, 400)
  })

  it('reads on through lost connections, with nothing missing or twice', async () => {
    const topic = await testTopic(admin, 'cut')
    await write(topic, range(400))
    const cutting = cuttingClient()
    const texts: string[] = []
    for await (const event of readLog({
      client: cutting.client,
      clock: systemClock,
      from: new Map([[topic, 'earliest' as const]]),
      maxBytes: 500,
    })) {
      if (event.kind !== 'batch') continue
      texts.push(...event.messages.map(({ value }) => String(value)))
      if (texts.length % 3 === 0) cutting.cutAll()
    }
    expect(texts).toEqual(range(400))
    expect(cutting.openedCount).toBeGreaterThan(1)
  })

  it('gives messages larger than its limit, and serves every partition beside a large one', async () => {
    const topic = await testTopic(admin, 'large', 4, { 'max.message.bytes': '5000000' })
    await write(topic, ['x'.repeat(2_000_000), 'y'.repeat(2_000_000)], 0)
    for (const partition of [1, 2, 3]) await write(topic, range(5), partition)
    const texts = await readTexts(client, topic, { maxBytes: 100_000 })
    expect(
      texts
        .map(({ length }) => length)
        .sort((a, b) => b - a)
        .slice(0, 3),
    ).toEqual([2_000_000, 2_000_000, 2])
    expect(texts).toHaveLength(17)
  })

  it('of a topic or a partition that does not exist is an error', async () => {
    const topic = await testTopic(admin, 'one')
    await expect(readEvents(client, uniqueName('none'))).rejects.toMatchObject({ code: 'KAFKA_TOPIC_MISSING' })
    await expect(readEvents(client, topic, { from: new Map([[topic, new Map([[4, 0n]])]]) })).rejects.toMatchObject({
      code: 'KAFKA_TOPIC_MISSING',
      context: { partition: 4 },
    })
  })
})

describe('batches that another client has packed', () => {
  it('are read from a topic that does not repack them: gzip and zstd on every Node.js', async () => {
    const topic = await testTopic(admin, 'packed')
    for (const codec of ['gzip', 'zstd']) {
      const args = ['--bootstrap-server', brokers().join(','), '--topic', topic, '--compression-codec', codec]
      expect(await kafkaTool('org.apache.kafka.tools.ConsoleProducer', args, `packed by ${codec}\n`.repeat(200))).toMatchObject({ code: 0 })
    }
    expect((await readTexts(client, topic)).sort()).toEqual(
      ['gzip', 'zstd'].flatMap((codec) => Array.from({ length: 200 }, () => `packed by ${codec}`)),
    )
  })
})

describe('reading one message', () => {
  it('gives the one at that offset, from the middle of a batch', async () => {
    const topic = await testTopic(admin, 'one')
    await write(topic, range(10))
    const message = await readOne(admin.session, { topic, partition: 0 }, 7n)
    expect([message?.offset, String(message?.value)]).toEqual([7n, 'v7'])
  })

  it('gives nothing for what is deleted, not written yet, aborted or a marker', async () => {
    const topic = await testTopic(admin, 'none')
    await write(topic, range(4))
    await transact(topic, ['aborted'], 'abort')
    await admin.deleteRecordsBefore(topic, new Map([[0, 2n]]))
    for (const offset of [0n, 4n, 5n, 6n, 100n]) expect(await readOne(admin.session, { topic, partition: 0 }, offset)).toBeUndefined()
    expect(await readOne(admin.session, { topic, partition: 0 }, 2n)).toBeDefined()
  })
})
