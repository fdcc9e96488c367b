import { describe, expect, it } from 'vitest'
import { BodyRoom } from '../../../src/fetch/body-room.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import { type SiteLease, SiteLeases, WAKE_AHEAD_MS } from '../../../src/fetch/site-leases.ts'
import { StoreGate } from '../../../src/fetch/store-gate.ts'
import { Turn } from '../../../src/fetch/turn.ts'
import type { PartitionId, PolitenessKey } from '../../../src/kernel/brand.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import type { WaitReason } from '../../../src/state/state-store.ts'
import { fastPace } from '../../support/fetch-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const KEY = 'shop.example' as PolitenessKey
const task = { key: KEY, lane: 'normal', crawlId: null, window: 'urls:0' as PartitionId } as QueuedTask
const pace = { ...fastPace(new URL('http://shop.example/')), ratePerSecond: 10, concurrency: 2 }

/** When the next task of a site has its turn, ms, behind one that was admitted at 0 and leaves at 5. */
function nextTurn(burst: number): number | undefined {
  const clock = new ManualClock()
  const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 10, maxBytes: 1_000_000 })
  scheduler.add({ ...task }, 0)
  scheduler.add({ ...task }, 0)
  scheduler.setConcurrency(KEY, 2, 0)
  const room = new BodyRoom(() => scheduler.isFull)
  const first = scheduler.next(0)
  if (first.kind !== 'start') throw new Error('nothing starts')
  const lease = { keys: [{ ...pace, burst }], concurrency: 2, startMono: 5 } as unknown as SiteLease
  new Turn({ scheduler, queued: first.task, room, clock, onChange: () => undefined }).admitted(lease)
  const next = scheduler.next(0)
  return next.kind === 'start' ? 0 : next.kind === 'wait' ? next.ms : undefined
}

async function waitFor(reason: WaitReason): Promise<number> {
  const [clock, observer] = [new ManualClock(), silentObserver]
  const leases = new SiteLeases({
    state: { acquire: async () => ({ kind: 'wait', waitMs: 100, reason, key: KEY, concurrency: 2 }) } as never,
    gate: new StoreGate({ clock, observer, signal: new AbortController().signal }),
    owner: { workerId: 'w', host: 'h', pid: 1, pidStartedAt: 's' },
    leaseMs: 1_000,
    rules: { isAdaptive: true, breakerFailures: 5, firstParkMs: 1_000, maxParkMs: 10_000 },
    clock,
    observer,
  })
  const answer = await leases.acquire(pace, true)
  if (answer.kind !== 'wait') throw new Error('it does not wait')
  return answer.waitMs
}

describe('a body that is being received', () => {
  /** Turns whose bodies come; a bound of 1 MB on all of them. */
  function receiving(count: number): { readonly turns: readonly Turn[]; readonly scheduler: Scheduler<QueuedTask> } {
    const clock = new ManualClock()
    const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 3, maxBytes: 1_000_000 })
    const room = new BodyRoom(() => scheduler.isFull)
    scheduler.setConcurrency(KEY, 100, 0)
    const turns = Array.from({ length: count }, () => new Turn({ scheduler, queued: { ...task }, room, clock, onChange: () => undefined }))
    return { turns, scheduler }
  }
  const isOver = async (waiting: Promise<void> | undefined): Promise<boolean> =>
    waiting === undefined || (await Promise.race([waiting.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))]))

  it('counts as it comes, and where too much is in memory most wait until others are done', async () => {
    const { turns, scheduler } = receiving(10)
    expect(turns.map((turn) => turn.receives(90_000))).toEqual(turns.map(() => undefined))
    expect(scheduler.isFull).toBe(false)
    const waiting = turns.map((turn) => turn.receives(200_000))
    // Four were received when it became full, four go on however full it is.
    expect(waiting.map((wait) => wait === undefined)).toEqual([true, true, true, true, true, true, true, true, false, false])
    expect(scheduler.isFull).toBe(true)
    turns[8]?.close()
    expect(await isOver(waiting[9])).toBe(false)
    turns[4]?.close()
    expect(await isOver(waiting[9])).toBe(true)
    for (const turn of turns) turn.close()
    expect(scheduler.isFull).toBe(false)
  })

  it('goes on when there is room again, and when it is given up', async () => {
    const { turns } = receiving(12)
    const waiting = turns.map((turn) => turn.receives(200_000))
    expect(waiting.filter((wait) => wait !== undefined)).toHaveLength(4)
    turns[11]?.close()
    expect(await isOver(waiting[11])).toBe(true)
    for (const turn of turns.slice(0, 4)) turn.holds(0)
    expect(await isOver(waiting[8])).toBe(false)
    for (const turn of turns.slice(4, 8)) turn.holds(0)
    expect(await Promise.all(waiting.map(isOver))).toEqual(waiting.map(() => true))
  })
})

describe('the next turn of a site', () => {
  it('comes a little before its start, since the task has to ask for more than its lease', () => {
    expect(nextTurn(1)).toBe(5 + 100 - WAKE_AHEAD_MS)
  })

  it('comes at once where a burst is allowed', () => {
    expect(nextTurn(2)).toBe(0)
  })

  it('comes before what the limiter waits for, but not before a place is free', async () => {
    expect(await waitFor('rate')).toBe(100 - WAKE_AHEAD_MS)
    expect(await waitFor('crawl-delay')).toBe(100 - WAKE_AHEAD_MS)
    expect(await waitFor('concurrency')).toBe(100)
  })
})
