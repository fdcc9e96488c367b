import { describe, expect, it } from 'vitest'
import { goneCounted, groupTotals } from '../../../../src/control/groups/extract-totals.ts'
import { encodeMetadata, freshMetadata } from '../../../../src/extract/offset-metadata.ts'

const book = { pages: 3, records: 2, none: 1, deadLetters: 0 }
const at = (metadata: string, committed?: bigint, low = 0n) => ({ metadata, committed, low })
const known = encodeMetadata({ ...freshMetadata(0n), totals: { noMatch: 4, extractors: { 'book:1': book } } })

describe('the totals of an extract group', () => {
  it('are sums over its partitions; one without metadata of ours has counted nothing', () => {
    const sum = { pages: 6, records: 4, none: 2, deadLetters: 0 }
    expect(
      groupTotals(
        'g',
        [known, known, '', 'of another program'].map((text) => at(text)),
      ),
    ).toEqual({
      group: 'g',
      noMatch: 8,
      gone: 0,
      extractors: [{ extractor: 'book:1', totals: sum }],
    })
  })

  it('are unknown where a partition could not keep them, and never the sum of the others', () => {
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`extractor-${index}:1`, book]))
    const lost = encodeMetadata({ ...freshMetadata(0n), totals: { noMatch: 4, extractors: many } })
    expect(groupTotals('g', [at(known), at(lost)])).toMatchObject({ noMatch: null, extractors: [{ extractor: 'book:1', totals: null }] })
    expect(groupTotals('g', [at(lost)])).toMatchObject({ noMatch: null, extractors: [] })
  })

  it('count the pages that retention deleted before live work had read them, also where it has not met them yet', () => {
    const met = encodeMetadata({ ...freshMetadata(0n), gone: { pages: 5, until: 9n } })
    const replaying = { replayId: 'r', phase: 'replaying', until: 50n, resumeAt: 90n, totals: book } as const
    const replay = encodeMetadata({ ...freshMetadata(0n), replay: replaying })
    expect(groupTotals('g', [at(met, 20n, 9n), at(known, 7n, 10n), at('', undefined, 10n)]).gone).toBe(8)
    // A replay that stands behind says nothing of live work.
    expect(groupTotals('g', [at(replay, 30n, 60n)]).gone).toBe(0)
    expect(groupTotals('g', [at(replay, 30n, 95n)]).gone).toBe(5)
    expect(goneCounted([at(met, 20n, 30n), at(known, 7n, 10n)])).toBe(5)
  })
})
