import { describe, expect, it } from 'vitest'
import { gateVerdict } from '../../../../src/comparison/gate.ts'
import { samplePlaces } from '../../../../src/control/trials/sample.ts'

const planned = (partition: number, from: bigint, offsets: bigint) => ({
  partition,
  from,
  until: from + offsets,
  offsets,
  gone: 0n,
  note: undefined,
})
const plan = { partitions: [planned(0, 10n, 100n), planned(3, 0n, 300n)], offsets: 400n }

describe('places of a sample', () => {
  it('lie in every part of the range, each partition by its share, and none twice', () => {
    const places = [...samplePlaces(plan, 40)]
    expect(new Set(places.map(({ partition, offset }) => `${partition}:${offset}`)).size).toBe(40)
    expect(Math.abs(places.filter(({ partition }) => partition === 0).length - 10)).toBeLessThanOrEqual(1)
    const tenths = new Set(places.filter(({ partition }) => partition === 3).map(({ offset }) => (Number(offset) / 30) | 0))
    expect(tenths.size).toBe(10)
    expect([...samplePlaces(plan, 40)]).toEqual(places)
  })

  it('are the whole range where more are asked for', () => {
    const places = [...samplePlaces(plan, 1000)]
    expect(places.length).toBe(400)
    expect(places.every(({ partition, offset }) => (partition === 0 ? offset >= 10n && offset < 110n : offset < 300n))).toBe(true)
  })
})

describe('the gate of a new version', () => {
  const none = { records: { same: 5, added: 0, removed: 0, changed: 3, failed: 0 }, fields: {}, examples: [], failures: [] }
  const field = (removed: number) => ({ added: 0, removed, changed: 2, nullsBefore: 0, nullsAfter: removed })

  it('lets a version pass that changes values, adds records or loses what is optional', () => {
    expect(gateVerdict({ ...none, fields: { stock: field(3), colour: field(0) } }, new Set(['price']))).toEqual({
      held: false,
      reasons: [],
      notes: ['the field stock would be missing in 3 records that had it'],
    })
    expect(gateVerdict({ ...none, records: { ...none.records, added: 4, removed: 4 } }, new Set()).held).toBe(false)
  })

  it('holds back a version that loses a required field, records, or pages that gave records', () => {
    expect(gateVerdict({ ...none, fields: { price: field(2) } }, new Set(['price'])).reasons).toEqual([
      'the required field price would be lost in 2 records',
    ])
    expect(gateVerdict({ ...none, records: { ...none.records, removed: 1 } }, new Set()).reasons).toEqual([
      '1 record fewer on the same pages',
    ])
    const failure = { code: 'EXTRACT_TIMEOUT', field: undefined, pages: 3, gaveRecords: 1, source: { topic: 't', partition: 0, offset: 1 } }
    expect(gateVerdict({ ...none, failures: [failure] }, new Set()).reasons).toEqual([
      '1 page that gave records would become dead letters (EXTRACT_TIMEOUT)',
    ])
    expect(gateVerdict({ ...none, failures: [{ ...failure, gaveRecords: 0 }] }, new Set()).held).toBe(false)
  })

  it('holds back a version whose records are larger than their topic takes, also of pages that gave none before', () => {
    const failure = { code: 'EXTRACT_RECORD_TOO_LARGE', field: undefined, pages: 2, gaveRecords: 0 }
    const failures = [{ ...failure, source: { topic: 't', partition: 0, offset: 1 } }]
    expect(gateVerdict({ ...none, failures }, new Set()).reasons).toEqual([
      '2 pages would become dead letters: a record of theirs is larger than its topic takes (EXTRACT_RECORD_TOO_LARGE)',
    ])
  })
})
