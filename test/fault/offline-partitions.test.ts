import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { describeTopics } from '../../src/control/inspect/describe-topics.ts'
import { status } from '../../src/control/inspect/status.ts'
import { Runtime } from '../../src/control/runtime/runtime.ts'
import { KafkaAdmin } from '../../src/kafka/admin.ts'
import { createKafkaClient, type KafkaClient } from '../../src/kafka/client.ts'
import { ConsumerLoop } from '../../src/kafka/consumer-loop.ts'
import { readLog } from '../../src/kafka/log-reader.ts'
import { DurableProducer } from '../../src/kafka/producer.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { eventually } from '../support/eventually.ts'
import { textMessage } from '../support/kafka.ts'
import { recordingObserver } from '../support/kafka-fixture.ts'
import { OwnBroker } from '../support/own-broker.ts'
import { uniqueName } from '../support/services.ts'

const { observer, count } = recordingObserver()

/** Topics of one replica lie on two brokers, and one of the two ends: half of the partitions have no leader. */
describe('a cluster that has lost the only replica of some partitions', () => {
  let first: OwnBroker
  let second: OwnBroker
  let client: KafkaClient
  let admin: KafkaAdmin
  let topic: string
  /** Of the topic, by whether the broker that stays leads them. */
  let led: number[]
  let offline: number[]

  beforeEach(async () => {
    first = await OwnBroker.start()
    client = createKafkaClient({ brokers: [first.address], clientId: 'test' }, observer)
    admin = new KafkaAdmin(client, clock)
    // The places of groups are made now, on the broker that stays.
    await admin.describeGroup('any')
    second = await first.joined()
    const partitions = 6
    topic = uniqueName('ours')
    await admin.createTopics([topic, uniqueName('theirs')].map((name) => ({ topic: name, partitions, replication: 1, configs: {} })))
    await second.stop('SIGTERM')
    const kafkajsAdmin = client.kafka.admin()
    await kafkajsAdmin.connect()
    const { topics } = await kafkajsAdmin.fetchTopicMetadata({ topics: [topic] })
    await kafkajsAdmin.disconnect()
    const known = topics[0]?.partitions ?? []
    led = known.filter(({ leader }) => leader >= 0).map(({ partitionId }) => partitionId)
    offline = known.filter(({ leader }) => leader < 0).map(({ partitionId }) => partitionId)
  })

  afterEach(async () => {
    await admin.close()
    await second.end()
    await first.end()
  })

  it('is a Kafka all the same, whose topics can be listed, described and made', async () => {
    expect([led.length, offline.length]).toEqual([3, 3])
    await client.verifyReachable()
    expect(await admin.listTopics()).toContain(topic)
    expect(await admin.describeTopics([topic])).toMatchObject([{ topic, partitions: 6, offline }])
    expect(await admin.offlinePartitions([topic, '__consumer_offsets', 'not-there'])).toEqual([{ topic, offline }])
    expect(await admin.createTopics([{ topic: 'another', partitions: 1, replication: 1, configs: {} }])).toEqual(['another'])
    await expect(admin.endOffsets(topic, 'read_uncommitted')).rejects.toThrow(`${topic}/`)
    expect([...(await admin.earliestOffsets(topic, 'led')).keys()]).toEqual(led)
    expect((await admin.lag(uniqueName('group'), [topic], 'led')).map(({ partition }) => partition)).toEqual(led)
  })

  it('lets status and topics describe show the rest while it is the control topic that is offline', async () => {
    await second.start()
    const kafkajsAdmin = client.kafka.admin()
    await kafkajsAdmin.connect()
    await kafkajsAdmin.createTopics({ topics: [{ topic: 'scrape.control', replicaAssignment: [{ partition: 0, replicas: [2] }] }] })
    await kafkajsAdmin.disconnect()
    await second.stop('SIGTERM')
    const data = mkdtempSync(join(tmpdir(), 'millrace-offline-'))
    const { config } = loadConfig({ sets: [`brokers=${first.address}`, `data=${data}`], flags: {}, environment: {} })
    const runtime = await Runtime.open({ config, owner: 'a test', clock, observer })
    try {
      expect(await status(runtime)).toMatchObject({
        isControlUp: false,
        pausedSites: [],
        stoppedCrawls: [],
        stalls: [
          expect.stringMatching(/^no broker leads 1 partition of scrape\.control /),
          expect.stringMatching(/^which sites are paused/),
        ],
      })
      expect(await describeTopics(runtime)).toMatchObject([{ topic: 'scrape.control', partitions: 1, offline: [0], offsets: 0n }])
    } finally {
      await runtime.close()
      rmSync(data, { recursive: true })
    }
  })

  it('takes and gives messages of the other partitions, and those too when the broker is back', async () => {
    const producer = new DurableProducer({ client, clock, observer, maxBatchBytes: () => 1_048_588 })
    const read: string[] = []
    const consumer = new ConsumerLoop({
      client,
      groupId: uniqueName('group'),
      topics: [topic],
      observer,
      clock,
      handler: {
        onAssignment: () => undefined,
        onPosition: () => undefined,
        onMessages: (_, messages) => void read.push(...messages.map(({ value }) => String(value))),
      },
    })
    await producer.start()
    await consumer.start()
    try {
      const [dead = -1] = offline
      let isSent = false
      const waiting = producer.send([textMessage(topic, dead, 'later')]).then(() => {
        isSent = true
      })
      const sent = producer.send(led.map((partition) => textMessage(topic, partition, `now ${partition}`)))
      await eventually(() => read.length === led.length, { timeoutMs: 30_000, what: 'messages of partitions that have a leader' })
      await sent
      expect(read.sort()).toEqual(led.map((partition) => `now ${partition}`))
      expect(isSent).toBe(false)
      for (const partition of offline) {
        const told = () => count('PartitionOffline', { topic, partition, place: `${topic}/${partition}` }) > 0
        await eventually(told, { timeoutMs: 10_000, what: 'word of a partition without a leader' })
      }
      expect(count('PartitionOffline', { topic, partition: led[0] })).toBe(0)
      await second.start()
      await waiting
      await eventually(() => read.includes('later'), { timeoutMs: 10_000, what: 'the message that had to wait' })
      expect(read).toHaveLength(led.length + 1)
    } finally {
      await consumer.stop({ mode: 'abort', timeoutMs: 1_000 })
      await producer.stop({ mode: 'abort', timeoutMs: 1_000 })
    }
  })

  it('is followed on in the other partitions, and in those too when the broker is back', async () => {
    await second.start()
    const producer = new DurableProducer({ client, clock, observer, maxBatchBytes: () => 1_048_588 })
    await producer.start()
    const [here = -1] = led
    const [there = -1] = offline
    const stop = new AbortController()
    const read: string[] = []
    const following = (async () => {
      for await (const event of readLog({
        client,
        clock,
        observer,
        from: new Map([[topic, 'earliest']]),
        follow: true,
        signal: stop.signal,
      }))
        if (event.kind === 'batch') read.push(...event.messages.map(({ value }) => String(value)))
    })()
    const reads = (text: string) => eventually(() => read.includes(text), { timeoutMs: 60_000, what: `the message ${text}` })
    try {
      await producer.send([textMessage(topic, here, 'one'), textMessage(topic, there, 'two')])
      await reads('one')
      await reads('two')
      await second.stop('SIGTERM')
      // What begins while the broker leaves may wait for it as long as one call does.
      await producer.send([textMessage(topic, here, 'three')])
      await reads('three')
      await second.start()
      await producer.send([textMessage(topic, there, 'four')])
      await reads('four')
      expect(read).toHaveLength(4)
    } finally {
      stop.abort()
      await following
      await producer.stop({ mode: 'abort', timeoutMs: 1_000 })
    }
  })
})
