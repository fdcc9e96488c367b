import type { Observer } from '../kernel/observe.ts'
import type { RunResult } from './page-runner.ts'

interface Counts {
  readonly extractor: string
  readonly version: number
  readonly results: { records: number; none: number; failed: number }
  records: number
  readonly nulls: Map<string, number>
}

/** A page of one extractor gives up to a dozen figures: they are told together for so many pages. */
const PAGES = 64

/**
 * What extractors give, by version and field, as metrics: pages by result, records, and nulls of each field. Their ratios are what shows
 * that a site has changed under an extractor. Labels are bounded by the extractors that are loaded.
 */
export class YieldCounts {
  readonly #observer: Observer
  readonly #counts = new Map<string, Counts>()
  #pages = 0

  constructor(observer: Observer) {
    this.#observer = observer
  }

  add(version: number, result: RunResult): void {
    const key = `${result.extractor}:${version}`
    const counts = this.#counts.get(key) ?? {
      extractor: result.extractor,
      version,
      results: { records: 0, none: 0, failed: 0 },
      records: 0,
      nulls: new Map<string, number>(),
    }
    this.#counts.set(key, counts)
    if (result.kind === 'failure') counts.results.failed += 1
    else {
      counts.results[result.records.length === 0 ? 'none' : 'records'] += 1
      counts.records += result.records.length
      for (const [field, count] of Object.entries(result.nulls)) counts.nulls.set(field, (counts.nulls.get(field) ?? 0) + count)
    }
    this.#pages += 1
    if (this.#pages >= PAGES) this.tell()
  }

  tell(): void {
    this.#pages = 0
    for (const { extractor, version, results, records, nulls } of this.#counts.values()) {
      for (const [result, count] of Object.entries(results))
        if (count > 0) this.#observer.emit('PagesRead', { extractor, version, result, count })
      if (records > 0) this.#observer.emit('RecordsGiven', { extractor, version, count: records })
      for (const [field, count] of nulls) this.#observer.emit('FieldsNull', { extractor, version, field, count })
    }
    this.#counts.clear()
  }
}

/** Null fields over the records of one page, by name. Shape: fields that are never null are left out. */
export function nullsOf(items: readonly { readonly data: unknown }[]): Record<string, number> {
  const nulls: Record<string, number> = {}
  for (const { data } of items) {
    if (typeof data !== 'object' || data === null) continue
    for (const [field, value] of Object.entries(data)) if (value === null || value === undefined) nulls[field] = (nulls[field] ?? 0) + 1
  }
  return nulls
}
