import { describe, expect, it } from 'vitest'
import { compareRuns } from '../../../src/comparison/record-changes.ts'
import type { PageRun } from '../../../src/extract/test-extractor.ts'

const url = 'http://a.example.test/'
const run = (...records: [key: string, data: object][]): PageRun => ({
  url,
  records: records.map(([key, data]) => ({ key: `x/${key}`, record: { data } })),
  failure: undefined,
})
const failed = (message: string): PageRun => ({
  url: `${url}2`,
  records: [],
  failure: { code: 'EXTRACT_FAILED', message, field: undefined },
})

describe('two runs over the same pages', () => {
  it('differ by field, record and page', () => {
    const before = [run(['a', { p: 1, q: [1] }], ['b', { p: 2 }], ['c', { p: 3 }]), failed('it threw')]
    const after = [run(['a', { p: 1, q: [2], r: null }], ['b', { p: null }], ['d', { p: 4 }]), { ...run(['a', { p: 1 }]), url: `${url}2` }]
    const { records, fields, changes } = compareRuns(before, after)
    expect(records).toEqual({ before: 3, after: 4, changed: 6 })
    expect(fields).toEqual({ q: 1, p: 1, '': 4 })
    expect(changes.map(({ key, field, before: was, after: is }) => [key, field, was, is])).toEqual([
      ['a', 'q', [1], [2]],
      ['b', 'p', 2, null],
      ['c', undefined, { p: 3 }, null],
      ['d', undefined, null, { p: 4 }],
      ['', undefined, 'it threw', null],
      ['a', undefined, null, { p: 1 }],
    ])
  })

  it('are the same where nothing changed, records of one key in their order', () => {
    const same = [run(['a', { p: 1 }], ['a', { p: 2 }])]
    expect(compareRuns(same, same)).toEqual({ records: { before: 2, after: 2, changed: 0 }, fields: {}, changes: [] })
    expect(compareRuns(same, [run(['a', { p: 1 }], ['a', { p: 3 }])]).changes).toMatchObject([
      { key: 'a (2)', field: 'p', before: 2, after: 3 },
    ])
  })

  it('are the same where a nested value has its fields in another order, as for a replay', () => {
    const [one, other] = [[run(['a', { p: { x: 1, y: [2n] } }])], [run(['a', { p: { y: [2n], x: 1 } }])]]
    expect(compareRuns(one, other).changes).toEqual([])
  })
})
