import { describe, expect, it } from 'vitest'
import { DriftBuilder } from '../../../../src/control/extractors/field-drift.ts'

const record = (host: string, offset: number, data: Record<string, unknown>, extractorVersion = 1, itemIndex = 0) => ({
  itemIndex,
  extractor: 'book',
  extractorVersion,
  url: `https://www.${host}/b`,
  source: { topic: 'html', partition: 0, offset },
  data,
})

describe('drift of fields', () => {
  it('is told by version and by the domains with most pages, the rest together', () => {
    const drift = new DriftBuilder(2)
    for (let offset = 0; offset < 4; offset += 1)
      drift.add(record('big.co.uk', offset, { price: '1.00', stock: offset < 1 ? null : offset }))
    drift.add(record('big.co.uk', 3, { price: '1.00', stock: 2 }, 1, 1))
    // Written again by a replay.
    drift.add(record('big.co.uk', 3, { price: '1.00', stock: 2 }, 1, 1))
    for (let offset = 10; offset < 12; offset += 1) drift.add(record('broken.example', offset, { price: null, stock: 1 }))
    drift.add(record('small.example', 20, { price: '2.00', stock: null }))
    drift.add(record('tiny.example', 21, { price: 2, stock: 1 }))
    drift.add(record('big.co.uk', 0, { price: '1.00' }, 2))
    expect(drift.result()).toEqual([
      {
        extractor: 'book',
        version: 1,
        records: 9,
        pages: 8,
        recordsPerPage: 1.13,
        fields: [
          { field: 'price', nullRatio: 0.222, types: ['number', 'string'] },
          { field: 'stock', nullRatio: 0.222, types: ['number'] },
        ],
        domains: [
          {
            domain: 'big.co.uk',
            records: 5,
            pages: 4,
            recordsPerPage: 1.25,
            fields: [
              { field: 'price', nullRatio: 0, types: ['string'] },
              { field: 'stock', nullRatio: 0.2, types: ['number'] },
            ],
          },
          {
            domain: 'broken.example',
            records: 2,
            pages: 2,
            recordsPerPage: 1,
            fields: [
              { field: 'price', nullRatio: 1, types: [] },
              { field: 'stock', nullRatio: 0, types: ['number'] },
            ],
          },
          {
            domain: 'other',
            records: 2,
            pages: 2,
            recordsPerPage: 1,
            fields: [
              { field: 'price', nullRatio: 0, types: ['number', 'string'] },
              { field: 'stock', nullRatio: 0.5, types: ['number'] },
            ],
          },
        ],
      },
      expect.objectContaining({ version: 2, records: 1, domains: [expect.objectContaining({ domain: 'big.co.uk', pages: 1 })] }),
    ])
  })
})
