import net from 'node:net'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { AssignedPartition, AssignmentChange } from '../../../src/kafka/assignment.ts'
import type { KafkaClient } from '../../../src/kafka/client.ts'
import { type ConsumerHandler, ConsumerLoop, type ConsumerLoopOptions } from '../../../src/kafka/consumer-loop.ts'
import type { CommitResult } from '../../../src/kafka/group-commits.ts'
import { headerText, type KafkaMessage } from '../../../src/kafka/message.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { HEADER } from '../../../src/message/header-names.ts'
import { eventually } from '../../support/eventually.ts'
import { KafkaFixture, QUICK_MEMBER, recordingObserver } from '../../support/kafka-fixture.ts'
import { brokers, uniqueName } from '../../support/services.ts'

const kafka = new KafkaFixture(silentObserver)
const open = new Set<ConsumerLoop>()

interface Member {
  readonly loop: ConsumerLoop
  readonly messages: KafkaMessage[]
  readonly changes: AssignmentChange[]
  readonly positions: bigint[]
  readonly seen: ReturnType<typeof recordingObserver>
  readonly values: () => string[]
}

async function member(options: {
  groupId: string
  topic: string
  handler?: (loop: () => ConsumerLoop) => Partial<ConsumerHandler>
  loop?: Partial<ConsumerLoopOptions>
}): Promise<Member> {
  const messages: KafkaMessage[] = []
  const changes: AssignmentChange[] = []
  const positions: bigint[] = []
  const seen = recordingObserver()
  const own = options.handler?.(() => loop) ?? {}
  const loop: ConsumerLoop = new ConsumerLoop({
    client: kafka.client,
    groupId: options.groupId,
    topics: [options.topic],
    settings: QUICK_MEMBER,
    observer: seen.observer,
    clock: systemClock,
    ...options.loop,
    handler: {
      onAssignment: (change) => {
        changes.push(change)
        own.onAssignment?.(change)
      },
      onMessages: (assigned, taken, position) => {
        messages.push(...taken)
        positions.push(position)
        own.onMessages?.(assigned, taken, position)
      },
      onPosition: (_, position) => positions.push(position),
      onRebalancing: () => own.onRebalancing?.(),
    },
  })
  open.add(loop)
  await loop.start()
  return { loop, messages, changes, positions, seen, values: () => messages.map(({ value }) => String(value)) }
}

const stop = (loop: ConsumerLoop): Promise<void> => {
  open.delete(loop)
  return loop.stop({ mode: 'drain', timeoutMs: 5_000 })
}

afterEach(async () => {
  await Promise.all([...open].map((loop) => loop.stop({ mode: 'abort', timeoutMs: 0 })))
  open.clear()
})
afterAll(() => kafka.close())

describe('commits of the consumer loop', () => {
  it('are not reported as stored before the member is in its group, and are not', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    await kafka.produce(topic, 0, ['a', 'b'])
    const early: Promise<CommitResult>[] = []
    const { loop, changes, seen } = await member({
      groupId,
      topic,
      handler: (self) => ({
        onAssignment: ({ gained }) => early.push(self().commit(gained.map((assigned) => ({ ...assigned, offset: 1n, metadata: '' })))),
      }),
    })
    expect(await early[0]).toEqual({ stored: [], refused: 'not-joined' })
    expect(await kafka.committed(groupId, topic, 0)).toBeUndefined()
    expect(seen.count('OffsetsCommitted')).toBe(0)
    const commits = (changes[0]?.gained ?? []).map((assigned) => ({ ...assigned, offset: 2n, metadata: 'm' }))
    expect(await loop.commit(commits)).toEqual({ stored: commits })
    expect(await kafka.committed(groupId, topic, 0)).toEqual({ offset: 2n, metadata: 'm' })
  })

  it('are refused after the member has left', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    const { loop, changes } = await member({ groupId, topic })
    const [assigned] = changes[0]?.gained ?? []
    await stop(loop)
    // It has lost everything by leaving, so nothing is even asked.
    expect(changes.at(-1)?.lost).toEqual([assigned])
    expect(await loop.commit(assigned === undefined ? [] : [{ ...assigned, offset: 1n, metadata: '' }])).toEqual({ stored: [] })
    expect(await kafka.committed(groupId, topic, 0)).toBeUndefined()
  })

  it('arrive when they are made in the moment in which a rebalance begins', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic({ partitions: 2 })]
    const parting: Promise<CommitResult>[] = []
    const first = await member({
      groupId,
      topic,
      handler: (self) => ({
        onRebalancing: () => parting.push(self().commit(self().assigned.map((assigned) => ({ ...assigned, offset: 7n, metadata: '' })))),
      }),
    })
    await kafka.produce(topic, 0, ['0', '1', '2', '3', '4', '5', '6', '7'])
    await kafka.produce(topic, 1, ['0', '1', '2', '3', '4', '5', '6', '7'])
    await eventually(() => first.messages.length === 16)
    const second = await member({ groupId, topic })
    await eventually(() => second.messages.length > 0)
    const result = await parting[0]
    expect(result?.stored).toHaveLength(2)
    // The new owner began where the old one left off.
    expect(second.values()).toEqual(['7'])
  })

  it('with too long metadata are refused as such, and the others are tried again', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic({ partitions: 2 })]
    const { loop, changes } = await member({ groupId, topic })
    const [one, two] = changes[0]?.gained ?? []
    if (one === undefined || two === undefined) throw new Error('not both partitions were gained')
    const result = await loop.commit([
      { ...one, offset: 0n, metadata: 'x'.repeat(4_097) },
      { ...two, offset: 0n, metadata: '' },
    ])
    expect(result).toEqual({ stored: [], refused: 'metadata-too-large' })
  })
})

