import { describe, expect, it } from 'vitest'
import type { FailureReason, HttpResult } from '../../../src/fetch/http-exchange.ts'
import { LoadControl } from '../../../src/fetch/load-control.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import { type PolitenessKey, partitionId } from '../../../src/kernel/brand.ts'
import { httpResponse } from '../../support/http-response.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const MAX = 200
const SITES = 40

const site = (index: number): PolitenessKey => `s${index}` as PolitenessKey
const lowTask = (index: number): QueuedTask =>
  ({ key: site(index), lane: 'low', crawlId: null, window: partitionId('urls.low', 0) }) as unknown as QueuedTask

/** What is usual differs from site to site. */
const usualMs = (index: number): number => 20 + index * 10
const answer = (ttfbMs: number, connectMs = 0): HttpResult => httpResponse(200, {}, { ttfbMs, connectMs, totalMs: ttfbMs + 1 })
const failure = (reason: FailureReason, totalMs: number): HttpResult => ({ kind: 'failure', reason, detail: '', totalMs })

function open() {
  const clock = new ManualClock()
  const scheduler = new Scheduler<QueuedTask>({ maxInFlight: MAX, maxBytes: 1 })
  const seen = recordingObserver()
  const load = new LoadControl({ scheduler, maxInFlight: MAX, observer: seen.observer, clock })
  /** Every site ends a request each second, for so many seconds. */
  const answers = async (seconds: number, resultOf: (index: number) => HttpResult): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      for (let index = 0; index < SITES; index += 1) load.answered(site(index), resultOf(index))
      await clock.advance(1_000)
    }
  }
  /** Tasks of the low lane that start at the same time where nothing else does. */
  const lowStarts = (): number => {
    const now = clock.mono()
    for (let index = 0; index < 2 * MAX; index += 1) scheduler.add(lowTask(index), now)
    const started: QueuedTask[] = []
    for (let next = scheduler.next(now); next.kind === 'start'; next = scheduler.next(now)) started.push(next.task)
    for (const task of started) scheduler.dropped(task, now)
    return started.length
  }
  const starts = (count: number, attempt: number): void => {
    for (let index = 0; index < count; index += 1) load.started(attempt)
  }
  const limits = (): readonly unknown[] =>
    seen.events.filter(({ event }) => event === 'ConcurrencyAdapted').map(({ fields }) => fields.limit)
  return { scheduler, seen, answers, lowStarts, starts, limits }
}

describe('requests at the same time', () => {
  it('are fewer while sites take two and a half times as long as is usual for each of them, and as many as before afterwards', async () => {
    const { scheduler, seen, answers, limits } = open()
    await answers(30, (index) => answer(usualMs(index)))
    expect([scheduler.maxInFlight, limits()]).toEqual([MAX, []])
    await answers(12, (index) => answer(2.5 * usualMs(index)))
    expect(scheduler.maxInFlight).toBeLessThan(MAX)
    expect(limits().at(-1)).toBe(scheduler.maxInFlight)
    expect(seen.events[0]).toEqual({ event: 'ConcurrencyAdapted', fields: { limit: MAX * 0.7, slowdown: expect.closeTo(2.5, 0) } })
    await answers(120, (index) => answer(usualMs(index)))
    expect([scheduler.maxInFlight, limits().at(-1)]).toEqual([MAX, MAX])
  })

  it.each(['headers-timeout', 'total-timeout'] as const)('are fewer while sites do not answer in time: %s', async (reason) => {
    const { scheduler, answers } = open()
    await answers(30, (index) => answer(usualMs(index)))
    await answers(12, () => failure(reason, 5_000))
    expect(scheduler.maxInFlight).toBeLessThan(MAX)
  })

  it.each<[string, (index: number) => HttpResult]>([
    ['connections that take long to be made', (index) => answer(usualMs(index) + 5_000, 5_000)],
    ['connections that are never made', () => failure('connect-timeout', 5_000)],
    ['names that are not found for long', () => failure('dns-failed', 5_000)],
    ['bodies that come slowly', () => failure('body-timeout', 5_000)],
  ])('are as many as they were for %s', async (_, resultOf) => {
    const { scheduler, answers, limits } = open()
    await answers(30, (index) => answer(usualMs(index)))
    await answers(30, resultOf)
    expect([scheduler.maxInFlight, limits()]).toEqual([MAX, []])
  })
})

describe('the low lane', () => {
  it('keeps a tenth of the places while most requests are retries, and has all of them again afterwards', () => {
    const { seen, lowStarts, starts } = open()
    starts(15, 1)
    expect(lowStarts()).toBe(MAX)
    starts(60, 2)
    expect(lowStarts()).toBe(MAX / 10)
    // Said when it is seen, of the fifty requests from which on anything is.
    expect(seen.events).toEqual([{ event: 'LowLaneHeld', fields: { share: 0.7 } }])
    starts(150, 1)
    expect(lowStarts()).toBe(MAX)
    expect(seen.events.map(({ event }) => event)).toEqual(['LowLaneHeld', 'LowLaneReleased'])
  })
})
