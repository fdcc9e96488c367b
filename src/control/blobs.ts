import type { StoredBlob } from '../blobs/blob-store.ts'
import { readMessages } from '../kafka/log-reader.ts'
import { MillraceError } from '../kernel/errors.ts'
import { findDeadLetters } from './dead-letters/dead-letters.ts'
import { type Runtime, requireTopics } from './runtime/runtime.ts'

const DAY_MS = 86_400_000

export interface CollectOptions {
  /** False: nothing is deleted, what would be is counted. */
  readonly execute: boolean
  readonly onBlob?: (blob: StoredBlob) => void
  readonly signal?: AbortSignal
}

export interface CollectReport {
  readonly store: string
  /** Epoch ms; blobs that were last written before may go. Undefined: pages are kept for ever, and so are their bodies. */
  readonly before: number | undefined
  readonly seen: { readonly count: number; readonly bytes: number }
  /** Deleted, or what would be. */
  readonly collected: { readonly count: number; readonly bytes: number }
  readonly executed: boolean
}

/**
 * Deletes bodies that no page can name any more. It goes by age alone, never by counting who names what: every page writes its blob anew
 * before its message, so a blob that is older than all pages, those in dead letters too, has none. Errors: USAGE where `blobs.url` is not
 * set; as of the store.
 */
export async function collectBlobs(runtime: Runtime, options: CollectOptions): Promise<CollectReport> {
  const blobs = await runtime.blobs()
  if (blobs === undefined) throw new MillraceError('USAGE', '`blobs.url` is not set: there is no blob store to collect from')
  const before = await collectableBefore(runtime, options.signal)
  const seen = { count: 0, bytes: 0 }
  const collected = { count: 0, bytes: 0 }
  for await (const blob of blobs.list()) {
    options.signal?.throwIfAborted()
    count(seen, blob)
    if (before === undefined || blob.touchedAt >= before) continue
    if (options.execute && !(await blobs.deleteUntouched(blob.ref, before))) continue
    options.onBlob?.(blob)
    count(collected, blob)
  }
  return { store: blobs.location, before, seen, collected, executed: options.execute }
}

/**
 * Younger than this may be named by a page: one on html, or one in a dead letter that can still be put back. The retention of html in
 * force counts where it is longer than the configured one, and so does what is still there beyond it: Kafka deletes by whole segments.
 * A day lies between, for clocks that differ.
 */
async function collectableBefore(runtime: Runtime, signal: AbortSignal | undefined): Promise<number | undefined> {
  const { admin, clock, config, topics } = runtime
  await requireTopics(runtime, [topics.html, topics.deadLetters])
  const [html] = await admin.describeTopics([topics.html])
  const inForce = Number(html?.configs['retention.ms'] ?? Number.NaN)
  if (inForce < 0) return undefined
  const retentionMs = Math.max(config['topics.retention.html'], Number.isNaN(inForce) ? 0 : inForce)
  const oldest = await Promise.all([oldestPageAt(runtime), oldestBuriedAt(runtime, retentionMs, signal)])
  return Math.min(clock.now() - retentionMs, ...oldest) - DAY_MS
}

/** Time of the oldest page in the log. Shape: epoch ms; infinite without pages. */
async function oldestPageAt(runtime: Runtime): Promise<number> {
  const { admin, topics } = runtime
  let oldest = Number.POSITIVE_INFINITY
  for (const partition of await admin.partitions(topics.html)) oldest = Math.min(oldest, await firstAt(runtime, topics.html, partition))
  return oldest
}

/** Behind markers of transactions too, which may lie first; pages of a transaction that is open, or was aborted, count as well. */
async function firstAt(runtime: Runtime, topic: string, partition: number): Promise<number> {
  const from = new Map([[topic, new Map([[partition, 'earliest' as const]])]])
  for await (const [first] of readMessages(runtime, { from, isolation: 'read_uncommitted' }))
    if (first !== undefined) return first.timestamp
  return Number.POSITIVE_INFINITY
}

/**
 * Time of the oldest page in a dead letter that is not dealt with. All are looked at: a replay buries pages that are as old as html's
 * retention, so the first dead letter need not hold the oldest page. One that does not tell when its page was written has it from html,
 * `retentionMs` before at the earliest. Shape: epoch ms; infinite without dead letters.
 */
async function oldestBuriedAt(runtime: Runtime, retentionMs: number, signal: AbortSignal | undefined): Promise<number> {
  const { admin, topics } = runtime
  let oldest = Number.POSITIVE_INFINITY
  for await (const { listed } of findDeadLetters(runtime, await admin.partitions(topics.deadLetters), {}, signal)) {
    const { original } = listed.info
    if (original?.topic === topics.html) oldest = Math.min(oldest, original.timestamp ?? listed.timestamp - retentionMs)
  }
  return oldest
}

function count(sum: { count: number; bytes: number }, { bytes }: StoredBlob): void {
  sum.count += 1
  sum.bytes += bytes
}
