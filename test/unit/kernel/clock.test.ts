import { afterEach, describe, expect, it, vi } from 'vitest'
import { abortAfter, sleepUntil, systemClock } from '../../../src/kernel/clock.ts'

/** A clock on which a timer fires so much too early, and a turn of the loop takes a tenth of a millisecond. */
function scripted(earlyMs: number) {
  let mono = 0
  const waits: string[] = []
  const clock = {
    ...systemClock,
    mono: () => mono,
    sleep: async (ms: number) => {
      waits.push(`timer ${ms}`)
      mono += ms - earlyMs
    },
    nextTurn: async () => {
      waits.push('turn')
      mono += 0.1
    },
  }
  return { clock, waits, now: () => mono }
}

describe('a wait that is longer than a timer takes', () => {
  const DAYS_40 = 40 * 86_400_000
  afterEach(() => vi.useRealTimers())

  it('is as long as it is, and ends when it is given up', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const ended: string[] = []
    systemClock.timer(DAYS_40, () => ended.push('timer'))
    const disarm = systemClock.timer(DAYS_40, () => ended.push('disarmed'))
    const stop = new AbortController()
    void systemClock.sleep(DAYS_40).then(() => ended.push('sleep'))
    const stopped = systemClock.sleep(DAYS_40, stop.signal)
    await vi.advanceTimersByTimeAsync(DAYS_40 - 1)
    expect(ended).toEqual([])
    disarm()
    stop.abort()
    await expect(stopped).rejects.toThrow()
    await vi.advanceTimersByTimeAsync(1)
    expect(ended).toEqual(['timer', 'sleep'])
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('sleeping until a moment', () => {
  it('waits by a timer for whole milliseconds, and for what is left turn by turn', async () => {
    const { clock, waits, now } = scripted(0)
    await sleepUntil(clock, 10.35)
    expect(waits).toEqual(['timer 10', 'turn', 'turn', 'turn', 'turn'])
    expect(now()).toBeGreaterThanOrEqual(10.35)
  })

  it('is not over early where the timer is', async () => {
    const { clock, now } = scripted(0.8)
    await sleepUntil(clock, 3)
    expect(now()).toBeGreaterThanOrEqual(3)
  })

  it('ends with the reason of its signal between two turns', async () => {
    const { clock } = scripted(0)
    const abort = new AbortController()
    const turn = async (): Promise<void> => abort.abort(new Error('no more'))
    await expect(sleepUntil({ ...clock, nextTurn: turn }, 0.9, abort.signal)).rejects.toThrow('no more')
  })
})

describe('a signal after some time', () => {
  it.each([30 * 86_400_000, 60 * 86_400_000, Number.MAX_SAFE_INTEGER])('of %d ms is not aborted at once', async (ms) => {
    const signal = abortAfter(ms)
    await systemClock.sleep(20)
    expect(signal.aborted).toBe(false)
  })

  it('takes parts of a millisecond', async () => {
    const signal = abortAfter(0.5)
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    expect(signal.aborted).toBe(true)
  })
})
