import { afterAll, describe, expect, it } from 'vitest'
import { KafkaAdmin } from '../../../src/kafka/admin.ts'
import { createKafkaClient } from '../../../src/kafka/client.ts'
import { topicDefinitions } from '../../../src/kafka/topic-definitions.ts'
import { partitionId } from '../../../src/kernel/brand.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { topicNames } from '../../../src/message/topics.ts'
import { eventually } from '../../support/eventually.ts'
import { expectInTime } from '../../support/in-time.ts'
import { readTexts, setTopicConfigs, testAdmin, testClient, testTopic } from '../../support/kafka.ts'
import { uniqueName } from '../../support/services.ts'

const client = testClient()
const admin = testAdmin(client)
const producer = client.kafka.producer({ allowAutoTopicCreation: false, createPartitioner: client.kafkajs.Partitioners.DefaultPartitioner })
const connected = producer.connect()

/** Timestamps are a second apart, from this one. */
const FIRST_MS = 1_700_000_000_000

async function write(topic: string, count: number, partition = 0): Promise<void> {
  await connected
  const messages = Array.from({ length: count }, (_, index) => ({
    partition,
    value: `v${index}`,
    timestamp: String(FIRST_MS + index * 1_000),
  }))
  await producer.send({ topic, messages })
}

afterAll(async () => {
  await Promise.all([admin.close(), producer.disconnect()])
})

