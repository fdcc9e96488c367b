import { describe, expect, it } from 'vitest'
import { delayReason, expectedWaitMs, isClosure, spillReason, spillReasonOf, spreadSlots } from '../../../src/fetch/spill.ts'

const view = { waiting: 0, heldInWindow: 0, wakeInMs: 0, intervalMs: 1_000, isCrowded: false }

describe('what is spilled', () => {
  it('is the 65th task of a site in one window', () => {
    expect(spillReason({ ...view, heldInWindow: 63, intervalMs: 1 })).toBeUndefined()
    expect(spillReason({ ...view, heldInWindow: 64, intervalMs: 1 })).toBe('site-full')
  })

  it('is a task that would wait longer than 30 s', () => {
    expect(spillReason({ ...view, waiting: 30 })).toBeUndefined()
    expect(spillReason({ ...view, waiting: 31 })).toBe('long-wait')
    expect(spillReason({ ...view, wakeInMs: 30_001 })).toBe('long-wait')
    expect(spillReason({ ...view, waiting: 10, wakeInMs: 21_000 })).toBe('long-wait')
  })

  it('is one that would wait longer than 3 s where the window is crowded by sites at their paces', () => {
    expect(spillReason({ ...view, waiting: 3, isCrowded: true })).toBeUndefined()
    expect(spillReason({ ...view, waiting: 4, isCrowded: true })).toBe('long-wait')
    expect(spillReason({ ...view, waiting: 4 })).toBeUndefined()
  })

  it('says why its site is closed, where that is more than its turn', () => {
    const told = ['proxies-out', 'breaker', 'paused', 'rate'].map((reason) => spillReasonOf(reason))
    expect(told.map((reason) => [delayReason(reason), isClosure(reason)])).toEqual([
      ['proxies-out', true],
      ['parked', true],
      ['paused', true],
      ['spill', false],
    ])
  })

  it('waits at least as long as the site sleeps', () => {
    expect(expectedWaitMs({ waiting: 2, wakeInMs: -50, intervalMs: 10 })).toBe(20)
  })

  it('spreads its tasks over the slots that one step of the clock gave', () => {
    expect(spreadSlots(5_000, 3, 1_000)).toEqual([3_000, 4_000, 5_000])
    expect(spreadSlots(500, 2, 1_000)).toEqual([0, 500])
  })
})
