import { type LogStart, readLog } from '../kafka/log-reader.ts'
import type { KafkaMessage, OutgoingMessage } from '../kafka/message.ts'
import { type PartitionId, partitionId } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import { commandPayload, subject } from '../message/command.ts'
import { HEADER } from '../message/header-names.ts'
import { inFilter, parseReplayRequest, type ReplayRequest, rangeOf } from '../message/replay-request.ts'
import { pageKey } from '../replay/compare.ts'
import { registrableDomain } from '../url/registrable-domain.ts'
import { keyParts } from './key-parts.ts'
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

/** Keys are held in memory while it is looked for those that are left over; a longer topic is read through once for each so many messages. */
const MESSAGES_AT_ONCE = 1_000_000

/**
 * Keys that a replay in place has left without a record: an older version gave them on pages that were replayed, and neither the new
 * version nor a page outside the replay gives them. Pages that became dead letters, and those that retention deleted before they were
 * read, say nothing about their keys. Errors: USAGE for a replay that is not known, REPLAY_REFUSED for one that has not ended.
 */
export async function planTombstones(runtime: Runtime, replayId: string, messagesAtOnce = MESSAGES_AT_ONCE): Promise<TombstonePlan> {
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
  // A record of a later version is none that this replay has left: it wins everywhere, by its `recordVersion`.
  const isLeft = (record: StoredRecord): boolean =>
    record.extractorVersion < request.extractorVersion &&
    isReplayed(record, request) &&
    !mayBeGone(status, record.source) &&
    !failed.has(pageKey(record.source))
  const [lows, ends] = await Promise.all([runtime.admin.earliestOffsets(topic), runtime.admin.endOffsets(topic, 'read_committed')])
  const messages = [...ends].reduce((sum, [partition, end]) => sum + Number(end - (lows.get(partition) ?? 0n)), 0)
  const partitions = new Map<string, number>()
  for (const isOwn of keyParts(messages, messagesAtOnce)) {
    for (const [key, partition] of await leftKeys(runtime, { topic, ends, prefix: `${request.extractor}/`, isOwn, isLeft }))
      partitions.set(key, partition)
  }
  return { replayId, topic, keys: [...partitions.keys()].sort(), ends, partitions, request }
}

interface LeftKeys {
  readonly topic: string
  readonly ends: ReadonlyMap<number, bigint>
  readonly prefix: string
  readonly isOwn: (key: string) => boolean
  readonly isLeft: (record: StoredRecord) => boolean
}

/** Keys with their partitions, of those that are looked at, that only records give which are left over. */
async function leftKeys(runtime: Runtime, { topic, ends, prefix, isOwn, isLeft }: LeftKeys): Promise<ReadonlyMap<string, number>> {
  const reader = new RecordReader(runtime)
  const left = new Map<string, number>()
  const alive = new Set<string>()
  const until = untilOf(topic, ends)
  for await (const event of readLog({ ...logOf(runtime, topic, 'earliest'), until })) {
    if (event.kind !== 'batch') continue
    const own = event.messages.filter(({ key }) => {
      const text = key?.toString('utf8')
      return text?.startsWith(prefix) === true && isOwn(text)
    })
    await reader.learn(own)
    for (const message of own) {
      const key = message.key?.toString('utf8') ?? ''
      // A tombstone that is there already; what comes behind it counts anew.
      if (message.value === null) left.delete(key)
      const record = (await reader.read(message))?.value as StoredRecord | undefined
      if (record === undefined) continue
      if (isLeft(record)) left.set(key, message.partition)
      else alive.add(key)
    }
  }
  for (const key of alive) left.delete(key)
  return left
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
  let restored = 0
  let from = plan.ends
  let ours = new Map(
    keys.map((key): [string, OutgoingMessage] => [key, { topic, partition: partitions.get(key) ?? 0, key, value: null, headers }]),
  )
  while (ours.size > 0) {
    await producer.send([...ours.values()])
    const ends = await runtime.admin.endOffsets(topic, 'read_uncommitted')
    const covered = await coveredBy(runtime, topic, ours, { from, ends })
    // What is written again may cover in its turn what live work wrote meanwhile.
    ours = new Map(
      [...covered].map(([key, { partition, value, headers: kept, timestamp }]) => [
        key,
        { topic, partition, key, value, headers: kept, timestamp },
      ]),
    )
    restored += ours.size
    from = ends
  }
  return { written: keys.length, restored }
}

/** Live records that lie before what we wrote under their keys: the newest of each key. Transactions that are open are waited for: their records may lie so too. */
async function coveredBy(
  runtime: Runtime,
  topic: string,
  ours: ReadonlyMap<string, OutgoingMessage>,
  { from, ends }: { readonly from: ReadonlyMap<number, bigint>; readonly ends: ReadonlyMap<number, bigint> },
): Promise<ReadonlyMap<string, KafkaMessage>> {
  const live = new Map<string, KafkaMessage>()
  const covered = new Map<string, KafkaMessage>()
  const starts = new Map([...ends.keys()].map((partition) => [partition, from.get(partition) ?? 0n]))
  for await (const event of readLog({ ...logOf(runtime, topic, starts), until: untilOf(topic, ends), follow: true })) {
    if (event.kind !== 'batch') continue
    for (const message of event.messages) {
      const key = message.key?.toString('utf8') ?? ''
      const own = ours.get(key)
      if (own === undefined) continue
      const before = live.get(key)
      const isOurs = message.value === null || (own.value !== null && message.value.equals(own.value))
      if (!isOurs) {
        live.set(key, message)
        covered.delete(key)
      } else if (before !== undefined) covered.set(key, before)
    }
  }
  return covered
}

function untilOf(topic: string, ends: ReadonlyMap<number, bigint>): ReadonlyMap<PartitionId, bigint> {
  return new Map([...ends].map(([partition, end]) => [partitionId(topic, partition), end]))
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
