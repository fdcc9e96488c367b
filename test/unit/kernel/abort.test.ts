import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { unlessAborted } from '../../../src/kernel/abort.ts'
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
