import { describe, expect, it } from 'vitest'
import { PlaceWaits } from '../../../src/fetch/place-waits.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const queued = (enqueuedAt: number | null): QueuedTask => ({ task: { enqueuedAt } }) as QueuedTask

describe('a task that waits for a place in the page budget of its crawl', () => {
  it('stays in its window for ten seconds from when it first asked, since most pages are at their end by then', async () => {
    const clock = new ManualClock()
    const waits = new PlaceWaits(clock)
    const [first, second] = [queued(null), queued(null)]
    expect(waits.leavesFor(first)).toBeUndefined()
    await clock.advance(9_999)
    expect(waits.leavesFor(first)).toBeUndefined()
    expect(waits.leavesFor(second)).toBeUndefined()
    await clock.advance(1)
    expect(waits.leavesFor(first)).toBe(60_000)
    expect(waits.leavesFor(second)).toBeUndefined()
  })

  it('leaves it for the longer the older it is, an hour at most', async () => {
    const clock = new ManualClock()
    const waits = new PlaceWaits(clock)
    const now = clock.now()
    const tasks = [queued(now - 50_000), queued(now - 590_000), queued(now - 86_400_000)]
    for (const task of tasks) waits.leavesFor(task)
    await clock.advance(10_000)
    expect(tasks.map((task) => waits.leavesFor(task))).toEqual([60_000, 300_000, 3_600_000])
  })
})
