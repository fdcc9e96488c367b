import { describe, expect, it } from 'vitest'
import { triedWindows } from '../../../../src/control/trials/tried-windows.ts'

async function* pagesOf(sizes: readonly number[]): AsyncGenerator<number> {
  yield* sizes
}

/** The sizes of what was tried, by window, and how many were worked at the same time. */
async function windowsOf(sizes: readonly number[], limits = { pages: 50, bytes: 1_000 }) {
  let working = 0
  let most = 0
  const run = async (bytes: number): Promise<{ bytes: number }> => {
    working += 1
    most = Math.max(most, working)
    await new Promise((resolve) => setImmediate(resolve))
    working -= 1
    return { bytes }
  }
  const found: number[][] = []
  for await (const window of triedWindows(pagesOf(sizes), run, { atOnce: 3, limits })) found.push(window.map(({ bytes }) => bytes))
  return { found, most }
}

describe('windows of pages that are tried', () => {
  it('hold as many pages as may be, in order, and a few are worked at the same time', async () => {
    const sizes = Array.from({ length: 120 }, (_, index) => index % 7)
    const { found, most } = await windowsOf(sizes)
    expect(found.map(({ length }) => length)).toEqual([50, 50, 20])
    expect(found.flat()).toEqual(sizes)
    expect(most).toBe(4)
  })

  it('end where their records take the memory, and none is empty', async () => {
    expect((await windowsOf([600, 600, 10, 1_000, 5, 5])).found).toEqual([
      [600, 600],
      [10, 1_000],
      [5, 5],
    ])
    expect((await windowsOf([])).found).toEqual([])
  })

  it('give the failure of a page when its turn comes', async () => {
    const windows = triedWindows(pagesOf([1, 2]), () => Promise.reject(new Error('no')), { atOnce: 3, limits: { pages: 9, bytes: 9 } })
    await expect(windows.next()).rejects.toThrow('no')
  })
})
