import { readLog } from '../kafka/log-reader.ts'
import { pageKey } from '../replay/compare.ts'
import { RecordReader } from './record-reader.ts'
import type { Runtime } from './runtime.ts'
import type { StoredRecord } from './stored-records.ts'

/** What the newest records of one extractor version hold. */
export interface FieldDrift {
  readonly extractor: string
  readonly version: number
  readonly records: number
  readonly pages: number
  readonly recordsPerPage: number
  readonly fields: readonly { readonly field: string; readonly nullRatio: number; readonly types: readonly string[] }[]
}

/** Newest messages of each partition that are looked at. */
const TAIL = 500

/**
 * Null ratio and type of each field, and records per page, by extractor and version, over the newest records of the log. A field whose nulls
 * rise from one version, or one week, to the next is a site that changed, or an extractor that broke.
 */
export async function fieldDrift(runtime: Runtime, topic = runtime.topics.records): Promise<FieldDrift[]> {
  const { client, clock, observer, admin } = runtime
  await runtime.control()
  const [lows, ends] = await Promise.all([admin.earliestOffsets(topic), admin.endOffsets(topic, 'read_committed')])
  const from = new Map([...ends].map(([partition, end]) => [partition, larger(lows.get(partition) ?? 0n, end - BigInt(TAIL))]))
  const reader = new RecordReader(runtime)
  const found = new Map<string, Seen>()
  for await (const event of readLog({ client, clock, observer, from: new Map([[topic, from]]) })) {
    if (event.kind !== 'batch') continue
    await reader.learn(event.messages)
    for (const message of event.messages) {
      const record = (await reader.read(message))?.value as StoredRecord | undefined
      if (record !== undefined) add(found, record)
    }
  }
  return [...found.values()].map(driftOf).sort((a, b) => a.extractor.localeCompare(b.extractor) || a.version - b.version)
}

interface Seen {
  readonly extractor: string
  readonly version: number
  records: number
  readonly pages: Set<string>
  readonly fields: Map<string, { nulls: number; seen: number; readonly types: Set<string> }>
}

function add(found: Map<string, Seen>, { extractor, extractorVersion: version, source, data }: StoredRecord): void {
  const key = `${extractor}:${version}`
  const seen = found.get(key) ?? { extractor, version, records: 0, pages: new Set<string>(), fields: new Map() }
  found.set(key, seen)
  seen.records += 1
  seen.pages.add(pageKey(source))
  for (const [field, value] of Object.entries(data)) {
    const counts = seen.fields.get(field) ?? { nulls: 0, seen: 0, types: new Set<string>() }
    seen.fields.set(field, counts)
    counts.seen += 1
    if (value === null || value === undefined) counts.nulls += 1
    else counts.types.add(Array.isArray(value) ? 'list' : Buffer.isBuffer(value) ? 'bytes' : typeof value)
  }
}

function driftOf({ extractor, version, records, pages, fields }: Seen): FieldDrift {
  return {
    extractor,
    version,
    records,
    pages: pages.size,
    recordsPerPage: Math.round((records / pages.size) * 100) / 100,
    fields: [...fields].map(([field, { nulls, seen, types }]) => ({
      field,
      nullRatio: Math.round((nulls / seen) * 1000) / 1000,
      types: [...types].sort(),
    })),
  }
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
