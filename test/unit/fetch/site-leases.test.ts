import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SiteLeases } from '../../../src/fetch/site-leases.ts'
import { StoreGate } from '../../../src/fetch/store-gate.ts'
import type { PolitenessKey } from '../../../src/kernel/brand.ts'
import { type Clock, systemClock } from '../../../src/kernel/clock.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { ownProcess } from '../../../src/machine/process-identity.ts'
import type { StateStore } from '../../../src/state/state-store.ts'
import { fastPace } from '../../support/fetch-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { StoreBench } from '../../support/state-stores.ts'

const PACE = { ...fastPace(new URL('http://a.example/')), resetAt: 1_000 }
const YEAR_MS = 31_536_000_000

/** A worker, as the limiter sees it. */
function worker(state: StateStore, name: string, clock: Clock = systemClock): SiteLeases {
  const shared = { clock, observer: silentObserver }
  const gate = new StoreGate({ ...shared, signal: new AbortController().signal })
  const rules = { isAdaptive: true, breakerFailures: 5, firstParkMs: 1_000, maxParkMs: 10_000 }
  return new SiteLeases({ ...shared, state, gate, owner: ownProcess(name), leaseMs: 60_000, rules })
}

/** One request whose answer asks for a year. */
async function backsOff(leases: SiteLeases, pace = PACE): Promise<void> {
  const lease = await leases.acquire(pace, true)
  if (lease.kind !== 'lease') throw new Error(`expected a lease, was told ${lease.reason}`)
  await leases.release(lease, { kind: 'overload', backOffMs: YEAR_MS, isAsked: true })
}

describe('a site that was reset', () => {
  let bench: StoreBench
  let state: StateStore
  beforeEach(async () => {
    bench = new StoreBench()
    state = await bench.lmdb()
  })
  afterEach(() => bench.end())

  it('is asked again by the worker that had learnt its back-off, and by any other', async () => {
    const [first, second] = [worker(state, 'first'), worker(state, 'second')]
    await backsOff(first)
    expect(await first.acquire(PACE, true)).toMatchObject({ kind: 'wait', reason: 'retry-after' })
    const reset = { ...PACE, resetAt: 2_000 }
    expect(await first.acquire(reset, true)).toMatchObject({ kind: 'lease' })
    expect(await second.acquire(reset, true)).toMatchObject({ kind: 'lease' })
  })

  it('keeps what it said after that, whichever worker asks', async () => {
    const [first, second] = [worker(state, 'first'), worker(state, 'second')]
    await backsOff(first)
    const reset = { ...PACE, resetAt: 2_000 }
    await backsOff(second, reset)
    // The first had learnt the other one, and starts anew.
    for (const leases of [first, second, worker(state, 'third')])
      expect(await leases.acquire(reset, true)).toMatchObject({ kind: 'wait', reason: 'retry-after' })
  })
})

describe('a store that loses its memory', () => {
  const benches: StoreBench[] = []
  afterEach(() => Promise.all(benches.splice(0).map((bench) => bench.end())))
  /** As it comes back: with nothing in it. */
  const emptyStore = (clock: Clock): Promise<StateStore> => {
    const bench = new StoreBench()
    benches.push(bench)
    return bench.lmdb({ clock, warmUp: true })
  }

  it('hears once what a worker knows, each time that it was lost, whatever still warms up', async () => {
    const clock = new ManualClock()
    let store = await emptyStore(clock)
    const told: string[] = []
    const state = {
      acquire: (...args: Parameters<StateStore['acquire']>) => store.acquire(...args),
      release: (...args: Parameters<StateStore['release']>) => store.release(...args),
      reassert: (...[key, ...rest]: Parameters<StateStore['reassert']>) => {
        told.push(key)
        return store.reassert(key, ...rest)
      },
    } as StateStore
    const leases = worker(state, 'first', clock)
    const site = (name: string, crawlDelayMs: number) => ({ ...PACE, key: name as PolitenessKey, crawlDelayMs })
    const [quick, slow, slower] = [site('quick', 0), site('slow', 60_000), site('slower', 90_000)] as const
    await clock.advance(1_000)
    await backsOff(leases, quick)
    for (const _ of [1, 2]) {
      // Twice without a lease in between.
      await clock.advance(5_000)
      store = await emptyStore(clock)
      told.length = 0
      for (const pace of [slow, slower, slow]) expect(await leases.acquire(pace, true)).toMatchObject({ reason: 'warm-up' })
      expect(told).toEqual(['quick'])
      expect(await store.limiterState(quick.key)).toMatchObject({ isAsked: true })
    }
    await clock.advance(2_000)
    expect(await leases.acquire(site('other', 0), true)).toMatchObject({ kind: 'lease' })
    expect(await leases.acquire(slow, true)).toMatchObject({ reason: 'warm-up' })
    expect(told).toEqual(['quick'])
  })
})

