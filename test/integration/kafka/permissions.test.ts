import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AclEntry, Admin } from 'kafkajs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { status } from '../../../src/control/inspect/status.ts'
import { Runtime } from '../../../src/control/runtime/runtime.ts'
import { KafkaAdmin } from '../../../src/kafka/admin.ts'
import { createKafkaClient, type KafkaClient } from '../../../src/kafka/client.ts'
import { ConsumerLoop } from '../../../src/kafka/consumer-loop.ts'
import { readLog } from '../../../src/kafka/log-reader.ts'
import { DurableProducer } from '../../../src/kafka/producer.ts'
import { createPartitionTransactions } from '../../../src/kafka/transactional.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { eventually } from '../../support/eventually.ts'
import { textMessage } from '../../support/kafka.ts'
import { OwnBroker } from '../../support/own-broker.ts'

const clock = systemClock
const observer = silentObserver
const TOPIC = 'team.urls'
const GROUP = 'team.fetch'
/** For what would wait for ever else. */
const BOUND_MS = 60_000

let broker: OwnBroker
let outside: KafkaClient
let client: KafkaClient
const closing: (() => Promise<unknown>)[] = []

type Resource = 'TOPIC' | 'GROUP' | 'TRANSACTIONAL_ID'
type Operation = 'READ' | 'WRITE' | 'DESCRIBE'

async function allow(resource: Resource, name: string, operation: Operation): Promise<() => Promise<void>> {
  const { AclResourceTypes, AclOperationTypes, AclPermissionTypes, ResourcePatternTypes } = outside.kafkajs
  const entry: AclEntry = {
    resourceType: AclResourceTypes[resource],
    resourceName: name,
    resourcePatternType: ResourcePatternTypes.LITERAL,
    principal: 'User:team',
    host: '*',
    operation: AclOperationTypes[operation],
    permissionType: AclPermissionTypes.ALLOW,
  }
  const isAllowed = async (admin: Admin): Promise<boolean> => (await admin.describeAcls(entry)).resources.length > 0
  const admin = outside.kafka.admin()
  await admin.connect()
  await admin.createAcls({ acl: [entry] })
  // The controller answers before the broker goes by it.
  await eventually(() => isAllowed(admin), { what: 'the right to be given' })
  await admin.disconnect()
  const forbid = async (): Promise<void> => {
    const again = outside.kafka.admin()
    await again.connect()
    await again.deleteAcls({ filters: [entry] })
    await eventually(async () => !(await isAllowed(again)), { what: 'the right to be taken' })
    await again.disconnect()
  }
  closing.push(forbid)
  return forbid
}

async function startProducer(): Promise<DurableProducer> {
  const producer = new DurableProducer({ client, clock, observer, maxBatchBytes: () => 1_048_588 })
  closing.unshift(() => producer.stop({ mode: 'abort', timeoutMs: 1_000 }))
  await producer.start()
  return producer
}

const denied = (type: string, what: string) => ({
  code: 'KAFKA_DENIED',
  message: expect.stringMatching(new RegExp(`${what}.*user team.*${type}`)),
})

beforeAll(async () => {
  broker = await OwnBroker.start({ users: { team: 'secret', other: 'secret' } })
  outside = createKafkaClient({ brokers: [broker.address], clientId: 'outside' }, observer)
  const sasl = { mechanism: 'plain', username: 'team', password: 'secret' } as const
  client = createKafkaClient({ brokers: [broker.guardedAddress], clientId: 'inside', sasl }, observer)
  const admin = new KafkaAdmin(outside, clock)
  await admin.createTopics([{ topic: TOPIC, partitions: 1, replication: 1, configs: {} }])
  await admin.close()
})
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})
afterAll(() => broker.end())

