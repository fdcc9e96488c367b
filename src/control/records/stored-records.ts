import { type ComparableRecord, type PageFailure, type PageSource, pageKey } from '../../comparison/compare.ts'
import { type LogStart, readMessages } from '../../kafka/log-reader.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import type { RecordEnvelope } from '../../message/generated/types.ts'
import { type DeadLetterInfo, readDeadLetter } from '../../message/read-dead-letter.ts'
import { inFilter, isWithin, type OffsetRange, type ReplayFilter } from '../../message/replay-request.ts'
import { isOfDomain } from '../../url/registrable-domain.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { RecordReader } from './record-reader.ts'

export type StoredRecord = RecordEnvelope & ComparableRecord

/** Whether a replay of these ranges and this filter reads the page of a record. */
export function isReplayed(
  { source, url: finalUrl, crawlId, fetchedAt }: Pick<StoredRecord, 'source' | 'url' | 'crawlId' | 'fetchedAt'>,
  ranges: readonly OffsetRange[],
  filter: ReplayFilter,
): boolean {
  return isWithin(ranges, source) && inFilter({ finalUrl, crawlId, fetchedAt }, filter, isOfDomain)
}

export interface RecordScope {
  /** One that is not there has no records. */
  readonly topics: readonly string[]
  readonly extractor: string
  readonly version?: number
  /** Epoch ms: records written before are not read. A page can't have given a record before it was fetched. */
  readonly since?: number
  /** Ends the reading with its reason. */
  readonly signal?: AbortSignal | undefined
}

/** Clocks of two machines may differ by this. */
const CLOCK_SLACK_MS = 3_600_000

/** Committed records of one extractor, in the order of their topics and partitions. */
export async function* readRecords(runtime: Runtime, scope: RecordScope): AsyncGenerator<StoredRecord> {
  for await (const { record } of sizedRecords(runtime, scope)) yield record
}

/** With the bytes of their messages. */
async function* sizedRecords(
  runtime: Runtime,
  scope: RecordScope,
): AsyncGenerator<{ readonly record: StoredRecord; readonly size: number }> {
  await runtime.control()
  const existing = await runtime.admin.listTopics()
  const reader = new RecordReader(runtime)
  const prefix = `${scope.extractor}/`
  for (const topic of scope.topics) {
    if (!existing.includes(topic)) continue
    for await (const messages of messagesSince(runtime, topic, scope)) {
      const own = messages.filter(({ key, value }) => value !== null && key?.toString('utf8').startsWith(prefix) === true)
      await reader.learn(own)
      for (const message of own) {
        const record = reader.read(message)?.value as StoredRecord | undefined
        if (record === undefined || record.extractor !== scope.extractor) continue
        if (scope.version === undefined || record.extractorVersion === scope.version) yield { record, size: message.value?.length ?? 0 }
      }
    }
  }
}

/** As `readRecords`, all of them. */
export async function recordsOf(runtime: Runtime, topic: string, extractor: string, version?: number): Promise<StoredRecord[]> {
  const found: StoredRecord[] = []
  for await (const record of readRecords(runtime, { topics: [topic], extractor, ...(version === undefined ? {} : { version }) }))
    found.push(record)
  return found
}

/** What pages gave before: records of one version for each page. */
export interface PreviousRecords {
  /** By `pageKey`, in the order of the items on the page. */
  readonly byPage: ReadonlyMap<string, readonly StoredRecord[]>
  /** Pages by the version whose records were taken. */
  readonly versions: Readonly<Record<number, number>>
}

/**
 * Records that the log holds of these pages. Of several versions the one before `version` counts, as a sink has it; where only later
 * ones are there (a roll-back), the latest; where only this one has read the page, its own: they are no new ones. A record that was
 * written twice counts once.
 */
