import { describe, expect, it } from 'vitest'
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
  const first = scheduler.next(0)
  if (first.kind !== 'start') throw new Error('nothing starts')
  const lease = { keys: [{ ...pace, burst }], concurrency: 2, startMono: 5 } as unknown as SiteLease
  new Turn({ scheduler, queued: first.task, clock, onChange: () => undefined }).admitted(lease)
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
