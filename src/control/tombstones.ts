import { type LogStart, readLog } from '../kafka/log-reader.ts'
import type { KafkaMessage, OutgoingMessage } from '../kafka/message.ts'
import { partitionId } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import { commandPayload, subject } from '../message/command.ts'
import { HEADER } from '../message/header-names.ts'
import { inFilter, parseReplayRequest, type ReplayRequest, rangeOf } from '../message/replay-request.ts'
import { pageKey } from '../replay/compare.ts'
import { registrableDomain } from '../url/registrable-domain.ts'
import { RecordReader } from './record-reader.ts'
import { mayBeGone, replayStatus } from './replay-ledger.ts'
import type { Runtime } from './runtime.ts'
import { failedPages, type StoredRecord } from './stored-records.ts'

export interface TombstonePlan {
  readonly replayId: string
  readonly topic: string
  /** Keys of messages, sorted: each is the key of a record that nothing gives any more. */
  readonly keys: readonly string[]
  /** Where the topic was looked at to, by partition. */
  readonly ends: ReadonlyMap<number, bigint>
  /** Partition of each key. */
  readonly partitions: ReadonlyMap<string, number>
  readonly request: ReplayRequest
}

/**
 * Keys that a replay in place has left without a record: an older version gave them on pages that were replayed, and neither the new
 * version nor a page outside the replay gives them. Pages that became dead letters, and those that retention deleted before they were
 * read, say nothing about their keys. Errors: USAGE for a
 * replay that is not known, REPLAY_REFUSED for one that has not ended.
 */
export async function planTombstones(runtime: Runtime, replayId: string): Promise<TombstonePlan> {
  const status = await replayStatus(runtime, replayId)
  if (status.state !== 'done')
    throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} is ${status.state}: what it leaves out is known when it is done`)
  if (status.shadowTopic !== undefined)
    throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} is a shadow: it has left no record out of the topic that is in use`)
  const control = await runtime.control()
  const command = control.get(subject.replay(replayId))
  if (command === undefined) throw new MillraceError('INTERNAL', `the command of replay ${replayId} is gone`)
  const request = parseReplayRequest(commandPayload(command))
  const topic = request.recordsTopic ?? runtime.topics.records
  const failed = await failedPages(runtime, { extractor: request.extractor, version: request.extractorVersion })
  const reader = new RecordReader(runtime)
  const prefix = `${request.extractor}/`
  const doomed = new Map<string, number>()
  const alive = new Set<string>()
  const ends = new Map<number, bigint>()
  for await (const event of readLog(logOf(runtime, topic, 'earliest'))) {
    if (event.kind !== 'batch') continue
    ends.set(event.partition, event.position)
    const own = event.messages.filter(({ key }) => key?.toString('utf8').startsWith(prefix) === true)
    await reader.learn(own)
    for (const message of own) {
      const key = message.key?.toString('utf8') ?? ''
      // A tombstone that is there already; what comes behind it counts anew.
      if (message.value === null) doomed.delete(key)
      const record = (await reader.read(message))?.value as StoredRecord | undefined
      if (record === undefined) continue
      const { source } = record
      const isOld = record.extractorVersion !== request.extractorVersion
      if (isOld && isReplayed(record, request) && !mayBeGone(status, source) && !failed.has(pageKey(source)))
        doomed.set(key, message.partition)
      else alive.add(key)
    }
  }
  for (const key of alive) doomed.delete(key)
  const keys = [...doomed.keys()].sort()
  return { replayId, topic, keys, ends, partitions: doomed, request }
}

/**
 * Writes them. A record of one of the keys that live work wrote meanwhile, before its tombstone, is written again behind it, so that
 * the last message of every key is right, which is what compaction keeps. Safe to repeat. Shape: how many were written, and how many
 * records were saved so.
 */
export async function writeTombstones(
  runtime: Runtime,
  plan: TombstonePlan,
): Promise<{ readonly written: number; readonly restored: number }> {
  const { topic, keys, partitions, request } = plan
  if (keys.length === 0) return { written: 0, restored: 0 }
  const producer = await runtime.producer()
  const headers = { [HEADER.extractor]: `${request.extractor}:${request.extractorVersion}` }
  await producer.send(keys.map((key): OutgoingMessage => ({ topic, partition: partitions.get(key) ?? 0, key, value: null, headers })))
  const written = await runtime.admin.endOffsets(topic, 'read_uncommitted')
  const from = new Map([...written.keys()].map((partition) => [partition, plan.ends.get(partition) ?? 0n]))
  const until = new Map([...written].map(([partition, end]) => [partitionId(topic, partition), end]))
  const late = new Map<string, KafkaMessage>()
  const lost = new Map<string, KafkaMessage>()
  // Transactions that were open meanwhile are waited for: their records lie before the tombstones too.
  for await (const event of readLog({ ...logOf(runtime, topic, from), until, follow: true })) {
    if (event.kind !== 'batch') continue
    for (const message of event.messages) {
      const key = message.key?.toString('utf8') ?? ''
      if (!partitions.has(key)) continue
      const before = late.get(key)
      if (message.value !== null) late.set(key, message)
      else if (before !== undefined) lost.set(key, before)
      if (message.value !== null) lost.delete(key)
    }
  }
  const again = [...lost.values()].map(({ partition, key, value, headers: kept, timestamp }) => ({
    topic,
    partition,
    key,
    value,
    headers: kept,
    timestamp,
  }))
  if (again.length > 0) await producer.send(again)
  return { written: keys.length, restored: again.length }
}

function logOf(runtime: Runtime, topic: string, start: LogStart | ReadonlyMap<number, LogStart>): Parameters<typeof readLog>[0] {
  const { client, clock, observer } = runtime
  return { client, clock, observer, from: new Map([[topic, start]]) }
}

function isReplayed(record: StoredRecord, request: ReplayRequest): boolean {
  const range = rangeOf(request, record.source.partition)
  const offset = BigInt(record.source.offset)
  if (range === undefined || offset < range.from || offset >= range.until) return false
  return inFilter({ finalUrl: record.url, crawlId: record.crawlId, fetchedAt: record.fetchedAt }, request.filter, registrableDomain)
}
