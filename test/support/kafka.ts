import { KafkaAdmin } from '../../src/kafka/admin.ts'
import { createKafkaClient, type KafkaClient } from '../../src/kafka/client.ts'
import type { LogEvent } from '../../src/kafka/log-cursor.ts'
import { type ReadLogOptions, readLog } from '../../src/kafka/log-reader.ts'
import type { KafkaMessage, OutgoingMessage } from '../../src/kafka/message.ts'
import { TopicAdmin } from '../../src/kafka/topic-admin.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { eventually } from './eventually.ts'
import { brokers, uniqueName } from './services.ts'

/** For producers of a test: quick where the coordinator is just loading or ends the last one, and patient on a busy machine. */
export const TRANSACTION_RETRY = { initialRetryTime: 20, retries: 10 } as const

/** A client of the broker of this test run. */
export function testClient(): KafkaClient {
  return createKafkaClient({ brokers: brokers(), clientId: 'test' }, silentObserver)
}

/** A new topic of its own name. */
export async function testTopic(admin: KafkaAdmin, label: string, partitions = 1, configs: Record<string, string> = {}): Promise<string> {
  const topic = uniqueName(label)
  await admin.createTopics([{ topic, partitions, replication: 1, configs }])
  return topic
}

export function testAdmin(client: KafkaClient): KafkaAdmin {
  return new KafkaAdmin(client, systemClock)
}

/**
 * As somebody sets them with Kafka's tool; the others stay. Shape: resolves when they are in force, which is after the broker has answered.
 */
export async function setTopicConfigs(admin: KafkaAdmin, topic: string, configs: Readonly<Record<string, string>>): Promise<void> {
  await new TopicAdmin(admin.session, systemClock).setConfigs(topic, configs)
  const areInForce = async (): Promise<boolean> => {
    const [found] = await admin.describeTopics([topic])
    return Object.entries(configs).every(([name, value]) => found?.configs[name] === value)
  }
  await eventually(areInForce, { what: `the configs of ${topic}` })
}

/**
 * Resolves when no transaction is open in the first partition of a topic, with the offset behind the last one: a commit and an abort are
 * answered before their marks are written, and until then readers see what was before.
 */
export function closedEnd(admin: KafkaAdmin, topic: string): Promise<bigint> {
  const end = async (): Promise<bigint | undefined> => {
    const [committed, all] = [await admin.endOffsets(topic, 'read_committed'), await admin.endOffsets(topic, 'read_uncommitted')]
    return all.get(0) === committed.get(0) ? all.get(0) : undefined
  }
  return eventually(end, { what: `the mark of the transaction in ${topic}` })
}

/** A message whose value is text. */
export function textMessage(topic: string, partition: number, text: string): OutgoingMessage {
  return { topic, partition, key: null, value: Buffer.from(text) }
}

/** Everything on a topic now. */
export async function readAll(client: KafkaClient, topic: string, options: Partial<ReadLogOptions> = {}): Promise<KafkaMessage[]> {
  const messages: KafkaMessage[] = []
  for (const event of await readEvents(client, topic, options)) if (event.kind === 'batch') messages.push(...event.messages)
  return messages
}

export async function readEvents(client: KafkaClient, topic: string, options: Partial<ReadLogOptions> = {}): Promise<LogEvent[]> {
  const events: LogEvent[] = []
  const from = new Map([[topic, 'earliest' as const]])
  for await (const event of readLog({ client, clock: systemClock, from, ...options })) events.push(event)
  return events
}

export async function readTexts(client: KafkaClient, topic: string, options: Partial<ReadLogOptions> = {}): Promise<string[]> {
  return (await readAll(client, topic, options)).map(({ value }) => String(value))
}
