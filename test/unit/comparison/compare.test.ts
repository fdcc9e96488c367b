import { describe, expect, it } from 'vitest'
import { type ComparableRecord, type ComparedPage, type Comparison, ComparisonBuilder } from '../../../src/comparison/compare.ts'

const source = (offset: number) => ({ topic: 'html', partition: 0, offset })

const record = (entityKey: string, data: Record<string, unknown>, offset = 1): ComparableRecord => ({
  entityKey,
  url: 'u',
  data,
  source: source(offset),
})

function compared(...pages: { at?: number; before: ComparableRecord[]; after: ComparedPage['after'] }[]): Comparison & { digest: string } {
  const builder = new ComparisonBuilder()
  for (const { at = 1, before, after } of pages) builder.add({ source: source(at), url: 'u', before, after })
  return { ...builder.result(), digest: builder.digest() }
}

describe('the comparison of old records with new ones', () => {
  it('counts per record and per field', () => {
    const before = [record('a', { title: 'A', price: '2.00' }), record('b', { title: 'B', price: '3.00' }), record('gone', { title: 'G' })]
    const after = [
      record('a', { title: 'A', price: '1.00', brand: 'X' }),
      record('b', { title: 'B', price: '3.00', brand: null }),
      record('new', { title: 'N' }),
    ]
    const { records, fields, examples } = compared({ before, after })
    expect(records).toEqual({ same: 1, added: 1, removed: 1, changed: 1, failed: 0 })
    expect(fields.price).toEqual({ added: 0, removed: 0, changed: 1, nullsBefore: 0, nullsAfter: 0 })
    expect(fields.brand).toEqual({ added: 1, removed: 0, changed: 0, nullsBefore: 2, nullsAfter: 1 })
    expect(examples).toContainEqual(expect.objectContaining({ entityKey: 'a', field: 'price', before: '2.00', after: '1.00' }))
    expect(examples).toContainEqual(expect.objectContaining({ entityKey: 'new', before: null, after: { title: 'N' } }))
    expect(examples).toContainEqual(expect.objectContaining({ entityKey: 'gone', before: { title: 'G' }, after: null }))
  })

  it('compares lists and nested records by value, whatever the order of their fields', () => {
    const { records } = compared({
      before: [record('a', { list: [1, 2], at: { x: 1, y: 2 } })],
      after: [record('a', { list: [1, 2], at: { y: 2, x: 1 } })],
    })
    expect(records.same).toBe(1)
  })

  it('joins records of one page alone, and several of one key in their order', () => {
    const { records } = compared(
      { at: 1, before: [record('a', { v: 1 }), record('a', { v: 2 })], after: [record('a', { v: 1 }), record('a', { v: 3 })] },
      { at: 2, before: [record('b', { v: 1 })], after: [record('a', { v: 1 })] },
    )
    expect(records).toEqual({ same: 1, added: 1, removed: 1, changed: 1, failed: 0 })
  })

  it('counts a page that fails as failed, and none of its records as removed', () => {
    const failure = { code: 'EXTRACT_FIELD_MISSING', field: 'price' }
    const { records, failures } = compared(
      { at: 1, before: [record('a', {})], after: failure },
      { at: 2, before: [], after: failure },
      { at: 3, before: [], after: { code: 'EXTRACT_TIMEOUT', field: undefined } },
    )
    expect(records).toEqual({ same: 0, added: 0, removed: 0, changed: 0, failed: 3 })
    expect(failures).toEqual([
      { code: 'EXTRACT_FIELD_MISSING', field: 'price', pages: 2, gaveRecords: 1, source: source(1) },
      { code: 'EXTRACT_TIMEOUT', field: undefined, pages: 1, gaveRecords: 0, source: source(3) },
    ])
  })

  it('has one digest for the same pages in any order, and another for any other value', () => {
    const a = { at: 1, before: [record('a', { v: 1 })], after: [record('a', { v: 2 })] }
    const b = { at: 2, before: [], after: [record('b', { v: 1 })] }
    expect(compared(a, b).digest).toBe(compared(b, a).digest)
    expect(compared(a, b).digest).not.toBe(compared(a, { ...b, after: [record('b', { v: 2 })] }).digest)
    expect(compared(a, b).digest).not.toBe(compared(a, { ...b, at: 3 }).digest)
  })
})
