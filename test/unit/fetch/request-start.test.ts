import { describe, expect, it } from 'vitest'
import type { HttpRequest, HttpResult } from '../../../src/fetch/http-exchange.ts'
import { RequestStart } from '../../../src/fetch/request-start.ts'
import { SiteLeases } from '../../../src/fetch/site-leases.ts'
import { StoreGate } from '../../../src/fetch/store-gate.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { ownProcess } from '../../../src/machine/process-identity.ts'
import type { StateStore } from '../../../src/state/state-store.ts'
import { fastPace } from '../../support/fetch-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const LIMITS = { connectMs: 1_000, headersMs: 1_000, idleMs: 1_000, totalMs: 5_000, maxBodyBytes: 1 }
const LEASE_MS = 6_000
const url = new URL('http://a.example/')
/** A request a second, several at once. */
const PACE = { ...fastPace(url), ratePerSecond: 1, burst: 1, concurrency: 4 }
const FAILURE: HttpResult = { kind: 'failure', reason: 'connect-refused', detail: '', totalMs: 0 }

/** A worker whose store gives a lease from now on, and another start whenever it is asked, for as long as `startAgain` does. */
async function worker(
  send: (request: HttpRequest, clock: ManualClock) => Promise<HttpResult>,
  startAgain = async (): Promise<number> => 0,
) {
  const clock = new ManualClock()
  const shared = { clock, observer: silentObserver }
  const gate = new StoreGate({ ...shared, signal: new AbortController().signal })
  const state = {
    acquire: async () => ({ kind: 'lease', leaseId: 'l', startInMs: 0, concurrency: 4, birth: 'b' }),
    startAgain,
    reportLate: async () => undefined,
  } as unknown as StateStore
  const rules = { isAdaptive: true, breakerFailures: 5, firstParkMs: 1_000, maxParkMs: 10_000 }
  const leases = new SiteLeases({ ...shared, state, gate, owner: ownProcess('w'), leaseMs: LEASE_MS, rules })
  const start = new RequestStart({ exchange: { request: (request) => send(request, clock) }, leases, limits: LIMITS, clock })
  const lease = await leases.acquire(PACE, true)
  if (lease.kind !== 'lease') throw new Error(`expected a lease, was told ${lease.reason}`)
  const asked: number[] = []
  const request = () =>
    start.request(lease, new AbortController().signal, () => {
      asked.push(clock.mono())
      return { url, method: 'GET', headers: {}, body: null, keepBody: () => true }
    })
  return { clock, lease, asked, request }
}

const sends = async ({ onSent }: HttpRequest): Promise<HttpResult> => {
  onSent?.()
  return FAILURE
}

describe('the start of a request', () => {
  it('is the moment of its lease, and as far behind the last request of its site as the pace says', async () => {
    const { clock, asked, request } = await worker(sends)
    const first = await request()
    expect(first.asked).toEqual({ result: FAILURE, startedAt: 0, sentMono: 0 })
    const second = request()
    expect(clock.nextAtMs).toBe(1_000)
    await clock.advance(1_000)
    expect((await second).asked?.sentMono).toBe(1_000)
    expect(asked).toEqual([0, 1_000])
  })

  it('is asked for again where the process stood still until others may have been given moments', async () => {
    let again = 0
    const { clock, lease, request } = await worker(sends, async () => {
      again += 1
      return 0
    })
    await clock.advance(500)
    const started = await request()
    expect(again).toBe(1)
    expect(started.lease).toMatchObject({ leaseId: lease.leaseId, beatMono: 500 })
  })

  it('does not come where the lease would not last: nobody is asked', async () => {
    const { clock, asked, request } = await worker(sends)
    await clock.advance(LEASE_MS + 1)
    expect((await request()).asked).toBeUndefined()
    expect(asked).toEqual([])
  })

  it('does not come where the lease ends while a connection is made', async () => {
    const { request } = await worker(async ({ beforeSent }, clock) => {
      await clock.advance(LEASE_MS + 1)
      await beforeSent?.().catch(() => undefined)
      return FAILURE
    })
    expect((await request()).asked).toBeUndefined()
  })

  it('that the store can not give again is a failure of the store, and none of the site', async () => {
    const { request } = await worker(
      async ({ beforeSent }, clock) => {
        await clock.advance(600)
        await beforeSent?.().catch(() => undefined)
        return FAILURE
      },
      async () => {
        throw new Error('no such lease')
      },
    )
    await expect(request()).rejects.toThrow('no such lease')
  })
})
