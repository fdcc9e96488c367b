import { describe, expect, it } from 'vitest'
import { batches } from '../../../../src/control/crawls/batches.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

/** A source that gives what it is told, when it is told. */
function manualSource() {
  const waiting: ((result: IteratorResult<number>) => void)[] = []
  const failing: ((error: Error) => void)[] = []
  let returned = false
  const source: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({
      next: () =>
        new Promise((resolve, reject) => {
          waiting.push(resolve)
          failing.push(reject)
        }),
      return: async () => {
        returned = true
        return { done: true, value: undefined }
      },
    }),
  }
  return {
    source,
    give: async (value: number) => {
      waiting.shift()?.({ done: false, value })
      failing.shift()
      await new Promise((resolve) => setImmediate(resolve))
    },
    fail: () => failing.shift()?.(new Error('broken pipe')),
    wasReturned: () => returned,
  }
}

function collect(source: AsyncIterable<number> | Iterable<number>, signal?: AbortSignal) {
  const clock = new ManualClock()
  const got: (readonly number[])[] = []
  const options = { size: 3, lingerMs: 100, clock, ...(signal === undefined ? {} : { signal }) }
  const done = (async () => {
    for await (const batch of batches(source, options)) got.push(batch)
  })()
  return { clock, got, done }
}

describe('batches', () => {
  it('are full but for the last, in order', async () => {
    const { got, done, clock } = collect([1, 2, 3, 4, 5, 6, 7])
    await done
    expect(got).toEqual([[1, 2, 3], [4, 5, 6], [7]])
    expect(clock.armedCount).toBe(0)
  })

  it('are none of an empty source, and none is empty', async () => {
    const empty = collect([])
    await empty.done
    expect(empty.got).toEqual([])
    const even = collect([1, 2, 3])
    await even.done
    expect(even.got).toEqual([[1, 2, 3]])
  })

  it('are given as they are when the source is slow', async () => {
    const { source, give } = manualSource()
    const { clock, got } = collect(source)
    await clock.advance(1000)
    await give(1)
    await clock.advance(99)
    expect(got).toEqual([])
    await clock.advance(1)
    expect(got).toEqual([[1]])
    await give(2)
    await give(3)
    await give(4)
    expect(got).toEqual([[1], [2, 3, 4]])
  })

  it('end at a signal with what was read, though the source is silent', async () => {
    const { source, give, wasReturned } = manualSource()
    const stop = new AbortController()
    const { got, done, clock } = collect(source, stop.signal)
    await give(1)
    stop.abort()
    await done
    expect(got).toEqual([[1]])
    expect(wasReturned()).toBe(true)
    expect(clock.armedCount).toBe(0)
  })

  it('are none after a signal', async () => {
    const { got, done } = collect([1, 2, 3], AbortSignal.abort())
    await done
    expect(got).toEqual([])
  })

  it('fail as the source fails', async () => {
    const { source, give, fail } = manualSource()
    const { done } = collect(source)
    await give(1)
    fail()
    await expect(done).rejects.toThrow('broken pipe')
  })

  it('survive a source that fails after a signal', async () => {
    const { source, fail } = manualSource()
    const stop = new AbortController()
    const { got, done } = collect(source, stop.signal)
    await new Promise((resolve) => setImmediate(resolve))
    stop.abort()
    await done
    // A rejection that nobody handles would fail this test file.
    fail()
    await new Promise((resolve) => setImmediate(resolve))
    expect(got).toEqual([])
  })
})
