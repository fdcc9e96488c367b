import { describe, expect, it } from 'vitest'
import { type ComparableRecord, compareRecords } from '../../../src/replay/compare.ts'

const record = (entityKey: string, data: Record<string, unknown>): ComparableRecord => ({
  entityKey,
  url: 'u',
  data,
  source: { topic: 'html', partition: 0, offset: 1n },
})

describe('the comparison of old records with new ones', () => {
  it('counts per record and per field', () => {
    const before = [record('a', { title: 'A', price: '2.00' }), record('b', { title: 'B', price: '3.00' }), record('gone', { title: 'G' })]
    const after = [
      record('a', { title: 'A', price: '1.00', brand: 'X' }),
      record('b', { title: 'B', price: '3.00', brand: null }),
      record('new', { title: 'N' }),
    ]
    const { records, fields, examples } = compareRecords(before, after)
    expect(records).toEqual({ same: 1, added: 1, removed: 1, changed: 1 })
    expect(fields.price).toEqual({ added: 0, removed: 0, changed: 1, nullsBefore: 0, nullsAfter: 0 })
    expect(fields.brand).toMatchObject({ added: 1, nullsBefore: 2, nullsAfter: 1 })
    expect(examples).toContainEqual(expect.objectContaining({ entityKey: 'a', field: 'price', before: '2.00', after: '1.00' }))
  })

  it('compares lists and nested records by value, whatever the order of their fields', () => {
    const { records } = compareRecords(
      [record('a', { list: [1, 2], at: { x: 1, y: 2 } })],
      [record('a', { list: [1, 2], at: { y: 2, x: 1 } })],
    )
    expect(records.same).toBe(1)
  })

  it('lets the last of several records with one key count, as a sink does', () => {
    const { records } = compareRecords([record('a', { v: 1 }), record('a', { v: 2 })], [record('a', { v: 2 })])
    expect(records).toEqual({ same: 1, added: 0, removed: 0, changed: 0 })
  })
})