export async function previousRecords(
  runtime: Runtime,
  scope: RecordScope & { readonly version: number },
  pages: ReadonlySet<string>,
): Promise<PreviousRecords> {
  /** Of each page the version that counts among those seen so far, so that many versions take no more memory than one. */
  const found = new Map<string, { readonly version: number; readonly items: Map<number, StoredRecord> }>()
  const { version: _any, ...ofAll } = scope
  for await (const record of readRecords(runtime, ofAll)) {
    const { extractorVersion: version, itemIndex, source } = record
    const key = pageKey(source)
    if (!pages.has(key)) continue
    const known = found.get(key)
    if (known?.version === version) known.items.set(itemIndex, record)
    else if (previousVersion([version, ...(known === undefined ? [] : [known.version])], scope.version) === version)
      found.set(key, { version, items: new Map([[itemIndex, record]]) })
  }
  const counts: Record<number, number> = {}
  const byPage = new Map<string, StoredRecord[]>()
  for (const [key, { version, items }] of found) {
    counts[version] = (counts[version] ?? 0) + 1
    byPage.set(key, inOrder(items))
  }
  return { byPage, versions: counts }
}

/** Records of one page as they stood on it. Any of them may be missing: retention and compaction take messages, not pages. */
export function inOrder(items: ReadonlyMap<number, StoredRecord>): StoredRecord[] {
  return [...items.values()].sort((a, b) => a.itemIndex - b.itemIndex)
}

/** Pure: the version that a new one is held against. Shape: undefined where there is none. */
export function previousVersion(versions: readonly number[], version: number): number | undefined {
  const others = versions.filter((other) => other !== version)
  const older = others.filter((other) => other < version)
  const from = older.length > 0 ? older : others.length > 0 ? others : versions
  return from.length === 0 ? undefined : Math.max(...from)
}

export interface FailedPage extends PageFailure {
  readonly source: PageSource
}

export interface FailureScope extends Omit<RecordScope, 'topics'> {
  readonly version: number
}

/**
 * Pages of html that ended as dead letters of one extractor version, by `pageKey`; with a replay those that it wrote, with `isOwn` a part
 * of them.
 */
export async function failedPages(
  runtime: Runtime,
  scope: FailureScope & { readonly replayId?: string; readonly isOwn?: (key: string) => boolean },
): Promise<Map<string, FailedPage>> {
  const failed = new Map<string, FailedPage>()
  for await (const { source, code, replayId } of failures(runtime, scope)) {
    if (scope.replayId !== undefined && replayId !== scope.replayId) continue
    if (scope.isOwn?.(pageKey(source)) !== false) failed.set(pageKey(source), { source, code, field: undefined })
  }
  return failed
}

/** The page that a dead letter of an extractor is about, and the replay that wrote it. */
export interface WrittenFailure {
  readonly source: PageSource
  readonly code: string
  readonly replayId: string | undefined
}

/** The dead letters that the log still has of one extractor version. */
export async function* failures(runtime: Runtime, scope: FailureScope): AsyncGenerator<WrittenFailure> {
  const { topics } = runtime
  const of = { extractor: `${scope.extractor}:${scope.version}`, topic: topics.html }
  for await (const messages of messagesSince(runtime, topics.deadLetters, scope)) {
    for (const { headers } of messages) {
      const failure = failureOf(readDeadLetter(headers), of)
      if (failure !== undefined) yield failure
    }
  }
}

/** Of a dead letter. Shape: undefined where it is of another extractor or topic, or does not say which page it is about. Pure. */
export function failureOf(
  { extractor, original, code = '', replay }: DeadLetterInfo,
  of: { readonly extractor: string; readonly topic: string },
): WrittenFailure | undefined {
  if (extractor !== of.extractor || original?.topic !== of.topic) return undefined
  const { topic, partition, offset } = original
  return { source: { topic, partition, offset }, code, replayId: replay }
}

/** Bytes of the records of an extractor that are wanted, as often as they were written. */
export async function recordBytes(runtime: Runtime, scope: RecordScope, isWanted: (record: StoredRecord) => boolean): Promise<number> {
  let bytes = 0
  for await (const { record, size } of sizedRecords(runtime, scope)) if (isWanted(record)) bytes += size
  return bytes
}

async function* messagesSince(
  runtime: Runtime,
  topic: string,
  { since, signal }: Pick<RecordScope, 'since' | 'signal'>,
): AsyncGenerator<readonly KafkaMessage[]> {
  const start: LogStart | ReadonlyMap<number, LogStart> =
    since === undefined ? 'earliest' : await runtime.admin.offsetsForTime(topic, Math.max(0, since - CLOCK_SLACK_MS))
  yield* readMessages(runtime, { from: new Map([[topic, start]]), signal })
}
