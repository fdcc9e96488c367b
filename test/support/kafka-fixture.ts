import { KafkaAdmin } from '../../src/kafka/admin.ts'
import { createKafkaClient, type KafkaClient } from '../../src/kafka/client.ts'
import type { ConsumerSettings } from '../../src/kafka/consumer-settings.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { EventName } from '../../src/kernel/events.ts'
import type { EventFields, Observer } from '../../src/kernel/observe.ts'
import { eventually } from './eventually.ts'
import { TRANSACTION_RETRY } from './kafka.ts'
import { brokers, uniqueName } from './services.ts'

/** Quick rebalances and expiries, for members that live for seconds. */
export const QUICK_MEMBER: ConsumerSettings = {
  sessionTimeoutMs: 6_000,
  rebalanceTimeoutMs: 6_000,
  heartbeatIntervalMs: 200,
  maxWaitMs: 50,
}

export interface SeenEvent {
  readonly event: EventName
  readonly fields: EventFields
}

/** An observer that keeps what it was told. */
export function recordingObserver(): {
  observer: Observer
  events: SeenEvent[]
  count: (event: EventName, fields?: EventFields) => number
} {
  const events: SeenEvent[] = []
  const observer: Observer = { emit: (event, fields = {}) => events.push({ event, fields }), child: () => observer }
  const matches = (seen: SeenEvent, fields: EventFields): boolean =>
    Object.entries(fields).every(([name, value]) => seen.fields[name] === value)
  return { observer, events, count: (event, fields = {}) => events.filter((seen) => seen.event === event && matches(seen, fields)).length }
}

/** What tests do to a Kafka from outside, with the plain client. */
export class KafkaFixture {
  readonly client: KafkaClient
  readonly #closing: (() => Promise<unknown>)[] = []

  constructor(observer: Observer) {
    this.client = createKafkaClient({ brokers: brokers(), clientId: 'test' }, observer)
  }

  /** A new topic with a name of its own. */
  async topic(options: { partitions?: number; config?: Readonly<Record<string, string>> } = {}): Promise<string> {
    const topic = uniqueName('topic')
    const configEntries = Object.entries(options.config ?? {}).map(([name, value]) => ({ name, value }))
    await this.#admin(async (admin) => {
      await admin.createTopics({ waitForLeaders: false, topics: [{ topic, numPartitions: options.partitions ?? 1, configEntries }] })
      // The client's own wait fails where the broker does not know the topic yet.
      await eventually(() => admin.fetchTopicMetadata({ topics: [topic] }), { what: `the leaders of ${topic}` })
    })
    return topic
  }

  async produce(topic: string, partition: number, values: readonly string[]): Promise<void> {
    const producer = await this.#producer()
    await producer.send({ topic, messages: values.map((value) => ({ partition, key: `k${value}`, value })) })
  }

  /** Values in one batch, packed with gzip. */
  async producePacked(topic: string, values: readonly Buffer[]): Promise<void> {
    const producer = await this.#producer()
    const compression = this.client.kafkajs.CompressionTypes.GZIP
    await producer.send({ topic, compression, messages: values.map((value) => ({ partition: 0, value })) })
  }

  /** Values in one transaction, which leaves a marker behind them. */
  async produceInTransaction(topic: string, partition: number, values: readonly string[], end: 'commit' | 'abort'): Promise<void> {
    const producer = this.client.kafka.producer({
      transactionalId: uniqueName('tx'),
      maxInFlightRequests: 1,
      createPartitioner: this.client.kafkajs.Partitioners.DefaultPartitioner,
      retry: TRANSACTION_RETRY,
    })
    await producer.connect()
    try {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: values.map((value) => ({ partition, value })) })
      await transaction[end]()
    } finally {
      await producer.disconnect()
    }
  }

  /** What a group has stored. Shape: undefined where it has nothing. */
  async committed(groupId: string, topic: string, partition: number): Promise<{ offset: bigint; metadata: string } | undefined> {
    const [found] = await this.#admin((admin) => admin.fetchOffsets({ groupId, topics: [topic] }))
    const stored = found?.partitions.find((each) => each.partition === partition)
    return stored === undefined || stored.offset === '-1' ? undefined : { offset: BigInt(stored.offset), metadata: stored.metadata ?? '' }
  }

  /** Stores an offset for a group without members. */
  async commit(groupId: string, topic: string, partition: number, offset: bigint, metadata: string): Promise<void> {
    // Retried by the admin: a coordinator that is just loading is daily life of a fresh broker.
    await this.#withAdmin((admin) => admin.commitDirect(groupId, [{ topic, partition, offset, metadata }]))
  }

  async deleteRecordsBelow(topic: string, partition: number, offset: bigint): Promise<void> {
    await this.#withAdmin((admin) => admin.deleteRecordsBefore(topic, new Map([[partition, offset]])))
  }

  async #withAdmin(work: (admin: KafkaAdmin) => Promise<void>): Promise<void> {
    const admin = new KafkaAdmin(this.client, systemClock)
    try {
      await work(admin)
    } finally {
      await admin.close()
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#closing.map((close) => close()))
  }

  #adminClient: Promise<ReturnType<KafkaClient['kafka']['admin']>> | undefined
  #producerClient: Promise<ReturnType<KafkaClient['kafka']['producer']>> | undefined

  async #admin<T>(call: (admin: ReturnType<KafkaClient['kafka']['admin']>) => Promise<T>): Promise<T> {
    this.#adminClient ??= this.#connected(this.client.kafka.admin())
    return call(await this.#adminClient)
  }

  #producer(): Promise<ReturnType<KafkaClient['kafka']['producer']>> {
    this.#producerClient ??= this.#connected(
      this.client.kafka.producer({ createPartitioner: this.client.kafkajs.Partitioners.DefaultPartitioner, allowAutoTopicCreation: false }),
    )
    return this.#producerClient
  }

  async #connected<T extends { connect(): Promise<void>; disconnect(): Promise<void> }>(client: T): Promise<T> {
    this.#closing.push(() => client.disconnect())
    await client.connect()
    return client
  }
}
