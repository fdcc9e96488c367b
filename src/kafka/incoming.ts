import type { EachBatchPayload } from 'kafkajs'
import type { Observer } from '../kernel/observe.ts'
import { HEADER } from '../message/header-names.ts'
import { headerText, type KafkaMessage, type MessageHeaders } from './message.ts'

type RawMessage = EachBatchPayload['batch']['messages'][number]

/** All messages of a batch. Says so where one stands for messages that could not be read. */
export function incomingMessages(
  { topic, partition, messages }: EachBatchPayload['batch'],
  { groupId: group, observer }: { readonly groupId: string; readonly observer: Observer },
): KafkaMessage[] {
  return messages.map((raw) => {
    const message = incomingMessage(topic, partition, raw)
    const text = headerText(message.headers, HEADER.unreadBatch)
    if (text !== undefined) observer.emit('BatchUnread', { group, topic, partition, offset: message.offset, text })
    return message
  })
}

/** Our message of one that kafkajs read. Copies all bytes: kafkajs gives views into the whole answer of a fetch. */
export function incomingMessage(topic: string, partition: number, raw: RawMessage): KafkaMessage {
  return {
    topic,
    partition,
    offset: BigInt(raw.offset),
    timestamp: Number(raw.timestamp),
    key: copyOf(raw.key),
    value: copyOf(raw.value),
    headers: copyHeaders(raw.headers),
  }
}

function copyOf(bytes: Buffer | null | undefined): Buffer | null {
  return bytes === null || bytes === undefined ? null : Buffer.from(bytes)
}

function copyHeaders(raw: RawMessage['headers']): MessageHeaders {
  // Without a prototype: a header may be called `__proto__` or `constructor`.
  const headers: Record<string, Buffer> = Object.create(null) as Record<string, Buffer>
  for (const [name, value] of Object.entries(raw ?? {})) {
    const last = Array.isArray(value) ? value.at(-1) : value
    if (last !== undefined && last !== null) headers[name] = Buffer.from(last as Buffer)
  }
  return headers
}

/** Bytes that a message holds in memory: its own, and about what the objects around them take. */
export function heldBytes(message: KafkaMessage): number {
  let bytes = 256 + (message.key?.length ?? 0) + (message.value?.length ?? 0)
  for (const [name, value] of Object.entries(message.headers)) bytes += name.length + value.length + 64
  return bytes
}
