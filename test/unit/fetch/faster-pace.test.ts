import { describe, expect, it } from 'vitest'
import { runWindow, type WindowRun, type WindowRunOptions } from '../../support/window-run.ts'

const CHANGE_AT = 20_000
const SLOW = { log: Array.from({ length: 600 }, () => ({ crawl: 'c', site: 'shop.example' })), maxInFlight: 20, requestMs: 100 }

/** A site with more than a window holds, whose pace changes when most of it has been put aside for minutes. */
const runWith = (change: Partial<NonNullable<WindowRunOptions['change']>>, ratePerSecond = 2): WindowRun =>
  runWindow({ ...SLOW, ratePerSecond, untilMs: 120_000, change: { at: CHANGE_AT, ratePerSecond: 10, isSaid: true, ...change } })
const startsAfter = ({ starts }: WindowRun): number[] => starts.map(({ at }) => at).filter((at) => at > CHANGE_AT)
const spillsAfter = ({ spills }: WindowRun): number => spills.filter(({ at }) => at >= CHANGE_AT).length

describe('a pace that becomes faster', () => {
  it.each([2, 0.1])('counts for what was put aside at %s a second as well: all of it is asked for at the new pace', (before) => {
    const run = runWith({}, before)
    expect(run.starts).toHaveLength(600)
    expect(new Set(run.starts.map(({ index }) => index)).size).toBe(600)
    const after = startsAfter(run)
    expect(after.at(-1)).toBeLessThan(CHANGE_AT + after.length * 100 + 5_000)
    // The pace itself is the limiter's alone: nothing leaves earlier than it allows.
    for (const [index, at] of after.entries()) expect(at - (after[index - 1] ?? Number.NEGATIVE_INFINITY)).toBeGreaterThanOrEqual(100)
  })

  it('brings back nothing twice: what finds no place is put aside once more, with a time by the new pace', () => {
    const run = runWith({})
    const aside = 600 - 64 - CHANGE_AT / 500
    expect(run.lifted).toBeGreaterThan(aside - 5)
    expect(run.lifted).toBeLessThanOrEqual(600)
    expect(spillsAfter(run)).toBeLessThanOrEqual(run.lifted)
    expect(Math.max(...run.copies)).toBeLessThanOrEqual(3)
  })

  it('is what brings it back, and a slower one brings back nothing', () => {
    const unsaid = runWith({ isSaid: false })
    expect(unsaid.lifted).toBe(0)
    expect(unsaid.starts.length).toBeLessThan(400)
    expect(runWith({ isSaid: false, ratePerSecond: 1 }).lifted).toBe(0)
  })
})
