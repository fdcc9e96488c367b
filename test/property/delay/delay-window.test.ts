import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DelayWindow } from '../../../src/delay/delay-window.ts'

const item = fc.record({ wakeMono: fc.nat(1_000), bytes: fc.integer({ min: 1, max: 40 }), isMovable: fc.boolean() })

describe('the window of a delay worker, for any arrivals', () => {
  it('gives everything once, at its time and not before, earliest first', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(item, fc.nat(60)), { maxLength: 80 }), (arrivals) => {
        const window = new DelayWindow<number>(1_000_000)
        const given: number[] = []
        let now = 0
        for (const [index, [waiting, passes]] of arrivals.entries()) {
          window.add({ ...waiting, value: index })
          now += passes
          const due = window.popDue(now)
          for (const value of due) expect(arrivals[value]?.[0].wakeMono).toBeLessThanOrEqual(now)
          const times = due.map((value) => arrivals[value]?.[0].wakeMono ?? 0)
          expect(times).toEqual([...times].sort((a, b) => a - b))
          given.push(...due)
        }
        given.push(...window.popDue(Number.POSITIVE_INFINITY))
        expect([...given].sort((a, b) => a - b)).toEqual(arrivals.map((_, index) => index))
        expect(window.size).toBe(0)
      }),
    )
  })

  it('makes room with what is due last, never with what is near or must stay', () => {
    fc.assert(
      fc.property(fc.array(item, { minLength: 1, maxLength: 60 }), fc.nat(900), (arrivals, near) => {
        const window = new DelayWindow<number>(200)
        for (const [index, waiting] of arrivals.entries()) window.add({ ...waiting, value: index })
        const wasOver = window.isOver
        const taken = window.takeLatest(near).map((value) => arrivals[value])
        for (const each of taken) expect(each?.isMovable === true && each.wakeMono >= near).toBe(true)
        const left = window.popDue(Number.POSITIVE_INFINITY).map((value) => arrivals[value])
        expect(left.length + taken.length).toBe(arrivals.length)
        const earliestTaken = Math.min(...taken.map((each) => each?.wakeMono ?? 0))
        for (const each of left)
          if (each?.isMovable === true && each.wakeMono >= near) expect(each.wakeMono).toBeLessThanOrEqual(earliestTaken)
        const movable = arrivals.filter(({ isMovable, wakeMono }) => isMovable && wakeMono >= near)
        if (wasOver && movable.length === arrivals.length)
          expect(left.reduce((sum, each) => sum + (each?.bytes ?? 0), 0)).toBeLessThanOrEqual(150)
      }),
    )
  })

  it('keeps few places for what has left, whatever leaves when, and still gives the rest in order', () => {
    const step = fc.record({ count: fc.nat(3_000), takes: fc.constantFrom('latest', 'odd', 'none'), passes: fc.nat(100) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
        const window = new DelayWindow<number>(1_000)
        let [now, added, left] = [0, 0, 0]
        for (const { count, takes, passes } of steps) {
          for (let index = 0; index < count; index += 1)
            window.add({ wakeMono: now + 50 + (index % 977), bytes: 1, isMovable: true, value: added++ })
          if (takes === 'latest') left += window.takeLatest(now).length
          if (takes === 'odd') left += window.takeOut((value) => value % 2 === 1).length
          now += passes
          left += window.popDue(now).length
          expect(window.size).toBe(added - left)
          if (takes !== 'none') expect(window.places).toBeLessThanOrEqual(2 * window.size + 1_024 + count)
        }
        expect(window.popDue(Number.POSITIVE_INFINITY)).toHaveLength(added - left)
        expect(window.places).toBe(0)
      }),
      { numRuns: 30 },
    )
  })
})
