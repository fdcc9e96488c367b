import { describe, expect, it } from 'vitest'
import { groupTotals } from '../../../src/control/extract-totals.ts'
import { encodeMetadata, freshMetadata } from '../../../src/extract/offset-metadata.ts'

const book = { pages: 3, records: 2, none: 1, deadLetters: 0 }
const known = encodeMetadata({ ...freshMetadata(0n), totals: { noMatch: 4, extractors: { 'book:1': book } } })

describe('the totals of an extract group', () => {
  it('are sums over its partitions; one without metadata of ours has counted nothing', () => {
    const sum = { pages: 6, records: 4, none: 2, deadLetters: 0 }
    expect(groupTotals('g', [known, known, '', 'of another program'])).toEqual({
      group: 'g',
      noMatch: 8,
      extractors: [{ extractor: 'book:1', totals: sum }],
    })
  })

  it('are unknown where a partition could not keep them, and never the sum of the others', () => {
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`extractor-${index}:1`, book]))
    const lost = encodeMetadata({ ...freshMetadata(0n), totals: { noMatch: 4, extractors: many } })
    expect(groupTotals('g', [known, lost])).toEqual({ group: 'g', noMatch: null, extractors: [{ extractor: 'book:1', totals: null }] })
    expect(groupTotals('g', [lost])).toEqual({ group: 'g', noMatch: null, extractors: [] })
  })
})
