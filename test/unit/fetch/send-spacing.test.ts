import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SendSpacing } from '../../../src/fetch/send-spacing.ts'
import type { PolitenessKey } from '../../../src/kernel/brand.ts'

const key = 'a.test' as PolitenessKey

describe('the spacing of requests on the wire', () => {
  it('keeps the gap of the pace, however late each request was after its admission', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 2, maxLength: 30 }), (lateness) => {
        const spacing = new SendSpacing()
        const sent = lateness.map((lateMs, index) => {
          const now = index * 100 + lateMs
          return now + spacing.take({ key, ratePerSecond: 10, burst: 1 }, now)
        })
        for (const [index, at] of sent.entries()) if (index > 0) expect(at - (sent[index - 1] ?? 0)).toBeGreaterThanOrEqual(100 - 1e-6)
      }),
    )
  })

  it('counts from when the connection of a request stood, but for what timers are good for', () => {
    const spacing = new SendSpacing()
    expect(spacing.take({ key, ratePerSecond: 10, burst: 1 }, 0)).toBe(0)
    spacing.sentAt(key, 40)
    expect(spacing.take({ key, ratePerSecond: 10, burst: 1 }, 100)).toBe(39.5)
  })

  it('makes no gap shorter by more than that, and no more requests than the pace, however late each one leaves after its moment', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { minLength: 2, maxLength: 60 }), (lateness) => {
        const spacing = new SendSpacing()
        let now = 0
        const sent = lateness.map((lateMs) => {
          now += spacing.take({ key, ratePerSecond: 10, burst: 1 }, now) + lateMs
          spacing.sentAt(key, now)
          return now
        })
        const [first = 0] = sent
        for (const [index, at] of sent.entries()) {
          expect(at - first).toBeGreaterThanOrEqual(index * 100 - 0.5 - 1e-6)
          if (index > 0) expect(at - (sent[index - 1] ?? 0)).toBeGreaterThanOrEqual(99.5 - 1e-6)
        }
      }),
    )
  })

  it('lets a request that let its moment go by leave at once where no other has taken a later one, else behind that', () => {
    const spacing = new SendSpacing()
    const pace = { key, ratePerSecond: 10, burst: 1 }
    expect(spacing.take(pace, 0)).toBe(0)
    expect(spacing.takeAgain(pace, 0, 70)).toBe(0)
    expect(spacing.take(pace, 90)).toBe(80)
    expect(spacing.takeAgain(pace, 70, 190)).toBe(80)
    expect(spacing.take(pace, 300)).toBe(70)
  })

  it('does not space a burst, nor one site by another', () => {
    const spacing = new SendSpacing()
    expect([0, 0].map((now) => spacing.take({ key, ratePerSecond: 1, burst: 2 }, now))).toEqual([0, 0])
    spacing.take({ key, ratePerSecond: 1, burst: 1 }, 0)
    expect(spacing.take({ key: 'b.test' as PolitenessKey, ratePerSecond: 1, burst: 1 }, 0)).toBe(0)
  })

  it('does not space a pace whose gap no timer can keep', () => {
    const gapAt = (ratePerSecond: number): number => {
      const spacing = new SendSpacing()
      spacing.take({ key, ratePerSecond, burst: 1 }, 0)
      return spacing.take({ key, ratePerSecond, burst: 1 }, 0)
    }
    expect([1_000, 5_000].map(gapAt)).toEqual([0, 0])
    expect(gapAt(500)).toBe(2)
  })
})