describe('what a user of the brokers may not do', () => {
  it('is said by a send to a topic that has taken nothing yet, by those that wait beside it too', async () => {
    await allow('TOPIC', TOPIC, 'DESCRIBE')
    const producer = await startProducer()
    const sends = [0, 1, 2].map((index) => producer.send([textMessage(TOPIC, 0, String(index))]))
    for (const send of sends) await expect(send).rejects.toMatchObject(denied('TOPIC_AUTHORIZATION_FAILED', `writing to ${TOPIC}`))
  })

  it('is waited for where the topic has taken something before: nothing that was accepted is dropped', async () => {
    const forbid = await allow('TOPIC', TOPIC, 'WRITE')
    const producer = await startProducer()
    await producer.send([textMessage(TOPIC, 0, 'before')])
    await allow('TOPIC', TOPIC, 'DESCRIBE')
    await forbid()
    let isStored = false
    const send = producer.send([textMessage(TOPIC, 0, 'meanwhile')]).then(() => {
      isStored = true
    })
    await expect(startProducer().then((late) => late.send([textMessage(TOPIC, 0, 'late')]))).rejects.toMatchObject({ code: 'KAFKA_DENIED' })
    expect(isStored).toBe(false)
    await allow('TOPIC', TOPIC, 'WRITE')
    await send
  })

  it('is said by a reader that follows a topic it may describe and not read', async () => {
    await allow('TOPIC', TOPIC, 'DESCRIBE')
    const from = new Map([[TOPIC, 'earliest' as const]])
    const reading = async (): Promise<void> => {
      const signal = AbortSignal.timeout(BOUND_MS)
      for await (const event of readLog({ client, clock, observer, from, follow: true, signal })) expect(event.kind).toBe('end')
    }
    await expect(reading()).rejects.toMatchObject(denied('TOPIC_AUTHORIZATION_FAILED', `reading ${TOPIC}`))
  })

  it('is said of a group, and not that its brokers are away', async () => {
    await allow('TOPIC', TOPIC, 'READ')
    const admin = new KafkaAdmin(client, clock)
    closing.unshift(() => admin.close())
    await expect(admin.committedOffsets(GROUP, [TOPIC])).rejects.toMatchObject(denied('GROUP_AUTHORIZATION_FAILED', GROUP))
    const handler = { onAssignment: () => undefined, onMessages: () => undefined, onPosition: () => undefined }
    const loop = new ConsumerLoop({ client, clock, observer, groupId: GROUP, topics: [TOPIC], handler })
    await expect(loop.start({ signal: AbortSignal.timeout(BOUND_MS) })).rejects.toMatchObject(denied('GROUP_AUTHORIZATION_FAILED', GROUP))
  })

  it('is said of a transactional id, and of the topic that a transaction writes to', async () => {
    await allow('TOPIC', TOPIC, 'READ')
    await allow('GROUP', GROUP, 'READ')
    const transactions = createPartitionTransactions({ client, groupId: GROUP, topic: TOPIC, partition: 0, clock, observer })
    closing.unshift(() => transactions.close())
    await expect(transactions.fence()).rejects.toMatchObject(denied('TRANSACTIONAL_ID_AUTHORIZATION_FAILED', `${GROUP}/${TOPIC}/0`))
    await allow('TRANSACTIONAL_ID', `${GROUP}/${TOPIC}/0`, 'WRITE')
    await eventually(() => transactions.fence(), { what: 'the fence' })
    const commit = transactions.commit([textMessage(TOPIC, 0, 'a')], 0n, '')
    await expect(commit).rejects.toMatchObject(denied('TOPIC_AUTHORIZATION_FAILED', `writing to ${TOPIC}`))
  })
})

it('status takes no right beyond those that all commands have, to configs of topics neither', async () => {
  const data = mkdtempSync(join(tmpdir(), 'millrace-permissions-'))
  closing.unshift(async () => rmSync(data, { recursive: true }))
  const admin = new KafkaAdmin(outside, clock)
  closing.unshift(() => admin.close())
  const topics = ['team.html', 'team.control']
  await admin.createTopics(topics.map((topic) => ({ topic, partitions: 1, replication: 1, configs: {} })))
  for (const topic of topics) await allow('TOPIC', topic, 'READ')
  for (const group of ['team.frontier', 'team.extract']) await allow('GROUP', group, 'READ')
  const sasl = ['kafka.sasl.mechanism=plain', 'kafka.sasl.username=team', 'kafka.sasl.password=secret']
  const sets = [`brokers=${broker.guardedAddress}`, 'topics.prefix=team.', `data=${data}`, ...sasl]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  const runtime = await Runtime.open({ config, owner: 'a test', clock, observer })
  closing.unshift(() => runtime.close())
  expect((await status(runtime)).summary.map(({ group }) => group)).toEqual(['team.frontier', 'team.extract'])
  await expect(runtime.admin.describeTopics(topics)).rejects.toMatchObject({ code: 'KAFKA_DENIED' })
})
