import { pageKey } from '../../comparison/compare.ts'
import { readMessages } from '../../kafka/log-reader.ts'
import type { KafkaMessage, OutgoingMessage } from '../../kafka/message.ts'
import { type PartitionId, partitionId } from '../../kernel/brand.ts'
import { countText } from '../../kernel/count-text.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { commandPayload, subject } from '../../message/command.ts'
import { HEADER } from '../../message/header-names.ts'
import { parseReplayRequest, type ReplayRequest } from '../../message/replay-request.ts'
import { keyParts } from '../records/key-parts.ts'
import { RecordReader } from '../records/record-reader.ts'
import { failures, isReplayed, type StoredRecord } from '../records/stored-records.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { mayBeGone, type ReplayStatus, replayStatus } from './replay-status.ts'

export interface TombstonePlan {
  readonly replayId: string
  readonly topic: string
  /** Keys of messages, sorted: each is the key of a record that nothing gives any more. */
  readonly keys: readonly string[]
  /** Where the topic was looked at to, by partition. */
  readonly ends: ReadonlyMap<number, bigint>
  /** Partitions of each key in which records of it are left: since partitions were added to the topic they may be several. */
  readonly partitions: ReadonlyMap<string, ReadonlySet<number>>
  readonly request: ReplayRequest
}

/**
 * Keys are held in memory while it is looked for those that are left over; a longer topic is read through once for each so many messages.
 */
const MESSAGES_AT_ONCE = 1_000_000

/**
 * Keys that a replay in place has left without a record: an older version gave them on pages that were replayed, and neither the new
 * version nor a page outside the replay gives them. Pages that became dead letters, and those that retention deleted before they were
 * read, say nothing about their keys. Errors: USAGE for a replay that is not known, REPLAY_REFUSED for one that has not ended, or whose
 * dead letters are not all on the log any more.
 */
export async function planTombstones(
  runtime: Runtime,
  replayId: string,
  { messagesAtOnce = MESSAGES_AT_ONCE, signal }: { readonly messagesAtOnce?: number; readonly signal?: AbortSignal } = {},
): Promise<TombstonePlan> {
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
  const failed = await pagesFailed(runtime, status, signal)
  // A record of a later version is none that this replay has left: it wins everywhere, by its `recordVersion`.
  const isLeft = (record: StoredRecord): boolean =>
    record.extractorVersion < request.extractorVersion &&
    isReplayed(record, request.ranges ?? [], request.filter) &&
    !mayBeGone(status, record.source) &&
    !failed.has(pageKey(record.source))
  const [lows, ends] = await Promise.all([runtime.admin.earliestOffsets(topic), runtime.admin.endOffsets(topic, 'read_committed')])
  const messages = [...ends].reduce((sum, [partition, end]) => sum + Number(end - (lows.get(partition) ?? 0n)), 0)
  const partitions = new Map<string, ReadonlySet<number>>()
  for (const isOwn of keyParts(messages, messagesAtOnce)) {
    for (const [key, places] of await leftKeys(runtime, { topic, ends, prefix: `${request.extractor}/`, isOwn, isLeft, signal }))
      partitions.set(key, places)
  }
  return { replayId, topic, keys: [...partitions.keys()].sort(), ends, partitions, request }
}

/**
 * Pages that became dead letters, by `pageKey`. Errors: REPLAY_REFUSED where the log has fewer letters of the replay than it wrote: of
 * pages whose letters retention has deleted nothing tells that they did not just give nothing.
 */
async function pagesFailed(
  runtime: Runtime,
  { replayId, extractor, version, totals }: ReplayStatus,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  const failed = new Set<string>()
  let own = 0
  for await (const failure of failures(runtime, { extractor, version, signal })) {
    failed.add(pageKey(failure.source))
    if (failure.replayId === replayId) own += 1
  }
  if (own >= totals.deadLetters) return failed
  throw new MillraceError(
    'REPLAY_REFUSED',
    `${countText(totals.deadLetters, 'page')} became dead letters in replay ${replayId}, and ${runtime.topics.deadLetters} has ${own} of them left: which keys the others had is not known any more; replay again`,
  )
}

interface LeftKeys {
  readonly topic: string
  readonly ends: ReadonlyMap<number, bigint>
  readonly prefix: string
  readonly isOwn: (key: string) => boolean
  readonly isLeft: (record: StoredRecord) => boolean
  readonly signal: AbortSignal | undefined
}

/**
 * Keys, of those that are looked at, that only records give which are left over, with the partitions of these. One that lives in any
 * partition is none: to a sink a tombstone deletes its key, wherever it comes from.
 */
