import { createHash } from 'node:crypto'

/** Where a page lies. */
export interface PageSource {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint | number
}

/** One record, as far as a comparison goes. */
export interface ComparableRecord {
  readonly entityKey: string
  readonly url: string
  readonly data: Readonly<Record<string, unknown>>
  readonly source: PageSource
}

export interface FieldDifference {
  /** Records in which the field was null before and is not now. */
  readonly added: number
  readonly removed: number
  readonly changed: number
  /** Over the records that are in both. */
  readonly nullsBefore: number
  readonly nullsAfter: number
}

/** Records of one page before and after. */
export interface ComparedPage {
  readonly source: PageSource
  readonly url: string
  readonly before: readonly ComparableRecord[]
  /** A page on which the extractor fails gives a dead letter and no record; what it gave before stays and is not counted as removed. */
  readonly after: readonly ComparableRecord[] | PageFailure
}

export interface PageFailure {
  readonly code: string
  /** Path of the field that is at fault, where one is. */
  readonly field: string | undefined
}

export interface Comparison {
  /** `failed` counts pages, the others count records. */
  readonly records: {
    readonly same: number
    readonly added: number
    readonly removed: number
    readonly changed: number
    readonly failed: number
  }
  readonly fields: Readonly<Record<string, FieldDifference>>
  readonly examples: readonly ComparisonExample[]
  readonly failures: readonly FailureCount[]
}

export interface ComparisonExample {
  readonly entityKey: string
  /** Undefined: the whole record came or went. */
  readonly field: string | undefined
  readonly url: string
  readonly source: PageSource
  readonly before: unknown
  readonly after: unknown
}

/** Pages on which the extractor fails for the same reason. */
export interface FailureCount extends PageFailure {
  readonly pages: number
  /** Of these, pages that gave records before. */
  readonly gaveRecords: number
  /** The first of them. */
  readonly source: PageSource
}

/** Per field, so that one busy field does not hide the others. */
const EXAMPLES_PER_FIELD = 3

type Counts = { added: number; removed: number; changed: number; nullsBefore: number; nullsAfter: number }

/**
 * Old records against new ones, a page at a time, in memory that does not grow with the pages. Records of a page are joined by entity
 * key; several of one key in their order.
 */
export class ComparisonBuilder {
  readonly #records = { same: 0, added: 0, removed: 0, changed: 0, failed: 0 }
  readonly #fields = new Map<string, Counts>()
  readonly #examples = new Map<string, ComparisonExample[]>()
  readonly #failures = new Map<
    string,
    { code: string; field: string | undefined; pages: number; gaveRecords: number; source: PageSource }
  >()
  #digest = 0n

  add(page: ComparedPage): void {
    this.#digest = (this.#digest + pageDigest(page)) % DIGEST_MODULUS
    if (!Array.isArray(page.after)) {
      this.#fail(page, page.after as PageFailure)
      return
    }
    const entityKeyOf = ({ entityKey }: ComparableRecord): string => entityKey
    const old = byKey(page.before, entityKeyOf)
    const fresh = byKey(page.after as readonly ComparableRecord[], entityKeyOf)
    for (const [key, record] of fresh) {
      const previous = old.get(key)
      if (previous === undefined) {
        this.#records.added += 1
        this.#example({
          entityKey: record.entityKey,
          field: undefined,
          url: page.url,
          source: page.source,
          before: null,
          after: record.data,
        })
      } else this.#pair(page, previous, record)
    }
    for (const [key, record] of old) {
      if (fresh.has(key)) continue
      this.#records.removed += 1
      this.#example({ entityKey: record.entityKey, field: undefined, url: page.url, source: page.source, before: record.data, after: null })
    }
  }

  result(): Comparison {
    return {
      records: { ...this.#records },
      fields: Object.fromEntries([...this.#fields].map(([name, counts]) => [name, { ...counts }])),
      examples: [...this.#examples.values()].flat(),
      failures: [...this.#failures.values()].sort((a, b) => b.pages - a.pages),
    }
  }

  /** What the pages held before and after, as one value: the same for the same pages in any order. 64 hex characters. */
  digest(): string {
    return this.#digest.toString(16).padStart(64, '0')
  }

  #pair(page: ComparedPage, previous: ComparableRecord, record: ComparableRecord): void {
    let differs = false
    for (const field of new Set([...Object.keys(previous.data), ...Object.keys(record.data)])) {
      const before = previous.data[field] ?? null
      const after = record.data[field] ?? null
      const counts = this.#fields.get(field) ?? { added: 0, removed: 0, changed: 0, nullsBefore: 0, nullsAfter: 0 }
      this.#fields.set(field, counts)
      if (before === null) counts.nullsBefore += 1
      if (after === null) counts.nullsAfter += 1
      if (isSame(before, after)) continue
      differs = true
      counts[before === null ? 'added' : after === null ? 'removed' : 'changed'] += 1
      this.#example({ entityKey: record.entityKey, field, url: page.url, source: page.source, before, after })
    }
    this.#records[differs ? 'changed' : 'same'] += 1
  }

  #fail(page: ComparedPage, { code, field }: PageFailure): void {
    this.#records.failed += 1
    const key = `${code}/${field ?? ''}`
    const known = this.#failures.get(key) ?? { code, field, pages: 0, gaveRecords: 0, source: page.source }
    known.pages += 1
    if (page.before.length > 0) known.gaveRecords += 1
    this.#failures.set(key, known)
  }

  #example(example: ComparisonExample): void {
    const kind = example.field ?? (example.before === null ? '+' : '-')
    const known = this.#examples.get(kind) ?? []
    this.#examples.set(kind, known)
    if (known.length < EXAMPLES_PER_FIELD) known.push(example)
  }
}

/** Key of a page within a topic. */
export function pageKey({ partition, offset }: Pick<PageSource, 'partition' | 'offset'>): string {
  return `${partition}:${offset}`
}

/** Records of one page. Several of one key are told apart by their order: the second of `a` has the name `a\n2`. */
export function byKey<T>(records: readonly T[], keyOf: (record: T) => string): ReadonlyMap<string, T> {
  const found = new Map<string, T>()
  const seen = new Map<string, number>()
  for (const record of records) {
    const key = keyOf(record)
    const count = (seen.get(key) ?? 0) + 1
    seen.set(key, count)
    found.set(count === 1 ? key : `${key}\n${count}`, record)
  }
  return found
}

const DIGEST_MODULUS = 1n << 256n

function pageDigest({ source, before, after }: ComparedPage): bigint {
  const told = Array.isArray(after) ? (after as readonly ComparableRecord[]).map(({ entityKey, data }) => [entityKey, data]) : after
  const was = before.map(({ entityKey, data }) => [entityKey, data])
  return BigInt(
    `0x${createHash('sha256')
      .update(canonical([pageKey(source), was, told]))
      .digest('hex')}`,
  )
}

/** Values as Avro has them: primitives, lists, nested records. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || Object.is(a, b) || (typeof a === 'object' && typeof b === 'object' && canonical(a) === canonical(b))
}

/** JSON in which the order of fields does not count. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === 'bigint') return inner.toString()
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
