import { describe, expect, it } from 'vitest'
import { headersOfCopy, putAside } from '../../../src/message/due-time.ts'

const HOURS = 10_800_000
const NOW = 2_000
const at = (timestamp: number, dueMs: number, putMs?: number) => ({
  timestamp,
  headers: { other: 'kept', 'millrace-due-ms': String(dueMs), ...(putMs === undefined ? {} : { 'millrace-put-ms': String(putMs) }) },
})

describe('what was put aside', () => {
  it('is due as its header says, by a clock that ours agrees with', () => {
    expect(putAside(at(1_000, 9_000, 900), NOW)).toEqual({ dueAt: 9_000, putAt: 900 })
    expect(putAside(at(1_000, 9_000), NOW)).toEqual({ dueAt: 9_000, putAt: 1_000 })
    // All of us are ahead of the broker, or behind it: no wait is shorter for that.
    expect(putAside(at(1_000, HOURS + 9_000, HOURS + 900), HOURS + NOW)).toEqual({ dueAt: HOURS + 9_000, putAt: HOURS + 900 })
    expect(putAside(at(HOURS + 1_000, 9_000, 900), NOW)).toEqual({ dueAt: 9_000, putAt: 900 })
  })

  it('counts from when the broker wrote it where the clock that put it aside was ahead of ours', () => {
    expect(putAside(at(1_000, HOURS + 6_500, HOURS + 500), NOW)).toEqual({ dueAt: 7_000, putAt: 1_000 })
  })

  it('is due at the same time in a copy that is sent later, which says what was left then', () => {
    const copy = headersOfCopy(at(1_000, 9_000, 900).headers, 9_000, 5_999.5)
    expect(copy).toEqual({ other: 'kept', 'millrace-due-ms': '9000', 'millrace-put-ms': '3000' })
    // Whoever reads it with a clock that was set back waits for the six seconds, and not for the eight again.
    expect(putAside({ headers: copy, timestamp: 3_100 }, NOW - HOURS)).toEqual({ dueAt: 9_000, putAt: 3_000 })
  })
})
