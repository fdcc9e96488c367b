import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PolitenessKey } from '../../src/kernel/brand.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { ownProcess } from '../../src/machine/process-identity.ts'
import type { LimiterKey, StateStore } from '../../src/state/state-store.ts'
import { backOff } from '../support/back-off.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { StoreBench } from '../support/state-stores.ts'

/** What an observer from outside has seen of a key; knows nothing of how the limiter counts. */
class Watcher {
  readonly policy: LimiterKey
  readonly starts: number[] = []
  readonly ends: number[] = []
  backOffUntil = 0

  constructor(policy: LimiterKey) {
    this.policy = policy
  }

  /** A request of this key starts at `at` while `inFlight` others run. */
  started(at: number, inFlight: number, counts: boolean): void {
    expect(inFlight).toBeLessThan(this.policy.concurrency)
    expect(at).toBeGreaterThanOrEqual(this.backOffUntil)
    if (!counts) return
    this.starts.push(at)
    const allowed = (fromMs: number): number => this.policy.burst + ((at - fromMs) * this.policy.ratePerSecond) / 1_000 + 1e-6
    for (const [index, start] of this.starts.entries()) expect(this.starts.length - index).toBeLessThanOrEqual(allowed(start))
    for (const end of this.ends) expect(at - end).toBeGreaterThanOrEqual(this.policy.crawlDelayMs - 1e-6)
  }
}

interface Flight {
  readonly leaseId: string
  readonly keys: readonly number[]
  readonly until: number
  readonly counts: boolean
}

type Command =
  | { readonly kind: 'pass'; readonly ms: number }
  /** As long as was last told, or a little less: faults sit at the edge. */
  | { readonly kind: 'pass-told'; readonly lessMs: number }
  | { readonly kind: 'ask'; readonly keys: readonly number[]; readonly leaseMs: number; readonly counts: boolean }
  | { readonly kind: 'release'; readonly which: number }
  | { readonly kind: 'back-off'; readonly key: number; readonly ms: number }

const policyArbitrary = fc.record({
  ratePerSecond: fc.constantFrom(0.7, 1, 3, 10, 1000 / 7),
  burst: fc.constantFrom(1, 1, 2, 5),
  concurrency: fc.integer({ min: 1, max: 3 }),
  crawlDelayMs: fc.constantFrom(0, 0, 130, 1_000),
})

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(1, 7, 50, 100, 333, 1_000) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass-told' as const), lessMs: fc.constantFrom(0, 1, 20) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      keys: fc.uniqueArray(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 3 }),
      leaseMs: fc.constantFrom(80, 900, 5_000),
      counts: fc.constantFrom(true, true, true, false),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('release' as const), which: fc.nat({ max: 9 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('back-off' as const),
      key: fc.integer({ min: 0, max: 2 }),
      ms: fc.constantFrom(10, 400, 2_000),
    }),
  },
)

/** Drives a store by commands and watches it from outside. */
class Drive {
  readonly #handles: readonly StateStore[]
  readonly #clock: ManualClock
  readonly #watchers: readonly Watcher[]
  #flights: Flight[] = []
  #turn = 0
  #toldMs = 0

  constructor(handles: readonly StateStore[], clock: ManualClock, policies: readonly LimiterKey[]) {
    this.#handles = handles
    this.#clock = clock
    this.#watchers = policies.map((policy) => new Watcher(policy))
  }

