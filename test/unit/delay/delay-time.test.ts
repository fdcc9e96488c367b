import { describe, expect, it } from 'vitest'
import { delayTimes } from '../../../src/delay/delay-time.ts'

const message = (dueMs: string | undefined, timestamp = 1_000, putMs?: number) => ({
  topic: 'd',
  partition: 0,
  offset: 0n,
  timestamp,
  key: null,
  value: null,
  headers: {
    ...(dueMs === undefined ? {} : { 'millrace-due-ms': Buffer.from(dueMs) }),
    ...(putMs === undefined ? {} : { 'millrace-put-ms': String(putMs) }),
  },
})
const NOW = 2_000
const shortest = { delayMs: 10_000, isShortest: true }
const minute = { delayMs: 60_000, isShortest: false }
const HOURS = 10_800_000

describe('the times of a message in a delay topic', () => {
  it('are its due time in the shortest topic, whatever the delay of that', () => {
    expect(delayTimes(message('500000'), shortest, NOW)).toMatchObject({ dueInMs: 498_000, wakeInMs: 498_000 })
  })

  it('end the stay in a longer topic after its delay, and never after the due time', () => {
    expect(delayTimes(message('500000'), minute, NOW)).toMatchObject({ dueInMs: 498_000, wakeInMs: 59_000 })
    expect(delayTimes(message('30000'), minute, NOW)).toMatchObject({ dueInMs: 28_000, wakeInMs: 28_000 })
  })

  it('are those of writing where no due time is given', () => {
    expect(delayTimes(message(undefined), minute, NOW)).toMatchObject({ dueInMs: -1_000, wakeInMs: -1_000 })
  })

  it('count from when it was written where our clock was set back: it waits no longer than it was meant to', () => {
    const written = NOW + HOURS
    expect(delayTimes(message(String(written + 8_000), written), shortest, NOW)).toMatchObject({ dueInMs: 8_000, wakeInMs: 8_000 })
    expect(delayTimes(message(String(written + 90_000), written), minute, NOW)).toMatchObject({ dueInMs: 90_000, wakeInMs: 60_000 })
  })

  it('are by the clock of those who put aside and bring back, however far from it that of the broker is', () => {
    for (const broker of [NOW - HOURS, NOW, NOW + HOURS])
      for (const [topic, wakeInMs] of [
        [shortest, 89_000],
        [minute, 59_000],
      ] as const)
        expect(delayTimes(message(String(NOW + 90_000), broker, NOW), topic, NOW + 1_000)).toMatchObject({ dueInMs: 89_000, wakeInMs })
  })

  it('are as they were meant where the clock that put aside was hours ahead', () => {
    const ahead = NOW + HOURS
    expect(delayTimes(message(String(ahead + 8_000), NOW, ahead), shortest, NOW + 1_000)).toMatchObject({ dueInMs: 7_000, wakeInMs: 7_000 })
    expect(delayTimes(message(String(ahead + 90_000), NOW, ahead), minute, NOW + 1_000)).toMatchObject({
      dueInMs: 89_000,
      wakeInMs: 59_000,
    })
  })

  it('say when it is due by the clock that put it aside, for its copies', () => {
    expect(delayTimes(message('500000'), minute, NOW)?.dueAt).toBe(500_000)
    expect(delayTimes(message(String(NOW + HOURS + 8_000), NOW, NOW + HOURS), minute, NOW)?.dueAt).toBe(NOW + 8_000)
  })

  it.each(['', 'soon', '-5', '1.5', '99999999999999999', '9999999999999999'])('do not exist for the header %j', (text) => {
    expect(delayTimes(message(text), shortest, NOW)).toBeUndefined()
  })
})
