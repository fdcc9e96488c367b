import { describe, expect, it } from 'vitest'
import { compareValues, type TenValues } from '../../bench/peer-records.ts'

const page = (change: TenValues = {}): TenValues => ({ heading: 'A lamp', links: ['/a', '/b'], image: null, ...change })
const pages = (count: number): TenValues[] => Array.from({ length: count }, () => page())

describe('what a peer makes of the same pages', () => {
  it('is equal whatever its white space is, and however it says that there is nothing', () => {
    const ours = [page(), page({ links: null })]
    const theirs = [page({ heading: ' A\n\u00a0lamp', links: ['/a', ' ', '/b'], image: undefined }), page({ links: [] })]
    expect(compareValues(ours, theirs)).toEqual({ pages: 2, equal: 2, differing: new Map(), sharedRatio: 1 })
  })

  it('is counted by field where it differs, and by value where a list has some more', () => {
    const theirs = [page({ links: ['/a', '/b', '/b', '/c'] }), page({ heading: null, links: ['/b', '/a'] }), ...pages(8)]
    const differing = new Map([
      ['links', 2],
      ['heading', 1],
    ])
    expect(compareValues(pages(10), theirs)).toEqual({ pages: 10, equal: 8, differing, sharedRatio: 58 / 61 })
  })

  it('is no work of the same kind where a page or a field is left out, or most values are others', () => {
    expect(() => compareValues(pages(2), pages(1))).toThrow('page 1 has no 3 values')
    const { image: _, ...others } = page()
    expect(() => compareValues(pages(1), [others])).toThrow('page 0 has no 3 values')
    expect(() => compareValues(pages(2), [page(), page({ links: ['/c', '/d'] })])).toThrow(/shares 0\.6+7? of the values alone/)
  })
})
