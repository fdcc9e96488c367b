import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AdaptiveConcurrency } from '../../../src/fetch/adaptive-concurrency.ts'
import { RetryPressure } from '../../../src/fetch/retry-pressure.ts'
import type { PolitenessKey } from '../../../src/kernel/brand.ts'

const site = (index: number): PolitenessKey => `s${index}` as PolitenessKey

/** Every site answers once a second, for so many seconds. */
function answer(limit: AdaptiveConcurrency, seconds: number, from: number, msOf: (index: number) => number, sites = 40): number {
  let now = from
  for (let second = 0; second < seconds; second++) {
    for (let index = 0; index < sites; index++) {
      now += 1_000 / sites
      limit.answered(site(index), msOf(index), now)
    }
  }
  return now
}

describe('the bound on requests at the same time', () => {
  it('stays between its floor and its maximum, whatever the answers are', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 0, max: 600 }),
        fc.array(fc.record({ site: fc.nat(30), ms: fc.double({ min: 0, max: 200_000, noNaN: true }), pauseMs: fc.nat(3_000) }), {
          maxLength: 400,
        }),
        (max, floor, answers) => {
          const limit = new AdaptiveConcurrency({ max, floor })
          let now = 0
          for (const { site: index, ms, pauseMs } of answers) {
            now += pauseMs
            limit.answered(site(index), ms, now)
            expect(limit.limit).toBeGreaterThanOrEqual(Math.min(max, Math.max(1, floor)))
            expect(limit.limit).toBeLessThanOrEqual(max)
          }
        },
      ),
      { numRuns: 100 },
    )
  })

  it('falls when sites take twice as long as is usual for each of them, and comes back afterwards', () => {
    const limit = new AdaptiveConcurrency({ max: 200, floor: 20 })
    const usual = (index: number): number => 20 + index * 10
    let now = answer(limit, 30, 0, usual)
    expect(limit.limit).toBe(200)
    now = answer(limit, 12, now, (index) => 2.5 * usual(index))
    expect(limit.limit).toBeLessThanOrEqual(140)
    const low = limit.limit
    now = answer(limit, 120, now, usual)
    expect(limit.limit).toBeGreaterThan(low)
    answer(limit, 120, now, usual)
    expect(limit.limit).toBe(200)
  })

  it('goes no lower than its floor, and takes what lasts for the usual', () => {
    const limit = new AdaptiveConcurrency({ max: 100, floor: 30 })
    let now = answer(limit, 20, 0, () => 50)
    now = answer(limit, 60, now, () => 5_000)
    expect(limit.limit).toBe(30)
    answer(limit, 900, now, () => 5_000)
    expect(limit.limit).toBe(100)
  })

  it.each([
    { left: 'few sites', sites: 4, from: 0, ms: 50 },
    { left: 'few sites that are slow themselves', sites: 4, from: 0, ms: 2_000 },
    { left: 'sites that are not known yet', sites: 20, from: 1_000, ms: 50 },
  ])('comes back where $left are left after a bad minute', ({ sites, from, ms }) => {
    const limit = new AdaptiveConcurrency({ max: 200, floor: 20 })
    let now = answer(limit, 30, 0, () => 50)
    now = answer(limit, 60, now, () => 5_000)
    expect(limit.limit).toBeLessThan(60)
    let next = from
    for (let second = 0; second < 240; second++) {
      for (let index = 0; index < sites; index++) {
        now += 1_000 / sites
        // None of those that are new is asked often enough to be known.
        limit.answered(site(from === 0 ? index : next++), ms, now)
      }
    }
    expect(limit.limit).toBe(200)
  })

  it('does not fall for a few slow sites among many, nor for slower sites than were asked before', () => {
    const limit = new AdaptiveConcurrency({ max: 200, floor: 20 })
    let now = answer(limit, 20, 0, () => 50)
    now = answer(limit, 30, now, (index) => (index < 12 ? 9_000 : 50))
    expect(limit.limit).toBe(200)
    for (let second = 0; second < 30; second++) {
      for (let index = 0; index < 40; index++) {
        now += 25
        limit.answered(site(1_000 + index), 3_000, now)
      }
    }
    expect(limit.limit).toBe(200)
  })
})

describe('the pressure of retries', () => {
  it('is the share of retries among the requests of the last half minute, for any order of them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ attempt: fc.integer({ min: 1, max: 4 }), pauseMs: fc.nat(400) }), { maxLength: 300 }),
        (requests) => {
          const pressure = new RetryPressure()
          let now = 0
          const seen: { at: number; isRetry: boolean }[] = []
          for (const { attempt, pauseMs } of requests) {
            now += pauseMs
            pressure.started(attempt, now)
            seen.push({ at: now, isRetry: attempt > 1 })
            // Pieces of 3 s: what is older than 27 s may be gone, what is younger is there.
            const surely = seen.filter(({ at }) => at > now - 27_000)
            const maybe = seen.filter(({ at }) => at > now - 30_000)
            if (surely.length !== maybe.length) continue
            expect(pressure.share(now)).toBeCloseTo(surely.filter(({ isRetry }) => isRetry).length / surely.length, 10)
          }
        },
      ),
      { numRuns: 50 },
    )
  })

  it('dominates from one half on, until it is below a third, and not by a handful of requests', () => {
    const pressure = new RetryPressure()
    let now = 0
    const start = (attempts: readonly number[]): void => {
      for (const attempt of attempts) {
        now += 10
        pressure.started(attempt, now)
      }
    }
    start(Array(20).fill(2))
    expect(pressure.dominates).toBe(false)
    start(Array(40).fill(2))
    expect(pressure.dominates).toBe(true)
    start(Array(80).fill(1))
    expect(pressure.share(now)).toBeLessThan(0.5)
    expect(pressure.dominates).toBe(true)
    start(Array(100).fill(1))
    expect(pressure.dominates).toBe(false)
  })

  it('is over when nothing has been asked for a while', () => {
    const pressure = new RetryPressure()
    for (let index = 0; index < 100; index++) pressure.started(2, index)
    expect(pressure.dominates).toBe(true)
    expect(pressure.started(1, 60_000)).toBe(true)
    expect(pressure.dominates).toBe(false)
  })
})
