import { pageKey } from '../../comparison/compare.ts'
import { readMessages } from '../../kafka/log-reader.ts'
import { greatestOf } from '../../kernel/bigint.ts'
import { domainOfUrl } from '../../url/registrable-domain.ts'
import { RecordReader } from '../records/record-reader.ts'
import type { StoredRecord } from '../records/stored-records.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { announcedTopics } from './announced-versions.ts'

/** What the newest records of one extractor version hold. */
export interface FieldDrift extends Yield {
  readonly extractor: string
  readonly version: number
  /** The same by registrable domain: those with most pages, the rest together as `other`. */
  readonly domains: readonly (Yield & { readonly domain: string })[]
}

/** What some records hold. */
export interface Yield {
  readonly records: number
  readonly pages: number
  readonly recordsPerPage: number
  readonly fields: readonly FieldYield[]
}

export interface FieldYield {
  readonly field: string
  readonly nullRatio: number
  readonly types: readonly string[]
}

/** Newest messages of each partition that are looked at. */
const TAIL = 500
const DOMAINS = 10
const OTHER = 'other'

/**
 * Null ratio and type of each field, and records per page, by extractor, version and domain, over the newest records of the log, those
 * on topics that extractors name too; what shadows gave is held against live records by their comparison. A field whose nulls rise from
 * one version, or one week, to the next is a site that changed, or an extractor that broke; by domain it shows which site. Errors: the
 * signal's reason.
 */
export async function fieldDrift(runtime: Runtime, signal?: AbortSignal): Promise<FieldDrift[]> {
  const { admin, topics } = runtime
  const named = announcedTopics(await runtime.control())
  const existing = (await admin.listTopics()).filter((topic) => named.has(topic))
  const from = new Map<string, ReadonlyMap<number, bigint>>()
  for (const topic of new Set([topics.records, ...existing])) from.set(topic, await tailOf(runtime, topic))
  const reader = new RecordReader(runtime)
  const drift = new DriftBuilder()
  for await (const messages of readMessages(runtime, { from, signal })) {
    await reader.learn(messages)
    for (const message of messages) {
      const record = reader.read(message)?.value as StoredRecord | undefined
      if (record !== undefined) drift.add(record)
    }
  }
  return drift.result()
}

/** Where the newest messages of each partition begin. */
async function tailOf({ admin }: Runtime, topic: string): Promise<ReadonlyMap<number, bigint>> {
  const [lows, ends] = await Promise.all([admin.earliestOffsets(topic), admin.endOffsets(topic, 'read_committed')])
  return new Map([...ends].map(([partition, end]) => [partition, greatestOf(lows.get(partition) ?? 0n, end - BigInt(TAIL))]))
}

/** Adds up records; pure, each of them once. Shape: `domains` are told apart at most. */
export class DriftBuilder {
  readonly #versions = new Map<
    string,
    { readonly extractor: string; readonly version: number; readonly byDomain: Map<string, YieldBuilder> }
  >()
  readonly #domains: number
  readonly #seen = new Set<string>()

  constructor(domains = DOMAINS) {
    this.#domains = domains
  }

  /** A record that is written again, by a replay, is the same record. */
  add(record: Pick<StoredRecord, 'extractor' | 'extractorVersion' | 'url' | 'source' | 'itemIndex' | 'data'>): void {
    const { extractor, extractorVersion: version, source, itemIndex } = record
    const place = `${extractor}:${version}:${pageKey(source)}:${itemIndex}`
    if (this.#seen.has(place)) return
    this.#seen.add(place)
    const key = `${extractor}:${version}`
    const seen = this.#versions.get(key) ?? { extractor, version, byDomain: new Map<string, YieldBuilder>() }
    this.#versions.set(key, seen)
    const domain = domainOfUrl(record.url) ?? OTHER
    const counts = seen.byDomain.get(domain) ?? new YieldBuilder()
    seen.byDomain.set(domain, counts)
    counts.add(record)
  }

  result(): FieldDrift[] {
    return [...this.#versions.values()]
      .map(({ extractor, version, byDomain }): FieldDrift => {
        const ranked = [...byDomain].toSorted(([a, one], [b, two]) => two.pages - one.pages || a.localeCompare(b))
        const own = ranked.slice(0, this.#domains).map(([domain, counts]) => ({ domain, ...counts.result() }))
        const rest = ranked.slice(this.#domains).map(([, counts]) => counts)
        const others = rest.length === 0 ? [] : [{ domain: OTHER, ...merged(rest).result() }]
        return { extractor, version, ...merged([...byDomain.values()]).result(), domains: [...own, ...others] }
      })
      .toSorted((a, b) => a.extractor.localeCompare(b.extractor) || a.version - b.version)
  }
}

class YieldBuilder {
  records = 0
  readonly #pages = new Set<string>()
  readonly #fields = new Map<string, { nulls: number; seen: number; readonly types: Set<string> }>()

  get pages(): number {
    return this.#pages.size
  }

  add({ source, data }: Pick<StoredRecord, 'source' | 'data'>): void {
    this.records += 1
    this.#pages.add(pageKey(source))
    for (const [field, value] of Object.entries(data)) {
      const counts = this.#countsOf(field)
      counts.seen += 1
      if (value === null || value === undefined) counts.nulls += 1
      else counts.types.add(Array.isArray(value) ? 'list' : Buffer.isBuffer(value) ? 'bytes' : typeof value)
    }
  }

  merge(other: YieldBuilder): void {
    this.records += other.records
    for (const page of other.#pages) this.#pages.add(page)
    for (const [field, { nulls, seen, types }] of other.#fields) {
      const counts = this.#countsOf(field)
      counts.nulls += nulls
      counts.seen += seen
      for (const type of types) counts.types.add(type)
    }
  }

  result(): Yield {
    return {
      records: this.records,
      pages: this.pages,
      recordsPerPage: Math.round((this.records / this.pages) * 100) / 100,
      fields: [...this.#fields].map(([field, { nulls, seen, types }]) => ({
        field,
        nullRatio: Math.round((nulls / seen) * 1000) / 1000,
        types: [...types].sort(),
      })),
    }
  }

  #countsOf(field: string): { nulls: number; seen: number; readonly types: Set<string> } {
    const counts = this.#fields.get(field) ?? { nulls: 0, seen: 0, types: new Set<string>() }
    this.#fields.set(field, counts)
    return counts
  }
}

function merged(all: readonly YieldBuilder[]): YieldBuilder {
  const sum = new YieldBuilder()
  for (const each of all) sum.merge(each)
  return sum
}
