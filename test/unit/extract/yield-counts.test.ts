import { describe, expect, it } from 'vitest'
import { nullsOf } from '../../../src/extract/nulls.ts'
import type { RunResult } from '../../../src/extract/page-runner.ts'
import { YieldCounts } from '../../../src/extract/yield-counts.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'

const record = { key: 'k', value: Buffer.alloc(0) }
const given = (records: number, nulls: Record<string, number> = {}): RunResult => ({
  kind: 'records',
  extractor: 'book',
  records: Array(records).fill(record) as (typeof record)[],
  invalid: {},
  nulls,
})
const page = (host = 'shop.example') => ({ finalUrl: `http://www.${host}/b/1` })

describe('what an extractor gives', () => {
  it('is told by version and field, several pages together', () => {
    const { observer, events } = recordingObserver()
    const counts = new YieldCounts(observer)
    counts.add(2, page(), { ...given(3, { price: 1 }), invalid: { price: 1 } } as RunResult)
    counts.add(2, page(), given(1, { price: 1, stock: 1 }))
    counts.add(2, page(), given(0))
    counts.add(2, page(), { kind: 'failure', extractor: 'book', code: 'EXTRACT_FIELD_MISSING', message: '' })
    expect(events).toEqual([])
    counts.tell()
    counts.tell()
    const about = { extractor: 'book', version: 2, domain: 'other' }
    expect(events.map(({ event, fields }) => [event, fields])).toEqual([
      ['PagesRead', { ...about, result: 'records', count: 2 }],
      ['PagesRead', { ...about, result: 'none', count: 1 }],
      ['PagesRead', { ...about, result: 'failed', count: 1 }],
      ['RecordsGiven', { ...about, count: 4 }],
      ['FieldsNull', { ...about, field: 'price', count: 2 }],
      ['FieldsNull', { ...about, field: 'stock', count: 1 }],
      ['FieldValuesInvalid', { ...about, field: 'price', count: 1 }],
    ])
  })

  it('is told by domain for the sites that give most pages, and together for all others', () => {
    const { observer, events } = recordingObserver()
    const counts = new YieldCounts(observer, 2)
    for (let round = 0; round < 64; round += 1) {
      counts.add(1, page('big.example'), given(1))
      counts.add(1, page(`small${round}.example`), given(1, { price: 1 }))
    }
    const told = events.map(({ event, fields }) => [event, fields.domain, fields.count])
    const batch = [
      ['PagesRead', 'big.example', 32],
      ['RecordsGiven', 'big.example', 32],
      ['PagesRead', 'other', 32],
      ['RecordsGiven', 'other', 32],
      ['FieldsNull', 'other', 32],
    ]
    expect(told).toEqual([...batch, ...batch])
  })

  it('counts a page whose address is no URL, as another program may have written it, with the other sites', () => {
    const { observer, events } = recordingObserver()
    const counts = new YieldCounts(observer, 1)
    for (let index = 0; index < 40; index += 1) counts.add(2, { finalUrl: 'no url' }, given(0))
    for (let index = 0; index < 23; index += 1) counts.add(2, page(), given(0))
    counts.tell()
    const told = events.map(({ fields }) => [fields?.domain, fields?.count])
    expect(told).toEqual(
      expect.arrayContaining([
        ['other', 40],
        ['shop.example', 23],
      ]),
    )
  })

  it('is told by itself after 64 pages', () => {
    const { observer, count } = recordingObserver()
    const counts = new YieldCounts(observer)
    for (let times = 0; times < 64; times += 1) counts.add(1, page(), given(1))
    expect(count('RecordsGiven', { count: 64 })).toBe(1)
  })

  it('counts nulls of the records of a page', () => {
    expect(nullsOf([{ data: { a: null, b: 0 } }, { data: { a: null, b: null } }, { data: { a: '', b: false } }])).toEqual({ a: 2, b: 1 })
  })

  it('counts a field of code by its name, whatever objects have under it', () => {
    expect({ ...nullsOf([{ data: { constructor: null } }, { data: { constructor: null } }]) }).toEqual({ constructor: 2 })
  })
})