  get #store(): StateStore {
    this.#turn += 1
    return this.#handles[this.#turn % this.#handles.length]!
  }

  async run(order: Command): Promise<void> {
    if (order.kind === 'pass') return this.pass(order.ms)
    if (order.kind === 'pass-told') return this.pass(Math.max(0, this.#toldMs - order.lessMs))
    if (order.kind === 'ask') return void (await this.#ask(order.keys, order.leaseMs, order.counts))
    if (order.kind === 'release') return this.#release(order.which)
    const watcher = this.#watchers[order.key]!
    await backOff(this.#store, watcher.policy.key, order.ms)
    watcher.backOffUntil = Math.max(watcher.backOffUntil, this.#clock.mono() + order.ms)
  }

  async pass(ms: number): Promise<void> {
    await this.#clock.advance(ms)
    for (const flight of this.#flights.filter(({ until }) => until <= this.#clock.mono())) this.#end(flight, flight.until)
  }

  /** Whoever waits as long as told gets its turn: nobody starves, and no wait is told in vain for ever. */
  async finish(): Promise<void> {
    while (this.#flights.length > 0) await this.#release(0)
    for (const [index, watcher] of this.#watchers.entries()) {
      const before = watcher.starts.length
      for (let tries = 0; watcher.starts.length === before; tries += 1) {
        expect(tries).toBeLessThan(4)
        const waitMs = await this.#ask([index], 1_000, true)
        await this.pass(waitMs)
      }
    }
  }

  async #ask(keys: readonly number[], leaseMs: number, counts: boolean): Promise<number> {
    const now = this.#clock.mono()
    const policies = keys.map((key) => this.#watchers[key]!.policy)
    const answer = await this.#store.acquire({ keys: policies, leaseMs, countsForRate: counts, owner: ownProcess('w') })
    if (answer.kind === 'wait') {
      expect(answer.waitMs).toBeGreaterThanOrEqual(1)
      expect(policies.map(({ key }) => key)).toContain(answer.key)
      this.#toldMs = answer.waitMs
      return answer.waitMs
    }
    for (const key of keys) {
      const inFlight = this.#flights.filter((flight) => flight.keys.includes(key)).length
      this.#watchers[key]!.started(now, inFlight, counts)
    }
    this.#flights.push({ leaseId: answer.leaseId, keys, until: now + leaseMs, counts })
    return 0
  }

  async #release(which: number): Promise<void> {
    const flight = this.#flights[which % Math.max(1, this.#flights.length)]
    if (flight === undefined) return
    const keys = flight.keys.map((key) => this.#watchers[key]!.policy)
    await this.#store.release(flight.leaseId, keys)
    this.#end(flight, this.#clock.mono())
  }

  #end(flight: Flight, at: number): void {
    this.#flights = this.#flights.filter((each) => each !== flight)
    if (flight.counts) for (const key of flight.keys) this.#watchers[key]!.ends.push(at)
  }
}

describe('the limiter', () => {
  const bench = new StoreBench()
  const clock = new ManualClock()
  let handles: StateStore[]
  beforeAll(async () => {
    handles = [await bench.lmdb({ clock, bootId: 'b' }), await bench.lmdb({ clock, bootId: 'b' })]
  })
  afterAll(() => bench.end())

  it('never breaks rate, concurrency, crawl delay or back-off, in any order of asking, releasing, expiring and passing time', async () => {
    let run = 0
    const policies = fc.tuple(policyArbitrary, policyArbitrary, policyArbitrary)
    await fc.assert(
      fc.asyncProperty(policies, fc.array(command, { minLength: 20, maxLength: 60 }), async (paces, orders) => {
        run += 1
        const keys = paces.map((pace, index) => ({ key: `${run}-${index}.example` as PolitenessKey, ...pace }))
        // Two handles of one store take turns: neither may rely on what it remembers itself.
        const drive = new Drive(handles, clock, keys)
        for (const order of orders) await drive.run(order)
        await drive.finish()
      }),
      { numRuns: 40, interruptAfterTimeLimit: 6_000 },
    )
  })
})

describe('the limiter under real concurrency', () => {
  /** Bounds on a request seen from outside: it started between asking and answer, it ended between the call of release and its answer. */
  interface Seen {
    readonly askedAt: number
    readonly answeredAt: number
    readonly releasedAt: number
    readonly releaseDoneAt: number
  }
  const policy = { ratePerSecond: 60, burst: 1, concurrency: 2, crawlDelayMs: 8 }
  const RUN_MS = 1_200
  const WORKERS = 6

  async function work(store: StateStore, key: PolitenessKey, endAt: number, seen: Seen[]): Promise<void> {
    while (performance.now() < endAt) {
      const askedAt = performance.now()
      const answer = await store.acquire({ keys: [{ key, ...policy }], leaseMs: 60_000, countsForRate: true, owner: ownProcess('w') })
      const answeredAt = performance.now()
      if (answer.kind === 'wait') {
        await systemClock.sleep(Math.min(answer.waitMs, 10))
        continue
      }
      await systemClock.sleep(15)
      const releasedAt = performance.now()
      await store.release(answer.leaseId, [{ key, crawlDelayMs: policy.crawlDelayMs }])
      seen.push({ askedAt, answeredAt, releasedAt, releaseDoneAt: performance.now() })
    }
  }

  function check(seen: readonly Seen[]): void {
    // One each 1/rate at most, however many ask.
    expect(seen.length).toBeLessThanOrEqual(1 + ((RUN_MS + 500) * policy.ratePerSecond) / 1_000)
    expect(seen.length).toBeGreaterThan(5)
    for (const one of seen) {
      const certainlyOpen = seen.filter((other) => other.answeredAt <= one.answeredAt && other.releasedAt > one.answeredAt)
      expect(certainlyOpen.length).toBeLessThanOrEqual(policy.concurrency)
      for (const other of seen) {
        if (other === one) continue
        // 2 ms for two clocks that are read at different moments.
        if (other.askedAt >= one.answeredAt) expect(other.answeredAt - one.askedAt).toBeGreaterThanOrEqual(1_000 / policy.ratePerSecond - 2)
        if (other.askedAt >= one.releaseDoneAt) expect(other.answeredAt - one.releasedAt).toBeGreaterThanOrEqual(policy.crawlDelayMs - 2)
      }
    }
  }

  it.each(['redis', 'lmdb'] as const)('holds on %s, with several handles and workers on one key', async (kind) => {
    const bench = new StoreBench()
    try {
      const stores = await Promise.all(Array.from({ length: 3 }, () => bench[kind]()))
      const seen: Seen[] = []
      const endAt = performance.now() + RUN_MS
      await Promise.all(
        Array.from({ length: WORKERS }, (_, index) => work(stores[index % 3]!, `${bench.clusterId}.example` as PolitenessKey, endAt, seen)),
      )
      check(seen)
    } finally {
      await bench.end()
    }
  })
})
