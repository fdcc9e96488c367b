import { afterEach, describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../../src/kernel/clock.ts'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture, fakeExchange } from '../../support/fetch-fixture.ts'
import { httpResponse } from '../../support/http-response.ts'

const SITES = 6
/** Longer than requests are watched before their number changes. */
const WINDOW_MS = 5_000

let fixture: FetchFixture
afterEach(() => fixture.close())

describe('a fetch worker', () => {
  it('learns how loaded it is from its own requests: how long sites take to answer, and how many of them are retries', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    let aheadMs = 0
    const clock: Clock = { ...systemClock, mono: () => systemClock.mono() + aheadMs }
    let ttfbMs = 100
    await fixture.fetchWorker(
      fakeExchange(() => httpResponse(200, { 'content-type': 'text/html' }, { ttfbMs })),
      { clock, concurrency: 20 },
    )
    let asked = 0
    const ask = async (count: number, attempt: number): Promise<void> => {
      const urls = Array.from({ length: count }, (_, index) => `http://s${index % SITES}.example/${asked + index}`)
      asked += count
      await fixture.produce(urls.map((url) => ({ url, attempt })))
      await eventually(() => fixture.finalOutcomes(asked), { everyMs: 50, what: `${asked} outcomes` })
    }
    await ask(4 * SITES, 1)
    expect(fixture.seen.count('ConcurrencyAdapted')).toBe(0)
    ttfbMs = 1_000
    const areFewer = async (): Promise<boolean> => {
      await ask(SITES, 1)
      aheadMs += WINDOW_MS
      return fixture.seen.count('ConcurrencyAdapted', { limit: 14 }) === 1
    }
    await eventually(areFewer, { what: 'a third fewer requests at the same time' })
    expect(fixture.seen.count('LowLaneHeld')).toBe(0)
    await ask(asked + 50, 2)
    expect(fixture.seen.count('LowLaneHeld')).toBe(1)
  })
})
