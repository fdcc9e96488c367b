/** One record, as far as a comparison goes. */
export interface ComparableRecord {
  readonly entityKey: string
  readonly url: string
  readonly data: Readonly<Record<string, unknown>>
  readonly source: { readonly topic: string; readonly partition: number; readonly offset: bigint | number }
}

export interface FieldDifference {
  /** Records in which the field was null before and is not now. */
  readonly added: number
  readonly removed: number
  readonly changed: number
  readonly nullsBefore: number
  readonly nullsAfter: number
}

export interface Comparison {
  readonly records: { readonly same: number; readonly added: number; readonly removed: number; readonly changed: number }
  readonly fields: Readonly<Record<string, FieldDifference>>
  readonly examples: readonly ComparisonExample[]
}

export interface ComparisonExample {
  readonly entityKey: string
  readonly field: string
  readonly source: ComparableRecord['source']
  readonly before: unknown
  readonly after: unknown
}

/** Per field, so that one busy field does not hide the others. */
const EXAMPLES_PER_FIELD = 3

/** Old records against new ones, joined by entity key; of several with one key the last counts, as in a sink. Pure. */
export function compareRecords(before: Iterable<ComparableRecord>, after: Iterable<ComparableRecord>): Comparison {
  const old = byKey(before)
  const fresh = byKey(after)
  const fields = new Map<string, { added: number; removed: number; changed: number; nullsBefore: number; nullsAfter: number }>()
  const examples: ComparisonExample[] = []
  const records = { same: 0, added: 0, removed: 0, changed: 0 }
  const fieldOf = (name: string): NonNullable<ReturnType<typeof fields.get>> => {
    const known = fields.get(name) ?? { added: 0, removed: 0, changed: 0, nullsBefore: 0, nullsAfter: 0 }
    fields.set(name, known)
    return known
  }
  for (const [key, record] of fresh) {
    const previous = old.get(key)
    if (previous === undefined) records.added += 1
    let differs = false
    for (const name of new Set([...Object.keys(previous?.data ?? {}), ...Object.keys(record.data)])) {
      const was = previous?.data[name] ?? null
      const is = record.data[name] ?? null
      const field = fieldOf(name)
      if (previous !== undefined && was === null) field.nullsBefore += 1
      if (is === null) field.nullsAfter += 1
      if (previous === undefined || isSame(was, is)) continue
      differs = true
      const kind = was === null ? 'added' : is === null ? 'removed' : 'changed'
      field[kind] += 1
      if (field.added + field.removed + field.changed <= EXAMPLES_PER_FIELD)
        examples.push({ entityKey: key, field: name, source: record.source, before: was, after: is })
    }
    if (previous !== undefined) records[differs ? 'changed' : 'same'] += 1
  }
  for (const key of old.keys()) if (!fresh.has(key)) records.removed += 1
  return { records, fields: Object.fromEntries(fields), examples }
}

function byKey(records: Iterable<ComparableRecord>): Map<string, ComparableRecord> {
  return new Map([...records].map((record) => [record.entityKey, record]))
}

/** Values as Avro has them: primitives, lists, nested records. */
function isSame(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && typeof b === 'object' && canonical(a) === canonical(b))
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === 'bigint') return inner.toString()
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
