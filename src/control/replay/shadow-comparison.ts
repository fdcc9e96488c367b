import { type Comparison, ComparisonBuilder, pageKey } from '../../comparison/compare.ts'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { ReplayFilter } from '../../message/replay-request.ts'
import { announcedVersions, topicsOfVersions } from '../extractors/announced-versions.ts'
import { keyParts } from '../records/key-parts.ts'
import {
  failedPages,
  inOrder,
  isReplayed,
  previousRecords,
  readRecords,
  recordBytes,
  type StoredRecord,
} from '../records/stored-records.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { ReplayPlan } from '../trials/replay-plan.ts'
import { mayBeGone, replayStatus } from './replay-status.ts'
import type { ShadowReport } from './shadow-replay.ts'

/** Records of so many bytes are held against the former ones at a time; as objects they take some times as much. */
const COMPARED_BYTES = 64 * 1_048_576

export interface ComparisonOptions {
  readonly comparedBytes?: number
  /** Records read, of all passes together. */
  readonly onRead?: ((count: number) => void) | undefined
  /** Ends it with its reason. */
  readonly signal?: AbortSignal | undefined
}

/**
 * What a shadow replay would change: its records against those of the version before, whatever topic that named, on the pages that it read.
 * Pages on which it failed are told apart by their dead letters; those that retention deleted before it read them are left out. What other
 * replays and live work of that version have written counts for nothing. Memory is bounded by `comparedBytes`: of more, the topics are read
 * once for each part of the pages.
 */
export async function compareShadow(
  runtime: Runtime,
  { replayId, topic: shadowTopic }: Pick<ShadowReport, 'replayId' | 'topic'>,
  extractor: LoadedExtractor,
  { plan, filter }: { readonly plan: ReplayPlan; readonly filter: ReplayFilter },
  { comparedBytes = COMPARED_BYTES, onRead, signal }: ComparisonOptions = {},
): Promise<Comparison> {
  const { name, version } = extractor
  const topics = topicsOfVersions(runtime, extractor, announcedVersions(await runtime.control(), name))
  const status = await replayStatus(runtime, replayId)
  const builder = new ComparisonBuilder()
  let count = 0
  const counted = <T>(value: T): T => {
    count += 1
    if (count % TOLD_EVERY === 0) onRead?.(count)
    return value
  }
  const fromShadow = { topics: [shadowTopic], extractor: name, signal }
  const fromLive = { topics, extractor: name, signal }
  const bytes = Math.max(
    await recordBytes(runtime, fromShadow, (record) => counted(record.replayId === replayId)),
    await recordBytes(runtime, fromLive, (record) => counted(isReplayed(record, plan.partitions, filter))),
  )
  for (const isOwn of keyParts(bytes, comparedBytes)) {
    const failed = await failedPages(runtime, { extractor: name, version, replayId, isOwn, signal })
    const after = new Map<string, Map<number, StoredRecord>>()
    for await (const record of readRecords(runtime, { ...fromShadow, version }))
      if (counted(record).replayId === replayId && isOwn(pageKey(record.source))) add(after, record)
    const pages = new Set([...after.keys(), ...failed.keys()])
    for await (const record of readRecords(runtime, fromLive)) {
      const key = pageKey(counted(record).source)
      if (isOwn(key) && isReplayed(record, plan.partitions, filter) && !mayBeGone(status, record.source)) pages.add(key)
    }
    const { byPage } = await previousRecords(runtime, { ...fromLive, version }, pages)
    for (const key of pages) {
      const before = byPage.get(key) ?? []
      const items = after.get(key)
      const fresh = items === undefined ? undefined : inOrder(items)
      const [any] = fresh ?? before
      const failure = failed.get(key)
      if (any !== undefined) builder.add({ source: any.source, url: any.url, before, after: fresh ?? failure ?? [] })
      else if (failure !== undefined) builder.add({ source: failure.source, url: '', before, after: failure })
    }
  }
  return builder.result()
}

const TOLD_EVERY = 1_000

/** A page may have been written twice, by a shadow that was begun again under its id: a record counts once. */
function add(pages: Map<string, Map<number, StoredRecord>>, record: StoredRecord): void {
  const key = pageKey(record.source)
  const known = pages.get(key) ?? new Map<number, StoredRecord>()
  known.set(record.itemIndex, record)
  pages.set(key, known)
}
