import { describe, expect, it } from 'vitest'
import { PlaceWaits } from '../../../src/fetch/place-waits.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const queued = (crawlId = 'c', enqueuedAt: number | null = 0): QueuedTask => ({ crawlId, task: { enqueuedAt } }) as QueuedTask

describe('a task that waits for a place in the page budget of its crawl', () => {
  it('stays in its window for five seconds from when it first asked, since most pages are at their end by then', async () => {
    const clock = new ManualClock()
    const waits = new PlaceWaits(clock)
    const [first, second] = [queued(), queued()]
    expect(waits.leavesFor(first)).toBeUndefined()
    await clock.advance(4_999)
    expect(waits.leavesFor(first)).toBeUndefined()
    expect(waits.leavesFor(second)).toBeUndefined()
    await clock.advance(1)
    expect(waits.leavesFor(first)).toBe(10_000)
    expect(waits.leavesFor(second)).toBeUndefined()
    expect([waits.has(first), waits.has(second)]).toEqual([false, true])
  })

  it('leaves it at once where eight of its crawl wait there, until one of them waits no more', () => {
    const waits = new PlaceWaits(new ManualClock())
    const tasks = Array.from({ length: 9 }, () => queued())
    const [first, second] = tasks as [QueuedTask, QueuedTask]
    expect(tasks.map((task) => waits.leavesFor(task))).toEqual([...Array.from({ length: 8 }, () => undefined), 10_000])
    expect(waits.leavesFor(first)).toBeUndefined()
    expect(waits.leavesFor(queued('other'))).toBeUndefined()
    waits.ended(second)
    expect(waits.leavesFor(queued())).toBeUndefined()
    expect(waits.leavesFor(queued())).toBe(10_000)
  })

  it('leaves it for the longer the longer it may have waited with its crawl, an hour at most, and begins anew once nobody has asked for two', async () => {
    const clock = new ManualClock()
    const waits = new PlaceWaits(clock)
    const kept = Array.from({ length: 8 }, () => queued())
    for (const task of kept) waits.leavesFor(task)
    const leaves = async (afterMs: number): Promise<number | undefined> => {
      await clock.advance(afterMs)
      return waits.leavesFor(queued())
    }
    expect([await leaves(10_000), await leaves(30_000), await leaves(7_000_000), await leaves(7_000_000)]).toEqual([
      10_000, 20_000, 3_520_000, 3_600_000,
    ])
    expect([waits.leavesFor(queued('c', clock.now() - 60_000)), waits.leavesFor(queued('c', null))]).toEqual([30_000, 10_000])
    await clock.advance(7_200_000)
    waits.leavesFor(queued('other'))
    for (const task of kept) expect(waits.leavesFor(task)).toBeUndefined()
    expect(waits.leavesFor(queued())).toBe(10_000)
  })
})
