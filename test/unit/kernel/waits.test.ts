import { describe, expect, it } from 'vitest'
import { backoffMs, retried } from '../../../src/kernel/backoff.ts'
import { slept, within } from '../../../src/kernel/clock.ts'
import { ManualClock } from '../../support/manual-clock.ts'

describe('a sleep', () => {
  it('tells whether its signal came first, whatever its reason', async () => {
    const clock = new ManualClock()
    const stop = new AbortController()
    const whole = slept(clock, 10, stop.signal)
    await clock.advance(10)
    expect(await whole).toBe(true)
    const cut = slept(clock, 10, stop.signal)
    stop.abort(new TypeError('what it failed of'))
    expect(await cut).toBe(false)
    expect(await slept(clock, 10, stop.signal)).toBe(false)
    expect(clock.armedCount).toBe(0)
  })

  it('hides no defect of its clock', async () => {
    const clock = { sleep: () => Promise.reject(new RangeError('no such time')) }
    await expect(slept(clock, 10, new AbortController().signal)).rejects.toThrow('no such time')
  })
})

describe('work that is waited for so long', () => {
  it('gives what it comes to, and leaves no timer', async () => {
    const clock = new ManualClock()
    expect(await within(clock, 10, Promise.resolve('done'))).toBe('done')
    await expect(within(clock, 10, Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(clock.armedCount).toBe(0)
  })

  it("is late after that, and what it fails of then is nobody's", async () => {
    const clock = new ManualClock()
    let fail = (_: Error): void => undefined
    const work = new Promise<never>((_, reject) => {
      fail = reject
    })
    const waited = within(clock, 10, work)
    await clock.advance(10)
    expect(await waited).toBe('late')
    fail(new Error('too late'))
    await clock.advance(1)
  })
})

describe('what is tried again', () => {
  const policy = { firstMs: 100, maxMs: 1_000 }

  it('waits between its tries as the back-off says, and gives what the last one comes to', async () => {
    const waits: number[] = []
    const clock = { sleep: async (ms: number) => void waits.push(ms) }
    const told: number[] = []
    let left = 3
    const step = async (): Promise<string> => {
      left -= 1
      if (left >= 0) throw new Error('away')
      return 'back'
    }
    const again = (_: unknown, tries: number): boolean => {
      told.push(tries)
      return true
    }
    expect(await retried(step, { policy, again, clock, random: () => 0.25 })).toBe('back')
    expect(told).toEqual([1, 2, 3])
    expect(waits).toEqual([1, 2, 3].map((tries) => backoffMs(policy, tries, 0.25)))
  })

  it('fails with what no further try mends, and with the reason of its signal', async () => {
    const clock = new ManualClock()
    const step = (): Promise<never> => Promise.reject(new Error('broken'))
    await expect(retried(step, { policy, again: (_, tries) => tries < 1, clock })).rejects.toThrow('broken')
    const stop = new AbortController()
    const waiting = retried(step, { policy, again: () => true, clock, signal: stop.signal })
    await clock.advance(0)
    stop.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
    expect(clock.armedCount).toBe(0)
  })
})
