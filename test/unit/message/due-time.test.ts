import { describe, expect, it } from 'vitest'
import { dueAsItIs, dueTime } from '../../../src/message/due-time.ts'

const HOURS = 10_800_000
const at = (timestamp: number, dueMs: number, putMs?: number) => ({
  timestamp,
  headers: { other: 'kept', 'millrace-due-ms': String(dueMs), ...(putMs === undefined ? {} : { 'millrace-put-ms': String(putMs) }) },
})

describe('the due time of what was put aside', () => {
  it('is as its header says where it was sent after that', () => {
    expect(dueTime(at(1_000, 9_000, 900))).toBe(9_000)
    expect(dueTime(at(1_000, 9_000))).toBe(9_000)
  })

  it('counts from the sending where the clock was hours ahead when it was put aside, and was set right before it was sent', () => {
    expect(dueTime(at(1_000, HOURS + 6_500, HOURS + 500))).toBe(7_000)
  })

  it('stays the same in a copy that is sent later', () => {
    const copy = dueAsItIs(at(1_000, HOURS + 6_500, HOURS + 500))
    expect(copy).toEqual({ other: 'kept', 'millrace-due-ms': '7000' })
    expect(dueTime({ headers: copy, timestamp: 5_000 })).toBe(7_000)
    expect(dueAsItIs({ timestamp: 1, headers: { 'millrace-due-ms': 'soon' } })).toEqual({ 'millrace-due-ms': 'soon' })
  })
})
