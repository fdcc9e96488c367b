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
  const room = new BodyRoom({ isFull: () => scheduler.isFull, maxBytes: 1_000_000, clock })
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
  /** Turns whose bodies come, by default of a site each; a bound of 1 MB on all of them. */
  function receiving(count: number, keyOf = (index: number): string => `site${index}.example`) {
    const clock = new ManualClock()
    const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 3, maxBytes: 1_000_000 })
    const room = new BodyRoom({ isFull: () => scheduler.isFull, maxBytes: 1_000_000, clock })
    const turns = Array.from({ length: count }, (_, index) => {
      const queued = { ...task, key: keyOf(index) as PolitenessKey }
      return new Turn({ scheduler, queued, room, clock, onChange: () => undefined })
    })
    return { turns, scheduler, clock, room }
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

  it('is given up where it hardly comes while no other can start, the largest first, and only until there is room', async () => {
    const { turns, scheduler, clock } = receiving(8)
    const givenUp: number[] = []
    const receive = (index: number, bytes: number): unknown =>
      turns[index]?.receives(bytes, () => {
        givenUp.push(index)
        turns[index]?.close()
      })
    for (const index of turns.keys()) receive(index, 135_000 + index)
    expect(scheduler.isFull).toBe(true)
    // A byte now and then keeps it from timing out. Four are read on; the others wait, which is no fault of theirs.
    for (const index of turns.keys()) receive(index, 135_010 + index)
    await clock.advance(5_000)
    expect(givenUp).toEqual([7, 2])
    expect(scheduler.isFull).toBe(false)
    await clock.advance(60_000)
    expect(givenUp).toEqual([7, 2])
  })

  it('is not given up while it comes well, while it waits for room, nor when it is all there', async () => {
    const { turns, clock } = receiving(6)
    let givenUpCount = 0
    const giveUp = (): void => {
      givenUpCount += 1
    }
    // All there, and about to be unpacked.
    void turns[0]?.receives(900_000)
    for (const turn of turns.slice(1)) void turn.receives(200_000, giveUp)
    for (let bytes = 300_000; bytes < 1_000_000; bytes += 100_000) {
      const held = turns.slice(1).map((turn, index) => (index === 4 ? 'waits' : turn.receives(bytes, giveUp)))
      expect(held).toEqual([undefined, undefined, undefined, undefined, 'waits'])
      await clock.advance(5_000)
    }
    expect(givenUpCount).toBe(0)
    for (const turn of turns) turn.close()
  })

  it('is not given up for a standstill of this process', async () => {
    const { turns, clock } = receiving(1)
    let givenUpCount = 0
    void turns[0]?.receives(1_000_000, () => {
      givenUpCount += 1
    })
    await clock.standStill(60_000)
    expect(givenUpCount).toBe(0)
    await clock.advance(5_000)
    expect(givenUpCount).toBe(1)
  })

  it('leaves half of the room to other sites that have bodies too: of one that has its share one is read on', async () => {
    const { turns, scheduler } = receiving(6, (index) => (index < 5 ? 'large.example' : 'other.example'))
    expect(turns[5]?.receives(140_000)).toBe(undefined)
    const waiting = turns.slice(0, 5).map((turn) => turn.receives(170_000))
    expect(waiting.map((wait) => wait === undefined)).toEqual([true, true, true, false, false])
    expect(scheduler.isFull).toBe(false)
    expect(turns[2]?.receives(200_000)).toBe(undefined)
    expect(turns[5]?.receives(200_000)).toBe(undefined)
    turns[2]?.close()
    turns[1]?.close()
    turns[0]?.close()
    expect(await Promise.all(waiting.map(isOver))).toEqual([true, true, true, true, true])
  })

  it('takes all of the room where no other site has a body to receive', async () => {
    const { turns, scheduler } = receiving(6, () => 'large.example')
    const waiting = turns.map((turn) => turn.receives(190_000))
    expect(scheduler.isFull).toBe(true)
    // The last made it full; four are read on from there.
    expect(waiting).toEqual(turns.map(() => undefined))
    for (const turn of turns) turn.close()
    expect(await Promise.all(waiting.map(isOver))).toEqual(turns.map(() => true))
  })

  it('leaves no timer behind', () => {
    const { turns, clock, room } = receiving(1)
    void turns[0]?.receives(1_000_000)
    expect(clock.armedCount).toBe(1)
    room.close()
    expect(clock.armedCount).toBe(0)
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