async function leftKeys(
  runtime: Runtime,
  { topic, ends, prefix, isOwn, isLeft, signal }: LeftKeys,
): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
  const reader = new RecordReader(runtime)
  const left = new Map<string, Set<number>>()
  const alive = new Set<string>()
  const until = untilOf(topic, ends)
  for await (const messages of readMessages(runtime, { from: new Map([[topic, 'earliest']]), until, signal })) {
    const own = messages.filter(({ key }) => {
      const text = key?.toString('utf8')
      return text?.startsWith(prefix) === true && isOwn(text)
    })
    await reader.learn(own)
    for (const message of own) {
      const key = message.key?.toString('utf8') ?? ''
      // A tombstone that is there already; what comes behind it counts anew. Compaction takes each partition for itself.
      if (message.value === null) left.get(key)?.delete(message.partition)
      if (message.value === null) continue
      const record = reader.read(message)?.value as StoredRecord | undefined
      // One that can't be read here may be the one that lives: its schema may be new to the registry.
      if (record === undefined || !isLeft(record)) alive.add(key)
      else left.set(key, (left.get(key) ?? new Set()).add(message.partition))
    }
  }
  for (const [key, places] of left) if (alive.has(key) || places.size === 0) left.delete(key)
  return left
}

/**
 * Writes them, one in each partition where a key has records. A record of one of the keys that live work wrote meanwhile, before its
 * tombstone, is written again behind it, so that the last message of every key is right, which is what compaction keeps. Safe to repeat.
 * Shape: how many were written, and how many records were saved so.
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
  const tombstones = keys.flatMap((key) =>
    [...(partitions.get(key) ?? [])].map((partition): OwnMessage => ({ topic, partition, key, value: null, headers })),
  )
  let ours: readonly OwnMessage[] = tombstones
  while (ours.length > 0) {
    await producer.send(ours)
    const ends = await runtime.admin.endOffsets(topic, 'read_uncommitted')
    const covered = await coveredBy(runtime, topic, ours, { from, ends })
    // What is written again may cover in its turn what live work wrote meanwhile.
    ours = covered.map(({ partition, key, value, headers: kept, timestamp }) => ({
      topic,
      partition,
      key: key?.toString('utf8') ?? '',
      value,
      headers: kept,
      timestamp,
    }))
    restored += ours.length
    from = ends
  }
  return { written: tombstones.length, restored }
}

type OwnMessage = OutgoingMessage & { readonly key: string; readonly partition: number; readonly value: Buffer | null }

/**
 * Live records that lie before what we wrote under their keys: the newest of each key and partition. Transactions that are open are waited
 * for: their records may lie so too.
 */
async function coveredBy(
  runtime: Runtime,
  topic: string,
  ours: readonly OwnMessage[],
  { from, ends }: { readonly from: ReadonlyMap<number, bigint>; readonly ends: ReadonlyMap<number, bigint> },
): Promise<readonly KafkaMessage[]> {
  const keys = new Set(ours.map(({ key }) => key))
  const written = new Map(ours.map((message) => [keyIn(message.partition, message.key), message.value]))
  const live = new Map<string, KafkaMessage>()
  const covered = new Map<string, KafkaMessage>()
  const starts = new Map([...ends.keys()].map((partition) => [partition, from.get(partition) ?? 0n]))
  for await (const messages of readMessages(runtime, { from: new Map([[topic, starts]]), until: untilOf(topic, ends), follow: true })) {
    for (const message of messages) {
      const key = message.key?.toString('utf8') ?? ''
      if (!keys.has(key)) continue
      const place = keyIn(message.partition, key)
      const own = written.get(place) ?? null
      const before = live.get(place)
      const isOurs = message.value === null || (own !== null && message.value.equals(own))
      if (!isOurs) {
        live.set(place, message)
        covered.delete(place)
      } else if (before !== undefined) covered.set(place, before)
    }
  }
  // A tombstone in another partition has no order with them: who reads both may take it for the later one.
  for (const { key, value, partition } of ours) {
    if (value !== null) continue
    for (const other of ends.keys()) {
      const record = other === partition ? undefined : live.get(keyIn(other, key))
      if (record !== undefined) covered.set(keyIn(other, key), record)
    }
  }
  return [...covered.values()]
}

const keyIn = (partition: number, key: string): string => `${partition} ${key}`

function untilOf(topic: string, ends: ReadonlyMap<number, bigint>): ReadonlyMap<PartitionId, bigint> {
  return new Map([...ends].map(([partition, end]) => [partitionId(topic, partition), end]))
}
