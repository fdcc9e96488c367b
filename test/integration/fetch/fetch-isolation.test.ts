import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture, fakeExchange, fastPace } from '../../support/fetch-fixture.ts'

const QUICK = 20
const PAGES = 5
const HUGE = 3_000

describe('sites in one partition of one worker', () => {
  let fixture: FetchFixture
  afterEach(() => fixture.close())

  it('are not held up by one with a huge backlog, one that says nothing and one that never ends, which stand before them', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const started = new Map<string, number>()
    const open = new Map<string, (end: object) => void>()
    let isOver = false
    const exchange = fakeExchange(({ url: { hostname } }) => {
      started.set(hostname, (started.get(hostname) ?? 0) + 1)
      if (isOver || (hostname !== 'silent.example' && hostname !== 'dripping.example')) return { body: hostname }
      // Whoever waited for its end would wait for ever: the test ends it.
      return new Promise((resolve) => open.set(hostname, resolve))
    })
    // Few places: two are taken by those that do not end.
    await fixture.fetchWorker(exchange, {
      concurrency: 8,
      paceOf: (url) =>
        url.hostname === 'huge.example'
          ? { ...fastPace(url), ratePerSecond: 1, burst: 1, concurrency: 1 }
          : { ...fastPace(url), concurrency: 1 },
      limits: { connectMs: 60_000, headersMs: 60_000, idleMs: 60_000, totalMs: 60_000, maxBodyBytes: 1_048_576 },
    })
    const pages = (host: string, count: number): { url: string }[] =>
      Array.from({ length: count }, (_, index) => ({ url: `http://${host}/${index}` }))
    const quick = Array.from({ length: QUICK }, (_, index) => `quick${index}.example`)
    await fixture.produce([...pages('silent.example', 100), ...pages('dripping.example', 100), ...pages('huge.example', HUGE)])
    await fixture.produce(quick.flatMap((host) => pages(host, PAGES)))
    const isQuick = (url: string): boolean => new URL(url).hostname.startsWith('quick')
    const outcomes = await eventually(
      async () => {
        const own = (await fixture.outcomes()).filter(({ url }) => isQuick(url))
        return own.length >= QUICK * PAGES ? own : false
      },
      { what: 'the outcomes of the quick sites' },
    )
    // Counted by what has happened: all of theirs, while those two still wait for their first answer and most of the huge one is left.
    expect(outcomes.every(({ kind }) => kind === 'FETCHED')).toBe(true)
    expect(quick.map((host) => started.get(host))).toEqual(quick.map(() => PAGES))
    expect([started.get('silent.example'), started.get('dripping.example')]).toEqual([1, 1])
    expect([...open.keys()].sort()).toEqual(['dripping.example', 'silent.example'])
    expect(started.get('huge.example')).toBeGreaterThan(0)
    expect(started.get('huge.example')).toBeLessThan(HUGE / 10)
    // Those behind them start at once.
    isOver = true
    for (const end of open.values()) end({ body: 'at last' })
  })
})
