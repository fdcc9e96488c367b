import { describe, expect, it } from 'vitest'
import { closeOnceRead } from '../../../src/control/replay-ledger.ts'

/** Shape: how often it was tried to close a replay whose last offsets can be read from the given try on, and how long that took, ms. */
async function triesOf(readableFrom: number): Promise<{ tries: number; ms: number }> {
  let [tries, ms] = [0, 0]
  const timer = (after: number, run: () => void): (() => void) => {
    ms += after
    queueMicrotask(run)
    return () => undefined
  }
  await closeOnceRead(
    async () => {
      tries += 1
      return tries >= readableFrom
    },
    { timer },
  )
  return { tries, ms }
}

describe('a replay whose last partition has ended', () => {
  it('is closed at once where its offsets can be read, and else soon after', async () => {
    expect(await triesOf(1)).toEqual({ tries: 1, ms: 0 })
    expect(await triesOf(2)).toEqual({ tries: 2, ms: 500 })
  })

  it('is left to the last of its partitions where others are still at work', async () => {
    expect(await triesOf(1_000)).toEqual({ tries: 4, ms: 7_500 })
  })
})
