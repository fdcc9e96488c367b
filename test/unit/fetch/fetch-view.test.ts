import { describe, expect, it } from 'vitest'
import { fetchView, type StallReason, taskViews } from '../../../src/fetch/fetch-view.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import { type PolitenessKey, partitionId } from '../../../src/kernel/brand.ts'

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

describe('what is told of a fetch worker', () => {
  const ELSE = { windowMessages: 20, proxiesOut: [], unwrittenMs: 5 } as const

  /** Sites of every state, with so many tasks that wait. */
  function sites(): Scheduler<QueuedTask> {
    const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 10, maxBytes: 1_000_000 })
    const add = (name: string, count: number): PolitenessKey => {
      const key = name as PolitenessKey
      for (let index = 0; index < count; index += 1) scheduler.add({ ...queuedTask(`${name} ${index}`), key }, 0)
      return key
    }
    /** The turn of the one site that may start. */
    const turn = (): QueuedTask => {
      const next = scheduler.next(0)
      if (next.kind !== 'start') throw new Error('nothing starts')
      return next.task
    }
    add('busy', 3)
    scheduler.admitted(turn(), 0)
    add('asked for', 3)
    turn()
    const asleep = add('asleep', 4)
    scheduler.sleep(asleep, 1_000, 0)
    const site = scheduler.site(asleep)
    if (site !== undefined) site.waitReason = 'back-off'
    // Of these it is not known yet what the limiter says.
    scheduler.sleep(add('soon', 1), 500, 0)
    scheduler.setConcurrency(add('partly busy', 2), 3, 0)
    scheduler.admitted(turn(), 0)
    scheduler.setConcurrency(add('free', 5), 3, 0)
    return scheduler
  }

  it('counts what could start now within the pace of its site: nothing of one that sleeps, is being asked for, or is asked all it may be', () => {
    expect(fetchView(sites(), 0, { ...ELSE, stalledBy: null })).toEqual({
      waiting: 15,
      inFlight: 3,
      sites: 6,
      // One of the site that is partly busy, and three of the free one.
      runnable: 4,
      siteWaits: { 'back-off': 1, rate: 1 },
      stalledBy: null,
      ...ELSE,
    })
  })

  it('counts what sites slept for once that is over', () => {
    const { runnable, siteWaits } = fetchView(sites(), 500, { ...ELSE, stalledBy: null })
    expect([runnable, siteWaits]).toEqual([5, { 'back-off': 1 }])
  })

  it.each<[StallReason, number]>([
    ['disk', 0],
    ['state-store', 0],
    ['registry', 4],
    ['blobs', 4],
  ])('has nothing that could start while all requests are held up, and only then: %s', (stalledBy, runnable) => {
    expect(fetchView(sites(), 0, { ...ELSE, stalledBy })).toMatchObject({ stalledBy, runnable })
  })
})
