import { KafkaAdmin } from '../../src/kafka/admin.ts'
import { createKafkaClient, type KafkaClient } from '../../src/kafka/client.ts'
import type { LogEvent } from '../../src/kafka/log-cursor.ts'
import { type ReadLogOptions, readLog } from '../../src/kafka/log-reader.ts'
import type { KafkaMessage, OutgoingMessage } from '../../src/kafka/message.ts'
import { TopicAdmin } from '../../src/kafka/topic-admin.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { brokers, uniqueName } from './services.ts'

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

/** As somebody sets them with Kafka's tool; the others stay. */
export function setTopicConfigs(admin: KafkaAdmin, topic: string, configs: Readonly<Record<string, string>>): Promise<void> {
  return new TopicAdmin(admin.session, systemClock).setConfigs(topic, configs)
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
