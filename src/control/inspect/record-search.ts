import type { KafkaMessage } from '../../kafka/message.ts'
import { type MessagePlace, type PartitionId, partitionId } from '../../kernel/brand.ts'
import { grouped } from '../../kernel/grouped.ts'
import { taskTopics } from '../../message/topics.ts'
import { EVERY_MESSAGE } from '../crawls/url-search.ts'
import { announcedTopics } from '../extractors/announced-versions.ts'
import { RecordReader } from '../records/record-reader.ts'
import type { StoredRecord } from '../records/stored-records.ts'
import { shadowTopics } from '../replay/replay-ledger.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { searchMessages } from './search-messages.ts'

export interface FoundRecord {
  readonly at: MessagePlace
  readonly record: StoredRecord
  /** The last message of its key, behind it, that says the key is deleted; null: none. */
  readonly tombstone: MessagePlace | null
}

export interface RecordSearch {
  /** What the bytes of a record must hold one of. */
  readonly texts: readonly Buffer[]
  readonly isMeant: (record: StoredRecord) => boolean
  readonly signal: AbortSignal | undefined
}

/** More keys than that are not looked for one by one. */
const MOST_KEYS = 32

/** In the topic of records, those that extractors name and those of shadow replays, oldest first. */
export async function findRecords(runtime: Runtime, { texts, isMeant, signal }: RecordSearch): Promise<FoundRecord[]> {
  const reader = new RecordReader(runtime)
  const found: { message: KafkaMessage; record: StoredRecord }[] = []
  for (const topic of await recordTopics(runtime)) {
    for (const partition of await runtime.admin.partitions(topic)) {
      for await (const message of searchMessages(runtime, { topic, partition, texts, signal })) {
        await reader.learn([message])
        const record = reader.read(message)?.value as StoredRecord | undefined
        if (record !== undefined && isMeant(record)) found.push({ message, record })
      }
    }
  }
  const deleted = new Map<PartitionId, ReadonlyMap<string, MessagePlace>>()
  for (const [id, own] of grouped(found, ({ message: { topic, partition } }) => partitionId(topic, partition))) {
    const messages = own.map(({ message }) => message)
    deleted.set(id, await tombstones(runtime, messages, signal))
  }
  return found
    .map(({ message, record }) => {
      const last = deleted.get(partitionId(message.topic, message.partition))?.get(keyOf(message))
      return { at: placeOf(message), record, tombstone: last !== undefined && last.offset > message.offset ? last : null }
    })
    .sort((a, b) => a.record.extractedAt - b.record.extractedAt)
}

async function recordTopics(runtime: Runtime): Promise<string[]> {
  const { admin, topics, config } = runtime
  const prefix = config['topics.prefix']
  const own = new Set([topics.control, topics.html, topics.outcomes, topics.deadLetters, ...taskTopics(topics)])
  const control = await runtime.control()
  const named = new Set([...announcedTopics(control), ...shadowTopics(control).keys()])
  return (await admin.listTopics()).filter((topic) => named.has(topic) || (topic.startsWith(prefix) && !own.has(topic)))
}

/** Shape: where the last tombstone of each key lies. `records`: some of one partition, in its order. */
async function tombstones(
  runtime: Runtime,
  records: readonly KafkaMessage[],
  signal: AbortSignal | undefined,
): Promise<Map<string, MessagePlace>> {
  const last = new Map<string, MessagePlace>()
  const [first] = records
  if (first === undefined) return last
  const keys = new Set(records.map(keyOf))
  const texts = keys.size > MOST_KEYS ? EVERY_MESSAGE : [...keys].map((key) => Buffer.from(key))
  const { topic, partition, offset } = first
  for await (const message of searchMessages(runtime, { topic, partition, from: offset + 1n, texts, signal }))
    if (message.value === null && keys.has(keyOf(message))) last.set(keyOf(message), placeOf(message))
  return last
}

function keyOf({ key }: KafkaMessage): string {
  return key?.toString('utf8') ?? ''
}

export function placeOf({ topic, partition, offset }: MessagePlace): MessagePlace {
  return { topic, partition, offset }
}
