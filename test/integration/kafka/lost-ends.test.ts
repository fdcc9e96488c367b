import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { KafkaAdmin } from '../../../src/kafka/admin.ts'
import { createKafkaClient, type KafkaClient } from '../../../src/kafka/client.ts'
import { CommitTrail } from '../../../src/kafka/commit-trail.ts'
import { kafkajsModules } from '../../../src/kafka/patches/kafkajs-modules.ts'
import { createPartitionTransactions, type PartitionTransactions } from '../../../src/kafka/transactional.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { RecordingObserver } from '../../support/embedded.ts'
import { readTexts, testTopic, textMessage } from '../../support/kafka.ts'
import { OwnBroker } from '../../support/own-broker.ts'
import { uniqueName } from '../../support/services.ts'

/** Of kafkajs: all of this process talk to their broker by them. */
type Requests = Record<'addPartitionsToTxn' | 'addOffsetsToTxn' | 'endTxn', (request: { topics?: TopicPartitions[] }) => Promise<unknown>>
interface TopicPartitions {
  readonly topic: string
  readonly partitions: readonly number[]
}

/**
 * A broker that loses the end of a transaction tells its coordinator that it is over, and some partitions never hear of it. The same comes
 * of a coordinator that was never told of those partitions, where the broker takes their messages all the same.
 */
describe('a transaction whose end does not stand behind all of its messages', () => {
  const group = uniqueName('group')
  const requests = (kafkajsModules().load('broker/index.js') as { prototype: Requests }).prototype
  const real = { ...pick(requests) }
  let broker: OwnBroker
  let client: KafkaClient
  let admin: KafkaAdmin
  let input: string
  let output: string
  let owner: PartitionTransactions
  let observer: RecordingObserver

  beforeAll(async () => {
    broker = await OwnBroker.start({ properties: { 'transaction.partition.verification.enable': 'false' } })
    client = createKafkaClient({ brokers: [broker.address], clientId: 'test' }, silentObserver)
    admin = new KafkaAdmin(client, systemClock)
  }, 120_000)
  afterEach(async () => {
    Object.assign(requests, real)
    await owner.close()
  })
  afterAll(async () => {
    await admin.close()
    await broker.end()
  })

  const begin = async (): Promise<void> => {
    input = await testTopic(admin, 'input')
    output = await testTopic(admin, 'output', 2)
    observer = new RecordingObserver()
    const trail = new CommitTrail()
    owner = createPartitionTransactions({ client, groupId: group, topic: input, partition: 0, clock: systemClock, observer, trail })
    expect((await owner.fence()).offset).toBeUndefined()
  }
  const messages = () => [textMessage(output, 0, 'a'), textMessage(output, 1, 'b')]
  /** The coordinator never hears of these partitions of the output. */
  const hide = (...partitions: readonly number[]): void => {
    requests.addPartitionsToTxn = function addPartitionsToTxn(this: unknown, request) {
      const topics = (request.topics ?? []).map((each) => ({
        ...each,
        partitions: each.partitions.filter((one) => !partitions.includes(one)),
      }))
      const told = topics.filter((each) => each.partitions.length > 0)
      return told.length === 0 ? Promise.resolve({}) : real.addPartitionsToTxn.call(this, { ...request, topics: told })
    }
  }
  /** How far readers of committed messages see of each partition, and what is there. */
  const held = async (): Promise<bigint> => {
    const [stable, ends] = [await admin.endOffsets(output, 'read_committed'), await admin.endOffsets(output, 'read_uncommitted')]
    return [...ends].reduce((sum, [partition, end]) => sum + end - (stable.get(partition) ?? 0n), 0n)
  }
  const ended = (): unknown[] => observer.events.filter(({ name }) => name === 'TransactionEndRestored').map(({ fields }) => fields.result)

  it('is committed where its offset is, so that no reader waits for ever', async () => {
    await begin()
    hide(0, 1)
    await owner.commit(messages(), 5n, 'five')
    Object.assign(requests, real)
    expect(await held()).toBe(2n)
    expect(await owner.fence()).toEqual({ offset: 5n, metadata: 'five' })
    expect(ended()).toEqual(['commit'])
    expect((await readTexts(client, output)).sort()).toEqual(['a', 'b'])
    expect(await owner.fence()).toEqual({ offset: 5n, metadata: 'five' })
    expect(ended()).toEqual(['commit'])
  })

  it('is committed where some of its messages are', async () => {
    await begin()
    hide(1)
    requests.addOffsetsToTxn = () => Promise.resolve({})
    await owner.commit(messages(), 5n, 'five')
    Object.assign(requests, real)
    expect(await owner.fence()).toEqual({ offset: 5n, metadata: 'five' })
    expect(ended()).toEqual(['commit'])
    expect(await held()).toBe(0n)
    expect((await readTexts(client, output)).sort()).toEqual(['a', 'b'])
  })

  it('is committed where nobody knows whether it was, with its offset', async () => {
    await begin()
    hide(0, 1)
    requests.addOffsetsToTxn = () => Promise.resolve({})
    await expect(owner.commit(messages(), 5n, 'five')).rejects.toMatchObject({ code: 'KAFKA_TRANSACTION_FAILED' })
    Object.assign(requests, real)
    expect(await owner.fence()).toEqual({ offset: 5n, metadata: 'five' })
    expect(ended()).toEqual(['commit'])
    expect((await readTexts(client, output)).sort()).toEqual(['a', 'b'])
  })

  it('is aborted where some of its messages are', async () => {
    await begin()
    hide(1)
    requests.endTxn = () => Promise.reject(new Error('the broker is away'))
    await expect(owner.commit(messages(), 5n, 'five')).rejects.toMatchObject({ code: 'KAFKA_TRANSACTION_FAILED' })
    Object.assign(requests, real)
    expect((await owner.fence()).offset).toBeUndefined()
    expect(ended()).toEqual(['abort'])
    expect(await held()).toBe(0n)
    expect(await readTexts(client, output)).toEqual([])
    await owner.commit(messages(), 5n, 'five')
    expect((await owner.fence()).offset).toBe(5n)
    expect((await readTexts(client, output)).sort()).toEqual(['a', 'b'])
  })
})

function pick({ addPartitionsToTxn, addOffsetsToTxn, endTxn }: Requests): Requests {
  return { addPartitionsToTxn, addOffsetsToTxn, endTxn }
}
