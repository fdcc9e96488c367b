import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AdmissionDesk, type AdmissionOptions } from '../../../src/fetch/admission.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import type { SiteLease } from '../../../src/fetch/site-leases.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import type { StateStore } from '../../../src/state/state-store.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { StoreBench } from '../../support/state-stores.ts'

const BUDGETS = ['crawl', 'domain']

/** Tasks of one crawl that may fetch so many pages; all else admits them. */
function deskOf(state: StateStore, clock: ManualClock, limit: number): AdmissionDesk {
  return new AdmissionDesk({
    handover: { isElsewhere: async () => false },
    paceOf: () => ({ key: 'a.example', ratePerSecond: 1, burst: 1, concurrency: 1, crawlDelayMs: 0, isPaused: false }),
    robotsOf: async () => ({ kind: 'allowed', verdict: 'allowed', rule: null, crawlDelayMs: 0 }),
    exchange: { proxiesBackInMs: () => 0 },
    budgetsOf: () => BUDGETS.map((id) => ({ id, limit, reason: `max-pages of ${id}` })),
    holdMs: 60_000,
    isCrawlStopped: () => false,
    state,
    gate: { run: (step: () => unknown) => step() },
    leases: { acquire: async () => ({ kind: 'lease' }) as unknown as SiteLease },
    addressOf: async () => undefined,
    crawlDelayMaxMs: 60_000,
    giveUpMs: 0,
    observer: silentObserver,
    clock,
  } as unknown as AdmissionOptions)
}

const queued = (taskId: string): QueuedTask =>
  ({
    entry: { isCurrent: () => true },
    task: { taskId, attempt: 1, crawlId: 'c', expiresAt: null },
    target: new URL('https://a.example/'),
    walk: { hops: 0 },
    checkedMono: 0,
  }) as unknown as QueuedTask

let bench: StoreBench
beforeEach(() => {
  bench = new StoreBench()
})
afterEach(() => bench.end())

describe('the page budget of a crawl', () => {
  it('lets a task wait while its last place may be given back, and has it fetched in the stead of one that failed', async () => {
    const clock = new ManualClock()
    const store = await bench.lmdb({ clock })
    const desk = deskOf(store, clock, 2)
    expect(await desk.ask(queued('fetched'))).toMatchObject({ kind: 'admitted' })
    await store.keepPlaces('fetched', BUDGETS)
    // It fails, and is tried again later.
    expect(await desk.ask(queued('failing'))).toMatchObject({ kind: 'admitted' })
    expect(await desk.ask(queued('third'))).toEqual({ kind: 'no-place' })
    await store.unreserve('failing', BUDGETS)
    expect(await desk.ask(queued('third'))).toMatchObject({ kind: 'admitted' })
  })

  it('refuses a task once as many pages are fetched', async () => {
    const clock = new ManualClock()
    const store = await bench.lmdb({ clock })
    const desk = deskOf(store, clock, 1)
    await desk.ask(queued('fetched'))
    await store.keepPlaces('fetched', BUDGETS)
    expect(await desk.ask(queued('second'))).toEqual({ kind: 'ended', end: { kind: 'REFUSED', reason: 'max-pages of crawl' } })
  })
})
