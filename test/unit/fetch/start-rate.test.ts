import { describe, expect, it } from 'vitest'
import { StartRate } from '../../../src/fetch/start-rate.ts'

/** What a process did, second by second. Shape: what was measured of it. */
function measured(seconds: readonly { starts: number; inFlight: number; allowed?: number }[], maxInFlight = 100): StartRate {
  let now = 0
  const scheduler = { startCount: 7, inFlight: 0, maxInFlight, allowedPerSecond: 0 }
  const rate = new StartRate({ scheduler, clock: { mono: () => now } })
  for (const { starts, inFlight, allowed = 0 } of seconds) {
    scheduler.startCount += starts
    scheduler.inFlight = inFlight
    scheduler.allowedPerSecond = allowed
    now += 1_000
    rate.measure()
  }
  return rate
}
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value)

describe('the rate of starts', () => {
  it('is not known until something has started, and then nothing is too much', () => {
    const rate = measured(times(5, { starts: 0, inFlight: 0, allowed: 1_000 }))
    expect(rate.startsPerSecond).toBeUndefined()
    expect(rate.overload).toBe(0)
  })

  it('is exceeded by nothing in the first seconds, in which a process has more to do: what is put aside then is not spread by them', () => {
    expect(measured(times(4, { starts: 10, inFlight: 20, allowed: 1_000 })).overload).toBe(0)
    expect(measured(times(5, { starts: 10, inFlight: 20, allowed: 1_000 })).overload).toBeCloseTo(20, 1)
  })

  it('is what there would be with all places taken', () => {
    expect(measured(times(30, { starts: 50, inFlight: 25 })).startsPerSecond).toBeCloseTo(200, 0)
    expect(measured([{ starts: 50, inFlight: 25 }]).startsPerSecond).toBeCloseTo(200, 0)
    expect(measured(times(30, { starts: 50, inFlight: 100 })).startsPerSecond).toBeCloseTo(50, 0)
    expect(measured(times(30, { starts: 50, inFlight: 0 })).startsPerSecond).toBe(5_000)
  })

  it('remembers for a minute what was possible before, and learns more at once', () => {
    const good = times(30, { starts: 100, inFlight: 100 })
    expect(measured([...good, ...times(10, { starts: 0, inFlight: 100 })]).startsPerSecond).toBeGreaterThan(70)
    expect(measured([...good, ...times(200, { starts: 0, inFlight: 100 })]).startsPerSecond).toBeLessThan(1)
    expect(measured([...good, { starts: 300, inFlight: 100 }]).startsPerSecond).toBeCloseTo(300, 0)
  })

  it('is exceeded by as much as the sites allow more', () => {
    expect(measured(times(30, { starts: 50, inFlight: 100, allowed: 500 })).overload).toBeCloseTo(10, 1)
    expect(measured(times(30, { starts: 50, inFlight: 100, allowed: 25 })).overload).toBeCloseTo(0.5, 1)
  })

  it('learns nothing of seconds in which there was nothing to do: a crawl that comes after an idle hour is not spread over years', () => {
    const good = times(30, { starts: 100, inFlight: 100 })
    const idle = measured([...good, ...times(3_600, { starts: 0, inFlight: 0 }), { starts: 0, inFlight: 0, allowed: 100 }])
    expect(idle.startsPerSecond).toBeGreaterThan(90)
    expect(idle.overload).toBeCloseTo(1, 0)
  })

  it('learns nothing while all starts are held up, whatever is still on the wire', () => {
    let now = 0
    const scheduler = { startCount: 0, inFlight: 100, maxInFlight: 100, allowedPerSecond: 100 }
    const rate = new StartRate({ scheduler, clock: { mono: () => now } })
    const seconds = (count: number, starts: number, isHeldUp: boolean): void => {
      for (let second = 0; second < count; second += 1) {
        now += 1_000
        scheduler.startCount += starts
        if (isHeldUp) rate.skip()
        else rate.measure()
      }
    }
    seconds(30, 100, false)
    seconds(1_200, 0, true)
    expect(rate.startsPerSecond).toBeCloseTo(100, 0)
    // What was not counted then is not counted in the first second after it either.
    seconds(1, 100, false)
    expect(rate.startsPerSecond).toBeCloseTo(100, 0)
    expect(rate.overload).toBeCloseTo(1, 1)
  })

  it('is never said to be exceeded without bound, however little has started', () => {
    expect(measured([{ starts: 1, inFlight: 1 }, ...times(3_600, { starts: 0, inFlight: 1, allowed: 1_000 })]).overload).toBe(100)
  })

  it('counts nothing twice within one moment', () => {
    let now = 0
    const scheduler = { startCount: 0, inFlight: 1, maxInFlight: 1, allowedPerSecond: 0 }
    const rate = new StartRate({ scheduler, clock: { mono: () => now } })
    scheduler.startCount = 10
    now = 1_000
    rate.measure()
    rate.measure()
    expect(rate.startsPerSecond).toBe(10)
  })
})