describe('reading of the consumer loop', () => {
  it('tells the position after a tail of markers, which no message shows', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    const { positions, values } = await member({ groupId, topic })
    await kafka.produceInTransaction(topic, 0, ['a'], 'commit')
    await kafka.produceInTransaction(topic, 0, ['b'], 'abort')
    await eventually(() => positions.at(-1) === 4n)
    expect(values()).toEqual(['a'])
  })

  it('sees records of open and aborted transactions where told so', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    await kafka.produceInTransaction(topic, 0, ['a'], 'abort')
    const { values } = await member({ groupId, topic, loop: { settings: { ...QUICK_MEMBER, isolation: 'uncommitted' } } })
    await eventually(() => values().length === 1)
    expect(values()).toEqual(['a'])
  })

  it('holds a gained partition back until it was put somewhere and resumed', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    await kafka.produce(topic, 0, ['0', '1', '2', '3'])
    const { loop, changes, messages, values, seen } = await member({ groupId, topic, loop: { startPaused: true } })
    await kafka.produce(topic, 0, ['4'])
    await eventually(() => seen.count('GroupJoined') === 1)
    expect(messages).toHaveLength(0)
    const [assigned] = changes[0]?.gained ?? []
    if (assigned === undefined) throw new Error('nothing was gained')
    loop.seek(assigned, 3n)
    loop.resume([assigned])
    await eventually(() => messages.length === 2)
    expect(values()).toEqual(['3', '4'])
  })

  it('rewinds a live partition, and passes no hole on the way', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    await kafka.produce(topic, 0, ['0', '1', '2', '3'])
    const { loop, messages, values } = await member({ groupId, topic })
    await eventually(() => messages.length === 4)
    const [assigned] = loop.assigned as [AssignedPartition]
    loop.seek(assigned, 1n)
    await eventually(() => messages.length === 7)
    expect(values()).toEqual(['0', '1', '2', '3', '1', '2', '3'])
  })

  it('begins a partition anew whose place retention has deleted, and leaves what is committed as it is', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    for (const value of ['0', '1', '2', '3', '4', '5']) await kafka.produce(topic, 0, [value])
    await kafka.commit(groupId, topic, 0, 2n, 'what was done')
    const { loop, changes, values, seen } = await member({ groupId, topic, loop: { startPaused: true } })
    await eventually(() => changes.length === 1)
    await kafka.deleteRecordsBelow(topic, 0, 4n)
    const read = (from: bigint): void => {
      const [assigned] = loop.assigned as [AssignedPartition]
      loop.seek(assigned, from)
      loop.resume([assigned])
    }
    read(2n)
    await eventually(() => seen.count('OffsetOutOfRange', { reason: 'while-reading' }) === 1)
    read(4n)
    await eventually(() => values().length === 2)
    expect(values()).toEqual(['4', '5'])
    expect(await kafka.committed(groupId, topic, 0)).toEqual({ offset: 2n, metadata: 'what was done' })
  })

  it('notices new partitions of a topic and reads them from their beginning', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    const { loop, values } = await member({ groupId, topic, loop: { settings: { ...QUICK_MEMBER, metadataMaxAgeMs: 300 } } })
    const admin = kafka.client.kafka.admin()
    await admin.connect()
    await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
    await admin.disconnect()
    const other = new KafkaFixture(silentObserver)
    await other.produce(topic, 2, ['new'])
    await other.close()
    await eventually(() => values().includes('new'))
    expect(loop.assigned.map(({ partition }) => partition).sort()).toEqual([0, 1, 2])
  })
})

