import { describe, expect, it } from 'vitest'
import { taskViews } from '../../../src/fetch/fetch-view.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import { partitionId } from '../../../src/kernel/brand.ts'

const URL_TEXT = 'http://a.example/'
const queuedTask = (taskId: string): QueuedTask =>
  ({
    key: 'a.example',
    lane: 'normal',
    crawlId: null,
    window: partitionId('urls', 0),
    target: new URL(URL_TEXT),
    task: { taskId, attempt: 1, crawlId: null, canonicalUrl: URL_TEXT },
  }) as unknown as QueuedTask

describe('what is told of the tasks of a URL', () => {
  it('tells of one that is set aside that a former owner of its partition has it, and for how long at most', () => {
    const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 10, maxBytes: 1_000 })
    scheduler.add(queuedTask('aside'), 0)
    const next = scheduler.next(0)
    if (next.kind !== 'start') throw new Error('nothing starts')
    scheduler.setAside(next.task, 500, 0)
    scheduler.add(queuedTask('waiting'), 0)
    const views = taskViews(scheduler, [], URL_TEXT, 0, {
      unwrittenMs: () => undefined,
      handoverMs: () => 90_000,
      awaitsPlace: () => false,
    })
    expect(views.map(({ taskId, state, handoverMs }) => ({ taskId, state, handoverMs }))).toEqual([
      { taskId: 'aside', state: 'waiting', handoverMs: 90_000 },
      { taskId: 'waiting', state: 'waiting', handoverMs: null },
    ])
  })

  it('tells of one that is set aside for a place in a page budget that it waits for that, though its partition has just come', () => {
    const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 10, maxBytes: 1_000 })
    scheduler.add(queuedTask('aside'), 0)
    const next = scheduler.next(0)
    if (next.kind !== 'start') throw new Error('nothing starts')
    scheduler.setAside(next.task, 500, 0)
    const views = taskViews(scheduler, [], URL_TEXT, 0, {
      unwrittenMs: () => undefined,
      handoverMs: () => 90_000,
      awaitsPlace: () => true,
    })
    expect(views).toMatchObject([{ taskId: 'aside', state: 'waiting', handoverMs: null, awaitsPlace: true }])
  })
})
