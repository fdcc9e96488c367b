import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { DurableProducer, type DurableProducerOptions } from '../../../src/kafka/producer.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import type { EventFields } from '../../../src/kernel/observe.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { cuttingClient } from '../../support/cutting-client.ts'
import { eventually } from '../../support/eventually.ts'
import { readAll, readTexts, testAdmin, testClient, testTopic, textMessage } from '../../support/kafka.ts'
import { uniqueName } from '../../support/services.ts'

const client = testClient()
const admin = testAdmin(client)
const started: DurableProducer[] = []

async function startProducer(options: Partial<DurableProducerOptions> = {}): Promise<DurableProducer> {
  const producer = new DurableProducer({ client, clock: systemClock, observer: silentObserver, maxBatchBytes: () => 1_048_588, ...options })
  started.push(producer)
  await producer.start()
  return producer
}

afterEach(async () => {
  vi.restoreAllMocks()
  await Promise.all(started.splice(0).map((producer) => producer.stop({ mode: 'abort', timeoutMs: 1_000 })))
})
afterAll(() => admin.close())

describe('durable producer', () => {
  it('stores what it acknowledges, in order for each partition, with keys, headers and timestamps', async () => {
    const topic = await testTopic(admin, 'durable', 3)
    const producer = await startProducer()
    await producer.send(
      Array.from({ length: 1_500 }, (_, index) => ({
        topic,
        partition: index % 3,
        key: `k${index}`,
        value: Buffer.from(String(index)),
        headers: { traceparent: 'abc' },
        timestamp: 1_700_000_000_000 + index,
      })),
    )
    const read = await readAll(client, topic)
    expect(read).toHaveLength(1_500)
    for (const partition of [0, 1, 2]) {
      const numbers = read.filter((message) => message.partition === partition).map(({ value }) => Number(String(value)))
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    }
    const first = read.find(({ value }) => String(value) === '0')
    expect([String(first?.key), String(first?.headers.traceparent), first?.timestamp]).toEqual(['k0', 'abc', 1_700_000_000_000])
  })

  it('sends what waits no sooner than its linger, though an answer comes meanwhile', async () => {
    const topic = await testTopic(admin, 'linger', 1)
    const lingerMs = 7
    let lingered: (() => void) | undefined
    const timer: typeof systemClock.timer = (ms, run, options) => {
      if (ms !== lingerMs) return systemClock.timer(ms, run, options)
      lingered = run
      return () => undefined
    }
    const [producer, other] = [await startProducer({ clock: { ...systemClock, timer }, lingerMs }), await startProducer()]
    const armed = (): Promise<unknown> => eventually(() => lingered !== undefined, { what: 'a message to wait' })
    const pass = (): void => {
      const run = lingered
      lingered = undefined
      run?.()
    }
    const first = producer.send([textMessage(topic, 0, 'first')])
    await armed()
    pass()
    const second = producer.send([textMessage(topic, 0, 'second')])
    await armed()
    await first
    await other.send([textMessage(topic, 0, 'other')])
    pass()
    await second
    expect(await readTexts(client, topic)).toEqual(['first', 'other', 'second'])
  })

  it('loses nothing through lost connections and lost answers', async () => {
    const topic = await testTopic(admin, 'broken', 2)
    const cutting = cuttingClient()
    const producer = await startProducer({ client: cutting.client, maxRequestMessages: 20, random: () => 0 })
    const before = cutting.openedCount
    const sends: Promise<void>[] = []
    for (let index = 0; index < 600; index += 1) {
      sends.push(producer.send([textMessage(topic, index % 2, String(index))]))
      if (index % 100 === 50) cutting.cutAll()
      if (index % 100 === 0) cutting.loseAnswer(1 + (index % 7))
      if (index % 20 === 19) await Promise.race(sends.slice(-5))
    }
    await Promise.all(sends)
    const texts = await readTexts(client, topic)
    expect(new Set(texts).size).toBe(600)
    expect(cutting.openedCount - before).toBeGreaterThan(3)
    // First copies keep their order: a resend comes before what was behind it.
    const firsts = [
      ...new Set((await readAll(client, topic)).filter(({ partition }) => partition === 0).map(({ value }) => Number(String(value)))),
    ]
    expect(firsts).toEqual([...firsts].sort((a, b) => a - b))
  })

  it('stores messages for a partition that was added after its metadata was read', async () => {
    const topic = await testTopic(admin, 'grown', 1)
    const producer = await startProducer()
    await producer.send([textMessage(topic, 0, 'before')])
    await admin.addPartitions(topic, 3)
    await producer.send([textMessage(topic, 2, 'after')])
    expect(await readTexts(client, topic)).toEqual(expect.arrayContaining(['before', 'after']))
  })

  it('rejects a partition that does not exist instead of dropping it, and stores what was sent beside it', async () => {
    const topic = await testTopic(admin, 'unknown', 2)
    const producer = await startProducer({ unknownPartitionMs: 400 })
    const good = producer.send([textMessage(topic, 1, 'good')])
    const bad = producer.send([textMessage(topic, 9, 'bad')])
    await expect(bad).rejects.toMatchObject({ code: 'KAFKA_TOPIC_MISSING', context: { topic, partition: 9 } })
    await good
    expect(await readTexts(client, topic)).toContain('good')
  })

  it('rejects a topic that does not exist and goes on with others', async () => {
    const topic = await testTopic(admin, 'other')
    const producer = await startProducer({ unknownPartitionMs: 400 })
    const missing = producer.send([textMessage(uniqueName('missing'), 0, 'x')])
    await producer.send([textMessage(topic, 0, 'while')])
    await expect(missing).rejects.toMatchObject({ code: 'KAFKA_TOPIC_MISSING' })
    await producer.send([textMessage(topic, 0, 'after')])
    expect(await readTexts(client, topic)).toEqual(['while', 'after'])
  })

  it('goes on with other topics after one that it wrote to was deleted', async () => {
    const [gone, topic] = [await testTopic(admin, 'deleted'), await testTopic(admin, 'kept')]
    const producer = await startProducer()
    await producer.send([textMessage(gone, 0, 'x'), textMessage(topic, 0, 'first')])
    await admin.deleteTopic(gone)
    await eventually(async () => !(await admin.listTopics()).includes(gone))
    // A minute later the client reads its metadata anew, and asks for the deleted topic as well.
    const now = Date.now
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000)
    await producer.send([textMessage(topic, 0, 'second')])
    expect(new Set(await readTexts(client, topic))).toEqual(new Set(['first', 'second']))
  })

  it('refuses a message above the limit of its topic before sending anything of the call', async () => {
    const topic = await testTopic(admin, 'size')
    const producer = await startProducer({ maxBatchBytes: () => 10_000 })
    const large = { ...textMessage(topic, 0, ''), value: Buffer.alloc(10_000) }
    await expect(producer.send([textMessage(topic, 0, 'small'), large])).rejects.toMatchObject({ code: 'KAFKA_MESSAGE_TOO_LARGE' })
    await producer.send([textMessage(topic, 0, 'other')])
    expect(await readTexts(client, topic)).toEqual(['other'])
  })

  it('finds the one message that the broker refuses as too large and stores those sent with it', async () => {
    const topic = await testTopic(admin, 'refused', 2, { 'max.message.bytes': '20000' })
    const producer = await startProducer({ random: () => 0 })
    const sends = Array.from({ length: 6 }, (_, index) => producer.send([textMessage(topic, index % 2, `m${index}`)]))
    const large = producer.send([{ topic, partition: 0, key: null, value: Buffer.alloc(30_000) }])
    const behind = producer.send([textMessage(topic, 0, 'behind')])
    await expect(large).rejects.toMatchObject({ code: 'KAFKA_MESSAGE_TOO_LARGE', context: { topic, partition: 0 } })
    await Promise.all([...sends, behind])
    expect(new Set(await readTexts(client, topic))).toEqual(new Set(['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'behind']))
  })

  it('puts many messages into batches that the broker takes', async () => {
    const topic = await testTopic(admin, 'batches', 1, { 'max.message.bytes': '20000' })
    const producer = await startProducer({ maxBatchBytes: () => 20_000 })
    await producer.send(Array.from({ length: 40 }, (_, index) => ({ ...textMessage(topic, 0, ''), value: Buffer.alloc(1_500, index) })))
    expect(await readAll(client, topic)).toHaveLength(40)
  })

  it.each([
    ['in one call', 20],
    ['in calls of their own', 1],
  ])('C159: stores 20 pages of 200 KB in one partition that takes 1 MB at a time: %s', async (_how, perCall) => {
    const topic = await testTopic(admin, 'pages', 1, { 'max.message.bytes': '1000000' })
    const producer = await startProducer({ maxBatchBytes: () => 1_000_000 })
    const pages = Array.from({ length: 20 }, (_, index) => ({
      ...textMessage(topic, 0, ''),
      key: `page ${index}`,
      value: randomBytes(200_000),
    }))
    await Promise.all(Array.from({ length: 20 / perCall }, (_, call) => producer.send(pages.slice(call * perCall, (call + 1) * perCall))))
    const stored = await readAll(client, topic)
    expect(
      stored.map(({ key, value }) => [String(key), value?.equals(pages[Number(String(key).slice(5))]?.value ?? Buffer.alloc(0))]),
    ).toEqual(pages.map(({ key }) => [key, true]))
  })

  it('gives a message whose time the broker refuses the time of sending, and loses none beside it', async () => {
    const topic = await testTopic(admin, 'future')
    const producer = await startProducer({ random: () => 0 })
    const future = producer.send([{ ...textMessage(topic, 0, 'future'), timestamp: Date.now() + 86_400_000 }])
    await Promise.all([future, producer.send([textMessage(topic, 0, 'now')])])
    const stored = await readAll(client, topic)
    expect(stored.map(({ value }) => String(value)).sort()).toEqual(['future', 'now'])
    for (const { timestamp } of stored) expect(Math.abs(timestamp - Date.now())).toBeLessThan(60_000)
  })

  it('compresses where asked', async () => {
    const topic = await testTopic(admin, 'gzip')
    const producer = await startProducer({ codec: (name) => (name === topic ? 'gzip' : undefined) })
    await producer.send(Array.from({ length: 50 }, () => textMessage(topic, 0, 'a'.repeat(1_000))))
    expect(await readTexts(client, topic)).toEqual(Array(50).fill('a'.repeat(1_000)))
  })

  it('makes callers wait when too many bytes are held, and lets a call larger than the bound through alone', async () => {
    const topic = await testTopic(admin, 'bounded')
    const producer = await startProducer({ maxPendingBytes: 5_000 })
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => producer.send([{ ...textMessage(topic, 0, ''), value: Buffer.alloc(2_000, index) }])),
    )
    await producer.send(Array.from({ length: 10 }, () => ({ ...textMessage(topic, 0, ''), value: Buffer.alloc(2_000) })))
    expect(await readAll(client, topic)).toHaveLength(40)
  })

  it('drains what it has taken and takes no more', async () => {
    const topic = await testTopic(admin, 'drained')
    const producer = await startProducer({ lingerMs: 10_000 })
    const sent = producer.send([textMessage(topic, 0, 'waiting')])
    const stopped = producer.stop({ mode: 'drain', timeoutMs: 5_000 })
    await expect(producer.send([textMessage(topic, 0, 'late')])).rejects.toMatchObject({ code: 'ABORTED' })
    await Promise.all([sent, stopped])
    expect(await readTexts(client, topic)).toEqual(['waiting'])
  })

  it('rejects what waits when it is stopped at once', async () => {
    const topic = await testTopic(admin, 'aborted')
    const producer = await startProducer({ lingerMs: 60_000 })
    const sent = producer.send([textMessage(topic, 0, 'waiting')])
    await producer.stop({ mode: 'abort', timeoutMs: 1_000 })
    await expect(sent).rejects.toMatchObject({ code: 'ABORTED' })
  })

  it('gives up a call whose signal aborts, and not its neighbour', async () => {
    const topic = await testTopic(admin, 'signal')
    const producer = await startProducer({ lingerMs: 50 })
    const abort = new AbortController()
    const given = producer.send([textMessage(topic, 0, 'given up')], { signal: abort.signal })
    const kept = producer.send([textMessage(topic, 0, 'kept')])
    abort.abort()
    await expect(given).rejects.toMatchObject({ code: 'ABORTED' })
    await kept
    expect(await readTexts(client, topic)).toEqual(['kept'])
  })

  it('tells of each repeat with its reason', async () => {
    const events: [string, EventFields][] = []
    const observer = { emit: (name: string, fields: EventFields = {}) => void events.push([name, fields]), child: () => observer }
    const topic = await testTopic(admin, 'observed')
    const producer = await startProducer({ observer, random: () => 0 })
    producer.send([textMessage(topic, 5, 'x')]).catch(() => undefined)
    await eventually(() => events.length > 0)
    expect(events[0]?.[0]).toBe('SendRetried')
    expect(events[0]?.[1].reason).toBe('KafkaJSMetadataNotLoaded')
  })
})
