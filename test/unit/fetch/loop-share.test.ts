import { describe, expect, it } from 'vitest'
import { LoopShare } from '../../../src/fetch/loop-share.ts'
import { systemClock } from '../../../src/kernel/clock.ts'

/** Work of so many ms each, all of which comes at once, by a clock that only work moves. Shape: what was done in each turn of the loop. */
async function turnsOf(works: readonly number[]): Promise<number[][]> {
  let now = 0
  const share = new LoopShare({ ...systemClock, mono: () => now })
  const turns: number[][] = [[]]
  let isOver = false
  const count = (): void => {
    if (isOver) return
    turns.push([])
    setImmediate(count)
  }
  setImmediate(count)
  const work = async (ms: number): Promise<void> => {
    now += ms
    turns.at(-1)?.push(ms)
  }
  await Promise.all(works.map((ms) => share.run(() => work(ms))))
  isOver = true
  return turns.filter((done) => done.length > 0)
}

describe('the share of the event loop', () => {
  it('lets short work through at once', async () => {
    expect(await turnsOf([0.5, 0.5, 0.5])).toEqual([[0.5, 0.5, 0.5]])
  })

  it('ends a turn when its work has taken long enough, and does all of it in order', async () => {
    const works = Array.from({ length: 20 }, (_, index) => 1 + index / 100)
    const turns = await turnsOf(works)
    expect(turns.flat()).toEqual(works)
    expect(Math.max(...turns.map((done) => done.length))).toBeLessThanOrEqual(4)
    expect(turns.length).toBeGreaterThanOrEqual(5)
  })

  it('does not stop at work that is longer than its share', async () => {
    expect((await turnsOf([50, 50, 50])).flat()).toEqual([50, 50, 50])
  })

  it('begins at once in a later turn', async () => {
    let now = 0
    const share = new LoopShare({ ...systemClock, mono: () => now })
    const begun: string[] = []
    const begin = (name: string): Promise<void> =>
      share.run(async () => {
        begun.push(name)
        now += 100
      })
    const both = [begin('first'), begin('second')]
    expect(begun).toEqual(['first'])
    await Promise.all(both)
    await new Promise((resolve) => setImmediate(resolve))
    const third = begin('third')
    expect(begun).toEqual(['first', 'second', 'third'])
    await third
  })
})
