import { describe, expect, it } from 'vitest'
import { askedFor } from '../../../../src/control/trials/plan-range.ts'

describe('the range of a replay in words', () => {
  it('names everything that was asked for', () => {
    expect(askedFor({ start: { kind: 'earliest' }, filter: {} })).toBe('all stored pages')
    expect(
      askedFor({
        start: { kind: 'time', at: 0 },
        until: 86_400_000,
        partitions: [0, 2],
        filter: { fetchedFrom: 1_000, fetchedUntil: 2_000 },
      }),
    ).toBe(
      'pages stored from 1970-01-01T00:00:00.000Z on, stored before 1970-01-02T00:00:00.000Z, fetched from 1970-01-01T00:00:01.000Z on, fetched before 1970-01-01T00:00:02.000Z, of partition 0, 2',
    )
    expect(askedFor({ start: { kind: 'shift', by: -5n }, filter: {} })).toBe('pages from the committed offset - 5 on')
    expect(askedFor({ start: { kind: 'offset', offset: 7n }, filter: {} })).toBe('pages from offset 7 of each partition on')
    expect(askedFor({ start: { kind: 'file', path: 'a.csv' }, filter: {} })).toBe('pages from the offsets of a.csv on')
  })
})
