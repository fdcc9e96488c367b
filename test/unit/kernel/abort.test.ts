import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { AbortListeners, unlessAborted } from '../../../src/kernel/abort.ts'
import { systemClock } from '../../../src/kernel/clock.ts'

const never = (): Promise<never> => new Promise(() => undefined)

describe('work that a signal may cut short', () => {
  it('gives what it gives, and leaves no listener behind', async () => {
    const { signal } = new AbortController()
    expect(await unlessAborted(signal, async () => 7)).toBe(7)
    await expect(unlessAborted(signal, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('is not waited for when the signal comes', async () => {
    const ending = new AbortController()
    const result = unlessAborted(ending.signal, never)
    ending.abort(new Error('the end'))
    await expect(result).rejects.toThrow('the end')
    expect(getEventListeners(ending.signal, 'abort')).toEqual([])
  })

  it('may fail later, and nobody hears of it', async () => {
    const ending = new AbortController()
    let fail = (_: Error): void => undefined
    const work = new Promise<never>((_, reject) => {
      fail = reject
    })
    const result = unlessAborted(ending.signal, () => work)
    ending.abort(new Error('the end'))
    await expect(result).rejects.toThrow('the end')
    fail(new Error('too late'))
    // A rejection that nobody handles would end the run of the tests.
    await systemClock.nextTurn()
  })

  it('is not begun after it', async () => {
    let begun = 0
    const work = async (): Promise<void> => {
      begun += 1
    }
    await expect(unlessAborted(AbortSignal.abort(new Error('the end')), work)).rejects.toThrow('the end')
    expect(begun).toBe(0)
  })
})

describe('many calls that wait for one signal', () => {
  it('are told of it by one listener, those that have not left', () => {
    const ending = new AbortController()
    const listeners = new AbortListeners()
    const told: number[] = []
    const leave = [1, 2, 3].map((name) => listeners.add(ending.signal, () => told.push(name)))
    expect(getEventListeners(ending.signal, 'abort')).toHaveLength(1)
    leave[1]?.()
    ending.abort()
    expect(told).toEqual([1, 3])
    for (const back of leave) back()
    expect(getEventListeners(ending.signal, 'abort')).toEqual([])
  })

  it('leave nothing on the signal once the last has left, and may come again', () => {
    const { signal } = new AbortController()
    const listeners = new AbortListeners()
    const [first, second] = [listeners.add(signal, () => undefined), listeners.add(signal, () => undefined)]
    first()
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    second()
    expect(getEventListeners(signal, 'abort')).toEqual([])
    listeners.add(signal, () => undefined)
    second()
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  })

  it('are not told where one that is told first takes them back', () => {
    const ending = new AbortController()
    const listeners = new AbortListeners()
    const told: string[] = []
    let leaveOther = (): void => undefined
    listeners.add(ending.signal, () => {
      told.push('first')
      leaveOther()
    })
    leaveOther = listeners.add(ending.signal, () => told.push('other'))
    ending.abort()
    expect(told).toEqual(['first'])
  })
})