describe('a store whose memory is served by another server, or by one that was started anew', () => {
  let bench: StoreBench
  beforeEach(() => {
    bench = new StoreBench()
  })
  afterEach(() => bench.end())

  it('hears the back-offs again that it may have lost, and nothing that others may have found out better since', async () => {
    const clock = new ManualClock()
    const store = await bench.lmdb({ clock })
    let server = 'first'
    const told: unknown[] = []
    const state = {
      acquire: async (...args: Parameters<StateStore['acquire']>) => ({ ...(await store.acquire(...args)), server }),
      release: (...args: Parameters<StateStore['release']>) => store.release(...args),
      reassert: async (...[key, known]: Parameters<StateStore['reassert']>) => void told.push([key, known]),
    } as unknown as StateStore
    const leases = worker(state, 'first', clock)
    const site = (name: string) => ({ ...PACE, key: name as PolitenessKey })
    await backsOff(leases, site('asked'))
    const slowed = await leases.acquire(site('slowed'), true)
    if (slowed.kind !== 'lease') throw new Error('expected a lease')
    await leases.release(slowed, { kind: 'overload' })
    await leases.acquire(site('other'), true)
    expect(told).toEqual([])
    server = 'second'
    for (const name of ['another', 'third']) await leases.acquire(site(name), true)
    expect(told).toEqual([['asked', { backOffMs: YEAR_MS, isAsked: true, allowed: null, rateFactor: 1, trips: 0, parkedMs: 0 }]])
  })
})

describe('a store that is away while a request ends', () => {
  let bench: StoreBench
  beforeEach(() => {
    bench = new StoreBench()
  })
  afterEach(() => bench.end())

  it('counts the crawl delay and the back-off from the end of the request, not from its return', async () => {
    const clock = new ManualClock()
    const store = await bench.lmdb({ clock })
    let isAway = false
    const away = (): Promise<never> => Promise.reject(new MillraceError('STATE_UNAVAILABLE', 'away'))
    const state = {
      acquire: (...args: Parameters<StateStore['acquire']>) => store.acquire(...args),
      release: (...args: Parameters<StateStore['release']>) => (isAway ? away() : store.release(...args)),
    } as StateStore
    const leases = worker(state, 'first', clock)
    const pace = { ...PACE, crawlDelayMs: 60_000 }
    const lease = await leases.acquire(pace, true)
    if (lease.kind !== 'lease') throw new Error(`expected a lease, was told ${lease.reason}`)
    isAway = true
    const released = leases.release(lease, { kind: 'overload', backOffMs: 30_000, isAsked: true })
    await clock.advance(20_000)
    isAway = false
    await clock.advance(1_000)
    // Asked again within a second.
    const closed = await released
    expect(closed).toMatchObject({ reason: 'retry-after' })
    expect(closed!.forMs).toBeLessThan(10_000)
    await clock.advance(10_000)
    const wait = await leases.acquire(pace, true)
    expect(wait).toMatchObject({ kind: 'wait', reason: 'crawl-delay' })
    expect(wait.kind === 'wait' && wait.waitMs < 30_000).toBe(true)
  })
})