describe('the consumer loop, when things break', () => {
  it('comes back after its broker was away, as a new member that lost everything', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    await kafka.produce(topic, 0, ['a'])
    const outage = clientWithOutage()
    const { changes, values, seen } = await member({
      groupId,
      topic,
      loop: { client: outage.client, settings: { ...QUICK_MEMBER, sessionTimeoutMs: 3_000, rebalanceTimeoutMs: 3_000 } },
    })
    await eventually(() => values().length > 0)
    outage.begin()
    await eventually(() => seen.count('ConsumerRestarted') > 0)
    expect(changes.at(-1)?.lost).toHaveLength(1)
    outage.end()
    await kafka.produce(topic, 0, ['b'])
    await eventually(() => values().includes('b'))
    expect(changes.at(-1)?.gained[0]?.epoch).toBeGreaterThan(1)
  })

  it('does not wait for the member that it was when its broker comes back', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    const outage = clientWithOutage()
    const session = { sessionTimeoutMs: 120_000, rebalanceTimeoutMs: 120_000 }
    const { changes, seen } = await member({ groupId, topic, loop: { client: outage.client, settings: { ...QUICK_MEMBER, ...session } } })
    outage.begin()
    await eventually(() => seen.count('ConsumerRestarted') > 0)
    outage.end()
    // Well below the session of the old member.
    await eventually(() => changes.at(-1)?.gained.length === 1 && changes.length > 1, { timeoutMs: 40_000 })
  })

  it('survives connections that break while it reads, without a hole', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    const outage = clientWithOutage()
    const { values } = await member({ groupId, topic, loop: { client: outage.client } })
    for (let round = 0; round < 5; round += 1) {
      await kafka.produce(topic, 0, [`${round}`])
      outage.cut()
      await eventually(() => values().includes(`${round}`))
    }
    expect([...new Set(values())]).toEqual(['0', '1', '2', '3', '4'])
  })

  it('passes over a batch that unpacks to too much, as one message that says why, and tells of it', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    await kafka.produce(topic, 0, ['before'])
    await kafka.producePacked(topic, [Buffer.alloc(150_000_000), Buffer.alloc(150_000_000)])
    await kafka.produce(topic, 0, ['after'])
    const { messages, seen } = await member({ groupId, topic })
    await eventually(() => messages.at(-1)?.value?.toString() === 'after')
    expect(messages.map(({ offset }) => offset)).toEqual([0n, 2n, 3n])
    expect(messages[1]?.value?.length).toBeLessThan(1_000_000)
    expect(headerText(messages[1]?.headers ?? {}, HEADER.unreadBatch)).toContain('offsets 1 to 2, a batch of 2 messages')
    expect(seen.count('BatchUnread', { group: groupId, topic, partition: 0, offset: 2n })).toBe(1)
  })

  it('ends with what to do at a batch whose codec is not installed', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    const { CompressionCodecs, CompressionTypes } = kafka.client.kafkajs
    const known = CompressionCodecs[CompressionTypes.ZSTD]
    const producer = kafka.client.kafka.producer({ createPartitioner: kafka.client.kafkajs.Partitioners.DefaultPartitioner })
    await producer.connect()
    CompressionCodecs[CompressionTypes.ZSTD] = () => ({ compress: async ({ buffer }: { buffer: Buffer }) => zstdFrame(buffer) })
    await producer.send({ topic, compression: CompressionTypes.ZSTD, messages: [{ value: 'a' }] })
    await producer.disconnect()
    // Its type knows of no arguments, but it needs one.
    const NotImplemented = kafka.client.kafkajs.KafkaJSNotImplemented as unknown as new (message: string) => Error
    CompressionCodecs[CompressionTypes.ZSTD] = () => {
      throw new NotImplemented('ZSTD compression not implemented')
    }
    try {
      const { loop } = await member({ groupId, topic })
      open.delete(loop)
      await expect(loop.closed).rejects.toMatchObject({
        code: 'KAFKA_CONSUMER_CRASHED',
        message: expect.stringContaining('compressed with ZSTD'),
      })
    } finally {
      CompressionCodecs[CompressionTypes.ZSTD] = known
    }
  })
})

/** A client whose connections break, and find nobody while an outage lasts. */
function clientWithOutage(): { client: KafkaClient; begin: () => void; end: () => void; cut: () => void } {
  const sockets = new Set<net.Socket>()
  let isAway = false
  const cut = (): void => {
    // What a peer that went away looks like; a socket that is only destroyed tells kafkajs nothing.
    for (const socket of sockets) socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
  }
  const isolated: KafkaClient['isolated'] = () =>
    new kafka.client.kafkajs.Kafka({
      brokers: brokers(),
      clientId: 'outage',
      connectionTimeout: 1_000,
      retry: { initialRetryTime: 20, maxRetryTime: 200, retries: 3 },
      logLevel: kafka.client.kafkajs.logLevel.NOTHING,
      socketFactory: ({ host, port, onConnect }) => {
        // Port 1 refuses at once, as the port of a broker that is down.
        const socket = net.connect({ host, port: isAway ? 1 : port }, onConnect)
        sockets.add(socket)
        socket.on('close', () => sockets.delete(socket))
        return socket
      },
    })
  return {
    client: { ...kafka.client, isolated },
    begin: () => {
      isAway = true
      cut()
    },
    end: () => {
      isAway = false
    },
    cut,
  }
}

/** Bytes as a zstd frame with one uncompressed block. Shape: less than 256 bytes. Source: RFC 8878, sections 3.1.1 and 3.1.1.2. */
function zstdFrame(content: Buffer): Buffer {
  const header = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, content.length])
  const block = Buffer.alloc(3)
  block.writeUIntLE((content.length << 3) | 1, 0, 3)
  return Buffer.concat([header, block, content])
}
