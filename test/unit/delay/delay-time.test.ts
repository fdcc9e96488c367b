import { describe, expect, it } from 'vitest'
import { delayTimes } from '../../../src/delay/delay-time.ts'

const message = (dueMs: string | undefined, timestamp = 1_000) => ({
  topic: 'd',
  partition: 0,
  offset: 0n,
  timestamp,
  key: null,
  value: null,
  headers: dueMs === undefined ? {} : { 'millrace-due-ms': Buffer.from(dueMs) },
})

describe('the times of a message in a delay topic', () => {
  it('are its due time in the shortest topic, whatever the delay of that', () => {
    expect(delayTimes(message('500000'), { delayMs: 10_000, isShortest: true })).toEqual({ dueAt: 500_000, wakeAt: 500_000 })
  })

  it('end the stay in a longer topic after its delay, and never after the due time', () => {
    const minute = { delayMs: 60_000, isShortest: false }
    expect(delayTimes(message('500000'), minute)).toEqual({ dueAt: 500_000, wakeAt: 61_000 })
    expect(delayTimes(message('30000'), minute)).toEqual({ dueAt: 30_000, wakeAt: 30_000 })
  })

  it('are those of writing where no due time is given', () => {
    expect(delayTimes(message(undefined), { delayMs: 60_000, isShortest: false })).toEqual({ dueAt: 1_000, wakeAt: 1_000 })
  })

  it.each(['', 'soon', '-5', '1.5', '99999999999999999', '9999999999999999'])('do not exist for the header %j', (text) => {
    expect(delayTimes(message(text), { delayMs: 10_000, isShortest: true })).toBeUndefined()
  })
})