describe('topics', () => {
  it('are created with their configs once, and found with the values in force', async () => {
    const topic = uniqueName('made')
    const wanted = { topic, partitions: 3, replication: 1, configs: { 'retention.ms': '123456' } }
    expect(await admin.createTopics([wanted])).toEqual([topic])
    expect(await admin.createTopics([wanted])).toEqual([])
    const [found] = await admin.describeTopics([topic, uniqueName('none')])
    expect(found).toMatchObject({ topic, partitions: 3, replication: 1, ownConfigs: { 'retention.ms': '123456' } })
    expect(found?.configs).toMatchObject({ 'retention.ms': '123456', 'cleanup.policy': 'delete' })
    expect(await admin.listTopics()).toContain(topic)
    expect(await admin.partitions(topic)).toEqual([0, 1, 2])
  })

  it('take messages for all of their partitions at once when they have just been created, each once', async () => {
    await connected
    for (let round = 0; round < 5; round += 1) {
      const topics = Array.from({ length: 12 }, () => ({ topic: uniqueName('new'), partitions: 8, replication: 1, configs: {} }))
      await admin.createTopics(topics)
      const [first, last] = [topics[0]?.topic ?? '', topics.at(-1)?.topic ?? '']
      for (const topic of [first, last]) {
        await producer.send({ topic, messages: Array.from({ length: 40 }, (_, index) => ({ partition: index % 8, value: `${index}` })) })
        expect([...(await admin.endOffsets(topic, 'read_uncommitted')).values()]).toEqual(Array.from({ length: 8 }, () => 5n))
      }
    }
  })

  it('are created beside one that exists', async () => {
    const [old, fresh] = [await testTopic(admin, 'old'), uniqueName('fresh')]
    const topics = [old, fresh].map((topic) => ({ topic, partitions: 1, replication: 1, configs: {} }))
    expect(await admin.createTopics(topics)).toEqual([fresh])
  })

  it('keep their other configs when one is set', async () => {
    const topic = await testTopic(admin, 'configs', 1, { 'retention.ms': '1000', 'max.message.bytes': '2000' })
    await setTopicConfigs(admin, topic, { 'retention.ms': '5000' })
    expect((await admin.describeTopics([topic]))[0]?.ownConfigs).toEqual({ 'retention.ms': '5000', 'max.message.bytes': '2000' })
  })

  it('say which config is refused', async () => {
    const topic = await testTopic(admin, 'bad')
    await expect(setTopicConfigs(admin, topic, { 'retention.ms': 'soon' })).rejects.toMatchObject({ code: 'KAFKA_REQUEST_FAILED' })
    await expect(
      admin.createTopics([{ topic: uniqueName('bad'), partitions: 1, replication: 1, configs: { 'no.such': '1' } }]),
    ).rejects.toMatchObject({ code: 'KAFKA_REQUEST_FAILED' })
  })

  it('are deleted once', async () => {
    const topic = await testTopic(admin, 'deleted')
    expect(await admin.deleteTopic(topic)).toBe(true)
    expect(await admin.deleteTopic(uniqueName('never'))).toBe(false)
    await eventually(async () => !(await admin.listTopics()).includes(topic))
  })

  it('become as wanted by a plan that is empty afterwards, and a change of settings is a small plan', async () => {
    const settings = {
      names: topicNames(`${uniqueName('plan')}.`),
      replication: 1,
      partitions: { urls: 2, records: 1 },
      retention: { htmlMs: 3_600_000 },
      maxBodyBytes: 1_000_000,
      maxMessageBytes: 10_000_000,
    }
    const wanted = topicDefinitions(settings)
    await admin.applyTopics(await admin.planTopics(wanted))
    expect(await admin.planTopics(wanted)).toEqual({ changes: [], refusals: [], notes: [] })

    const grown = topicDefinitions({ ...settings, partitions: { urls: 3, records: 1 }, retention: { htmlMs: 7_200_000 } })
    const plan = await admin.planTopics(grown)
    expect(plan.changes.filter(({ kind }) => kind === 'set-config')).toEqual([
      { kind: 'set-config', topic: settings.names.html, name: 'retention.ms', from: '3600000', to: '7200000' },
    ])
    await admin.applyTopics(plan)
    // A broker answers before a config is in force.
    await eventually(async () => (await admin.planTopics(grown)).changes.length === 0, { what: 'all that was applied' })
    await expect(admin.applyTopics(await admin.planTopics(wanted))).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})

describe('offsets of a log', () => {
  it('are given for its first message, its end and a time', async () => {
    const topic = await testTopic(admin, 'offsets', 2)
    await write(topic, 10)
    expect(await admin.earliestOffsets(topic)).toEqual(
      new Map([
        [0, 0n],
        [1, 0n],
      ]),
    )
    expect(await admin.endOffsets(topic, 'read_uncommitted')).toEqual(
      new Map([
        [0, 10n],
        [1, 0n],
      ]),
    )
    expect(await admin.offsetsForTime(topic, FIRST_MS + 3_500)).toEqual(
      new Map([
        [0, 4n],
        [1, 0n],
      ]),
    )
    expect(await admin.offsetsForTime(topic, FIRST_MS + 60_000)).toEqual(
      new Map([
        [0, 10n],
        [1, 0n],
      ]),
    )
  })

  it('move up when old messages are deleted, and never beyond the end', async () => {
    const topic = await testTopic(admin, 'cut', 2)
    await write(topic, 10)
    await admin.deleteRecordsBefore(topic, new Map([[0, 4n]]))
    expect((await admin.earliestOffsets(topic)).get(0)).toBe(4n)
    await admin.deleteRecordsBefore(
      topic,
      new Map([
        [0, 2n],
        [1, 7n],
      ]),
    )
    expect(await admin.earliestOffsets(topic)).toEqual(
      new Map([
        [0, 4n],
        [1, 0n],
      ]),
    )
    expect(await readTexts(client, topic)).toEqual(['v4', 'v5', 'v6', 'v7', 'v8', 'v9'])
  })

  it('of a topic that does not exist are an error that names it', async () => {
    const topic = uniqueName('none')
    await expect(admin.endOffsets(topic, 'read_committed')).rejects.toMatchObject({
      code: 'KAFKA_TOPIC_MISSING',
      message: expect.stringContaining(topic),
    })
    expect(await admin.listTopics()).not.toContain(topic)
  })
})

describe('groups', () => {
  it('without members take offsets with metadata in one request, and give them back', async () => {
    const [topic, other, group] = [await testTopic(admin, 'g', 2), await testTopic(admin, 'h'), uniqueName('group')]
    await admin.commitDirect(group, [
      { topic, partition: 1, offset: 7n, metadata: 'replaying' },
      { topic: other, partition: 0, offset: 0n, metadata: '' },
    ])
    expect(await admin.committedOffsets(group, [topic, other])).toEqual(
      new Map([
        [partitionId(topic, 0), { offset: undefined, metadata: '' }],
        [partitionId(topic, 1), { offset: 7n, metadata: 'replaying' }],
        [partitionId(other, 0), { offset: 0n, metadata: '' }],
      ]),
    )
    expect(await admin.describeGroup(group)).toEqual({ groupId: group, state: 'Empty', members: [] })
    expect(await admin.listGroups()).toContain(group)
  })

  it('refuse offsets that no group must have', async () => {
    const topic = await testTopic(admin, 'g')
    const commit = (offset: bigint, metadata: string) =>
      admin.commitDirect(uniqueName('group'), [{ topic, partition: 0, offset, metadata }])
    await expect(commit(-2n, '')).rejects.toMatchObject({ code: 'INTERNAL' })
    await expect(commit(1n, 'x'.repeat(4_097))).rejects.toMatchObject({ code: 'INTERNAL' })
  })

  it('with members are described, and neither set nor deleted from outside', async () => {
    const [topic, group] = [await testTopic(admin, 'live', 2), uniqueName('group')]
    const consumer = client.isolated().consumer({ groupId: group, maxWaitTimeInMs: 100 })
    await consumer.connect()
    await consumer.subscribe({ topic })
    await consumer.run({ eachMessage: async () => undefined })
    try {
      const described = await eventually(async () => {
        const found = await admin.describeGroup(group)
        return found.state === 'Stable' ? found : undefined
      })
      expect(described.members).toHaveLength(1)
      expect(described.members[0]).toMatchObject({ clientId: 'test', host: '127.0.0.1' })
      expect(described.members[0]?.assignment).toEqual([
        { topic, partition: 0 },
        { topic, partition: 1 },
      ])
      const set = admin.commitDirect(group, [{ topic, partition: 0, offset: 0n, metadata: '' }])
      await expect(set).rejects.toMatchObject({ code: 'KAFKA_GROUP_ACTIVE' })
      await expect(admin.deleteGroup(group)).rejects.toMatchObject({ code: 'KAFKA_GROUP_ACTIVE' })
      // One that is taken out is gone at once, and comes back as another one if it lives.
      const memberId = described.members[0]?.memberId ?? ''
      expect(await admin.evictMember(group, memberId)).toBe(true)
      expect(await admin.evictMember(group, memberId)).toBe(false)
      const again = await eventually(async () => {
        const { state, members } = await admin.describeGroup(group)
        return state === 'Stable' && members[0]?.memberId !== memberId ? members : undefined
      })
      expect(again).toHaveLength(1)
    } finally {
      await consumer.disconnect()
    }
    await eventually(() => admin.deleteGroup(group))
    expect(await admin.deleteGroup(group)).toBe(false)
    expect((await admin.describeGroup(group)).state).toBe('Dead')
  })

  it('C155: lag by what is still there, never by what was deleted or never committed', async () => {
    const [topic, group] = [await testTopic(admin, 'lag', 3), uniqueName('group')]
    await write(topic, 150, 0)
    await write(topic, 10, 1)
    await admin.deleteRecordsBefore(topic, new Map([[0, 100n]]))
    await admin.commitDirect(group, [{ topic, partition: 1, offset: 4n, metadata: 'm' }])
    expect(await admin.lag(group, [topic])).toEqual([
      { topic, partition: 0, committed: undefined, metadata: '', low: 100n, end: 150n, lag: 50n },
      { topic, partition: 1, committed: 4n, metadata: 'm', low: 0n, end: 10n, lag: 6n },
      { topic, partition: 2, committed: undefined, metadata: '', low: 0n, end: 0n, lag: 0n },
    ])
    await admin.commitDirect(group, [{ topic, partition: 0, offset: 20n, metadata: '' }])
    expect((await admin.lag(group, [topic]))[0]).toMatchObject({ committed: 20n, lag: 50n })
  })
})

describe('the cluster', () => {
  it('has an id and configs', async () => {
    expect(await admin.clusterId()).toMatch(/^\S{10,}$/)
    expect(Number((await admin.brokerConfigs())['offsets.retention.minutes'])).toBeGreaterThan(0)
  })

  it('that can not be reached is an error in time, with the addresses that were tried', async () => {
    const away = new KafkaAdmin(createKafkaClient({ brokers: ['127.0.0.1:1'], clientId: 'x' }, silentObserver), systemClock)
    const began = performance.now()
    await expect(away.listTopics()).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE', message: expect.stringContaining('127.0.0.1:1') })
    expectInTime(performance.now() - began, 45_000)
    await away.close()
  })
})
