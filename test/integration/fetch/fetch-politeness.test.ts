import { afterEach, describe, expect, it } from 'vitest'
import { createAddressBook } from '../../../src/fetch/address-book.ts'
import { HttpClient } from '../../../src/fetch/http-client.ts'
import type { HttpExchange, HttpRequest } from '../../../src/fetch/http-exchange.ts'
import { SPILL_LIMITS } from '../../../src/fetch/spill.ts'
import type { PolitenessKey } from '../../../src/kernel/brand.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { isMillraceError } from '../../../src/kernel/errors.ts'
import type { SiteOverride } from '../../../src/message/site-override.ts'
import { createPolicy, type SitePolicy } from '../../../src/politeness/policy.ts'
import type { LimiterRequest, StateStore } from '../../../src/state/state-store.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeAnswer, FetchFixture, fakeExchange, fastPace, TestSite } from '../../support/fetch-fixture.ts'
import { expectInTime } from '../../support/in-time.ts'
import { OwnRedis } from '../../support/own-redis.ts'

const QUICK_SPILL = { ...SPILL_LIMITS, maxWaitMs: 300 }
const paced = (change: Partial<SitePolicy>) => (url: URL) => ({ ...fastPace(url), burst: 1, concurrency: 1, ...change })
/**
 * Where several may run a request that is late leaves all the same, since asking again costs a turn on any busy machine: by a tenth of the
 * gap, and by almost half of it where its connection had to be made. Workers that share a site see that of each other; 5 ms for timers.
 */
const leastGap = (gapMs: number): number => gapMs * 0.9 - 5
const leastGapAfterConnecting = (gapMs: number): number => gapMs - (gapMs - 20) / 2 - 5
const pause = (ms: number): Promise<void> => systemClock.sleep(ms)

/** Tells of each call that the store did not answer. */
function counting(store: StateStore, onVain: () => void): StateStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]) => {
        try {
          return await Reflect.apply(value, target, args)
        } catch (error) {
          if (isMillraceError(error, 'STATE_UNAVAILABLE')) onVain()
          throw error
        }
      }
    },
  })
}

describe('the pace of a site, as the site sees it', () => {
  let fixture: FetchFixture
  afterEach(async () => fixture.close())

  const timed = (answer: (request: HttpRequest, count: number) => Promise<FakeAnswer> | FakeAnswer) => {
    const log: { host: string; at: number }[] = []
    const exchange = fakeExchange((request, count) => {
      log.push({ host: request.url.hostname, at: performance.now() })
      return answer(request, count)
    })
    return { log, exchange, of: (host: string) => log.filter((each) => each.host === host) }
  }

  it('is that of its address over all hosts and workers, and requests go to the address that was admitted', async () => {
    fixture = await FetchFixture.open({ partitions: 4 })
    const site = await new TestSite((_, response) => response.setHeader('content-type', 'text/html').end('<p>page</p>')).open()
    fixture.onClose(() => site.close())
    const hosts = Array.from({ length: 8 }, (_, index) => `host${index}.example`)
    let lookups = 0
    const resolve = { '*.example': '127.0.0.1' }
    const client = new HttpClient({
      // Would be asked where a request were not pinned.
      resolve: {},
      lookup: (_, callback) => callback(Object.assign(new Error('not pinned'), { code: 'ENOTFOUND' }), []),
      allowAddresses: ['127.0.0.0/8'],
      clock: systemClock,
    })
    fixture.onClose(() => client.close())
    const book = createAddressBook({ resolve, clock: systemClock })
    const options = {
      // One at a time: with several, a process that stands still for longer than the interval can not be told of in time.
      paceOf: paced({ ratePerSecond: 10, byAddress: true }),
      addressOf: (url: URL) => {
        lookups += 1
        return book(url)
      },
    }
    const sent: number[] = []
    const noting: HttpExchange = {
      proxiesBackInMs: () => 0,
      request: (request) =>
        client.request({
          ...request,
          onSent: () => {
            sent.push(performance.now())
            request.onSent?.()
          },
        }),
    }
    await Promise.all([fixture.fetchWorker(noting, options), fixture.fetchWorker(noting, options)])
    await fixture.produce(hosts.flatMap((host) => Array.from({ length: 5 }, (_, index) => ({ url: site.url(host, `/${index}`) }))))
    await eventually(() => fixture.finalOutcomes(40), { what: '40 outcomes' })
    expect(site.requests).toHaveLength(40)
    expect(lookups).toBeGreaterThanOrEqual(40)
    // When they went on the wire: the site serves in this same process, and would look at its watch later.
    const gaps = sent.slice(1).map((at, index) => at - (sent[index] ?? 0))
    expect(gaps.filter((gap) => gap < 99)).toEqual([])
    // A place is given back a moment after the outcome is written.
    const leases = async (): Promise<number> => (await fixture.state.limiterState('ip:127.0.0.1' as PolitenessKey)).leases
    await eventually(async () => (await leases()) === 0, { what: 'no request of the address' })
  })

  it('keeps its gap when several may run and a worker stands still between the answer of the limiter and its request, twice in a row too', async () => {
    fixture = await FetchFixture.open({ partitions: 4 })
    const { exchange, log } = timed(async ({ onSent }) => {
      onSent?.()
      await pause(500)
      return {}
    })
    const gapMs = 400
    let leases = 0
    const starts = new Set<string>()
    const late = new Proxy(fixture.state, {
      get: (state, name) => {
        if (name === 'startAgain')
          return async (...args: Parameters<StateStore['startAgain']>) => {
            const inMs = await state.startAgain(...args)
            const isFirst = !starts.has(args[0])
            starts.add(args[0])
            if (isFirst) await pause(inMs + gapMs * 0.75)
            return inMs
          }
        if (name !== 'acquire')
          return typeof state[name as 'acquire'] === 'function' ? state[name as 'acquire'].bind(state) : state[name as 'acquire']
        return async (request: LimiterRequest) => {
          const answer = await state.acquire(request)
          if (answer.kind === 'lease') leases += 1
          if (answer.kind === 'lease' && leases % 3 === 0) await pause(gapMs + 6)
          return answer
        }
      },
    })
    const options = { paceOf: paced({ key: 'shared' as PolitenessKey, ratePerSecond: 1_000 / gapMs, concurrency: 4 }) }
    await Promise.all([fixture.fetchWorker(exchange, { ...options, state: late }), fixture.fetchWorker(exchange, options)])
    const hosts = Array.from({ length: 8 }, (_, index) => `host${index}.example`)
    await fixture.produce(hosts.flatMap((host) => Array.from({ length: 3 }, (_, index) => ({ url: `http://${host}/${index}` }))))
    await eventually(() => fixture.finalOutcomes(24), { what: '24 outcomes' })
    expect(leases).toBeGreaterThan(4)
    expect(starts.size).toBeGreaterThan(2)
    expect(log).toHaveLength(24)
    const gaps = log.slice(1).map(({ at }, index) => at - (log[index]?.at ?? 0))
    expect(gaps.filter((gap) => gap < leastGap(gapMs))).toEqual([])
  })

  it('keeps its gap where several may run and connections take longer than the gap to be made', async () => {
    fixture = await FetchFixture.open({ partitions: 2 })
    const site = await new TestSite((_, response) =>
      response.setHeader('connection', 'close').setHeader('content-type', 'text/html').end('x'),
    ).open()
    fixture.onClose(() => site.close())
    let connections = 0
    const client = new HttpClient({
      resolve: {},
      // Each request makes a connection; of three, one takes more than two gaps.
      lookup: (_, callback) => {
        connections += 1
        const found = (): void => callback(null, [{ address: '127.0.0.1', family: 4 }])
        systemClock.timer(connections % 3 === 1 ? 450 : 5, found)
      },
      allowAddresses: ['127.0.0.0/8'],
      clock: systemClock,
    })
    fixture.onClose(() => client.close())
    const sent: number[] = []
    const noting: HttpExchange = {
      proxiesBackInMs: () => 0,
      request: (request) =>
        client.request({
          ...request,
          onSent: () => {
            sent.push(performance.now())
            request.onSent?.()
          },
        }),
    }
    // Two workers share the pace, so it is kept by the store, not by one of them.
    const options = { paceOf: paced({ key: 'shared' as PolitenessKey, ratePerSecond: 5, concurrency: 4 }) }
    await Promise.all([fixture.fetchWorker(noting, options), fixture.fetchWorker(noting, options)])
    const hosts = ['one.example', 'two.example', 'three.example', 'four.example']
    await fixture.produce(hosts.flatMap((host) => Array.from({ length: 5 }, (_, index) => ({ url: site.url(host, `/${index}`) }))))
    await eventually(() => fixture.finalOutcomes(20), { what: '20 outcomes' })
    expect(connections).toBeGreaterThanOrEqual(20)
    const gaps = sent.slice(1).map((at, index) => at - (sent[index] ?? 0))
    expect(gaps.filter((gap) => gap < leastGapAfterConnecting(200))).toEqual([])
  })

  it('and the order of its tasks hold though their place is free before the store has answered the release', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const answerLateMs = 1_000
    const state = new Proxy(fixture.state, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return async (...args: unknown[]) => {
          const result = await Reflect.apply(value, target, args)
          if (name === 'release') await pause(answerLateMs)
          return result
        }
      },
    })
    const [hosts, each, crawlDelayMs] = [['a.example', 'b.example', 'c.example'], 6, 40]
    const log: { readonly host: string; readonly path: string; readonly at: number; endedAt: number }[] = []
    const exchange = fakeExchange(async ({ url }) => {
      const request = { host: url.hostname, path: url.pathname, at: performance.now(), endedAt: Number.NaN }
      log.push(request)
      await pause(10)
      request.endedAt = performance.now()
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange, { state, concurrency: 1, paceOf: paced({ crawlDelayMs }) })
    await fixture.produce(Array.from({ length: each }, (_, index) => hosts.map((host) => ({ url: `http://${host}/${index}` }))).flat())
    await eventually(() => fixture.finalOutcomes(hosts.length * each), { everyMs: 200 })
    for (const host of hosts) {
      const own = log.filter((request) => request.host === host)
      expect(own.map(({ path }) => path)).toEqual(Array.from({ length: each }, (_, index) => `/${index}`))
      for (const [index, request] of own.slice(1).entries()) {
        expect(request.at - (own[index]?.endedAt ?? Number.NaN)).toBeGreaterThanOrEqual(crawlDelayMs - 1)
      }
    }
    // With the one place held until the store answers, all would take as long as the answers together.
    const tookMs = (log.at(-1)?.at ?? Number.NaN) - (log[0]?.at ?? Number.NaN)
    expect(tookMs).toBeLessThan((log.length - 1) * answerLateMs)
  })

  it('ends a task whose host has no address by which it could be paced, and tries one again whose resolver is silent', async () => {
    fixture = await FetchFixture.open()
    const { exchange, log } = timed(() => ({}))
    let asked = 0
    await fixture.fetchWorker(exchange, {
      paceOf: paced({ byAddress: true }),
      addressOf: async (url) => {
        asked += 1
        const reason = url.hostname === 'gone.test' ? 'dns-not-found' : 'dns-failed'
        return { kind: 'failure', reason, detail: `${url.hostname} is nowhere`, totalMs: 1 }
      },
    })
    await fixture.produce([{ url: 'http://gone.test/' }, { url: 'http://silent.test/' }])
    const outcomes = await eventually(
      async () => {
        const all = await fixture.outcomes()
        return all.length >= 2 ? all : false
      },
      { what: 'two outcomes' },
    )
    expect(outcomes.map(({ kind, reason }) => `${kind} ${reason}`).sort()).toEqual(['FAILED dns-not-found', 'RETRY dns-failed'])
    expect([log.length, asked]).toEqual([0, 2])
  })

  it('is none while the site does not answer: its tasks are parked without an attempt, one request tries, and all goes on', async () => {
    fixture = await FetchFixture.open({ delays: [200, 60_000, 600_000, 3_600_000] })
    let isDead = true
    const refused: FakeAnswer = { kind: 'failure', reason: 'connect-refused', detail: 'refused', totalMs: 1 }
    const { exchange, of } = timed(({ url }) => (url.hostname === 'dead.test' && isDead ? refused : { body: '' }))
    await fixture.fetchWorker(exchange, {
      paceOf: paced({ ratePerSecond: 50 }),
      siteHealth: { isAdaptive: true, breakerFailures: 3, firstParkMs: 1_500, maxParkMs: 60_000 },
      spill: QUICK_SPILL,
      retry: { maxAttempts: 3, firstDelayMs: 200, maxDelayMs: 400 },
    })
    const urls = Array.from({ length: 12 }, (_, index) => ({ url: `http://dead.test/${index}` }))
    await fixture.produce([...urls, { url: 'http://well.test/' }])
    await eventually(() => of('dead.test').length >= 3, { what: 'three vain requests' })
    const openedAt = of('dead.test')[2]?.at ?? 0
    const parked = await eventually(
      async () => {
        const waiting = (await Promise.all(fixture.topics.delays.map(({ topic }) => fixture.messages(topic)))).flat()
        const copies = waiting.filter(({ headers }) => headers['millrace-reason']?.toString() === 'parked')
        return copies.length >= 9 ? copies : false
      },
      { what: 'nine parked tasks' },
    )
    expect(parked.map(({ value }) => fixture.codec.decode('UrlTask', value).attempt)).toEqual(Array(9).fill(1))
    expect(fixture.seen.events.filter(({ event }) => event === 'SiteBreakerOpened')).toHaveLength(1)
    expect(await fixture.state.limiterState('dead.test' as PolitenessKey)).toMatchObject({ trips: 1 })
    expect(of('well.test')).toHaveLength(1)
    await fixture.delayWorker()
    await eventually(() => of('dead.test').length >= 4, { what: 'a probe' })
    expect((of('dead.test')[3]?.at ?? 0) - openedAt).toBeGreaterThan(1_490)
    isDead = false
    await eventually(() => fixture.finalOutcomes(13), { what: 'all outcomes' })
    const outcomes = (await fixture.outcomes()).filter(({ kind }) => kind !== 'RETRY')
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(13).fill('FETCHED'))
    expect(fixture.seen.events.some(({ event }) => event === 'SiteBreakerClosed')).toBe(true)
    expect(await fixture.state.limiterState('dead.test' as PolitenessKey)).toMatchObject({ trips: 0, parkedMs: 0, failingMs: 0 })
  })

  it('is none until the moment that Retry-After names, and what waits says why', async () => {
    fixture = await FetchFixture.open({ delays: [200, 60_000, 600_000, 3_600_000] })
    const { exchange, of } = timed((_, count) => (count === 1 ? { status: 429, headers: { 'retry-after': '2' } } : {}))
    await fixture.fetchWorker(exchange, {
      paceOf: paced({ ratePerSecond: 50 }),
      spill: QUICK_SPILL,
      retry: { maxAttempts: 3, firstDelayMs: 100, maxDelayMs: 200 },
    })
    await fixture.delayWorker()
    await fixture.produce(Array.from({ length: 6 }, (_, index) => ({ url: `http://busy.test/${index}` })))
    await eventually(() => fixture.finalOutcomes(6), { what: 'six outcomes' })
    const [first, second] = of('busy.test')
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(1_995)
    expect(of('busy.test')).toHaveLength(7)
    const reasons = (await Promise.all(fixture.topics.delays.map(({ topic }) => fixture.messages(topic))))
      .flat()
      .map(({ headers }) => headers['millrace-reason']?.toString())
    expect(reasons.filter((reason) => reason === 'retry-after').length).toBeGreaterThanOrEqual(5)
    expect(reasons).toContain('http-429')
  })

  it('gives up on a site that has not answered for long, and tries one that is back before it does', async () => {
    fixture = await FetchFixture.open({ delays: [100, 400, 60_000, 3_600_000] })
    let isBack = false
    const refused: FakeAnswer = { kind: 'failure', reason: 'connect-refused', detail: 'nobody is there', totalMs: 1 }
    const isDown = (host: string): boolean => host === 'dead.test' || (host === 'late.test' && !isBack)
    const { exchange, of } = timed(({ url }) => (isDown(url.hostname) ? refused : {}))
    await fixture.fetchWorker(exchange, {
      paceOf: paced({ ratePerSecond: 50 }),
      spill: QUICK_SPILL,
      giveUpMs: 8_000,
      siteHealth: { isAdaptive: true, breakerFailures: 2, firstParkMs: 500, maxParkMs: 800 },
      retry: { maxAttempts: 1_000, firstDelayMs: 100, maxDelayMs: 200 },
    })
    await fixture.delayWorker()
    const urls = (host: string): { url: string }[] => Array.from({ length: 8 }, (_, index) => ({ url: `http://${host}/${index}` }))
    await fixture.produce([...urls('dead.test'), ...urls('late.test')])
    await eventually(() => of('late.test').length > 2, { what: 'a few tries' })
    isBack = true
    const outcomes = await eventually(() => fixture.finalOutcomes(16), { what: '16 outcomes' })
    const ends = (host: string): string[] => outcomes.filter(({ url }) => url.includes(host)).map(({ kind, reason }) => `${kind} ${reason}`)
    expect(new Set(ends('late.test'))).toEqual(new Set(['FETCHED null']))
    expect(new Set(ends('dead.test'))).toEqual(new Set(['FAILED site-dead']))
    expect(await fixture.messages(fixture.topics.deadLetters)).toHaveLength(8)
  })

  it('stands still within a second while Redis is away, and is kept by a Redis that comes back with nothing', async () => {
    const redis = await OwnRedis.start()
    fixture = await FetchFixture.open({ redisUrl: redis.url })
    fixture.onClose(() => redis.end())
    const { exchange, log, of } = timed(({ url }) =>
      url.hostname === 'busy.test' ? { status: 503, headers: { 'retry-after': '1200' } } : {},
    )
    const ratePerSecond = 2
    let vain = 0
    const state = counting(fixture.state, () => {
      vain += 1
    })
    await fixture.fetchWorker(exchange, { paceOf: paced({ ratePerSecond }), state })
    const urls = Array.from({ length: 40 }, (_, index) => ({ url: `http://calm.test/${index}` }))
    await fixture.produce([{ url: 'http://busy.test/' }, ...urls])
    await eventually(() => of('calm.test').length > 2 && of('busy.test').length === 1, { what: 'some requests' })
    await redis.stop()
    const quietFrom = performance.now() + 1_000
    vain = 0
    // It asks again and again, a call at a time, and each is an occasion to go on without an answer.
    await eventually(() => vain >= 6 && performance.now() > quietFrom, { what: 'vain calls' })
    expect(log.filter(({ at }) => at > quietFrom)).toEqual([])
    const startedAt = performance.now()
    await redis.start()
    const before = log.length
    await eventually(() => log.length > before + 3, { what: 'requests after Redis is back' })
    const again = log.slice(before)
    expect(again.every(({ host }) => host === 'calm.test')).toBe(true)
    // The store knows nothing: a whole interval goes by first.
    expect((again[0]?.at ?? 0) - startedAt).toBeGreaterThan(1_000 / ratePerSecond)
    const known = await fixture.state.limiterState('busy.test' as PolitenessKey)
    expect(known.isAsked).toBe(true)
    expect(known.backOffMs).toBeGreaterThan(900_000)
  })

  it('leaves a site alone until its hours open, to the second and at its pace, and what is put aside for that is put aside once', async () => {
    fixture = await FetchFixture.open({ partitions: 2 })
    const toOpening = 20_000
    // Hours begin at full minutes: this clock shows one in twenty seconds.
    const aheadMs = (120_000 - toOpening - (Date.now() % 60_000)) % 60_000
    const clock = { ...systemClock, now: () => Date.now() + aheadMs }
    const opensLate = (clock.now() + toOpening) % 60_000
    const minute = Math.floor(((clock.now() + toOpening) % 86_400_000) / 60_000)
    const closed = (toMinute: number) => ({
      fromMinute: (minute + 1_380) % 1_440,
      toMinute,
      timezone: 'UTC',
      text: 'closed',
      isPaused: true,
    })
    const overrides = new Map<string, SiteOverride>()
    const policy = createPolicy({
      key: 'host',
      default: { ratePerSecond: 20, burst: 1, concurrency: 1 },
      rules: [
        { match: 'soon.example', schedule: [closed(minute)] },
        { match: 'later.example', schedule: [closed((minute + 300) % 1_440)] },
      ],
      overrideOf: (domain) => overrides.get(domain),
      now: clock.now,
    })
    const openingMono = performance.now() + toOpening - opensLate
    const { exchange, of } = timed(() => ({}))
    const worker = await fixture.fetchWorker(exchange, { paceOf: policy.paceOf, spill: { ...SPILL_LIMITS, maxWaitMs: 2_000 }, clock })
    const delay = await fixture.delayWorker({ clock })
    const urls = (host: string, count: number) => Array.from({ length: count }, (_, index) => ({ url: `http://${host}/${index}` }))
    const produced = [...urls('soon.example', 80), ...urls('later.example', 20)]
    await fixture.produce(produced)
    await eventually(() => delay.heldCount === 100, { what: 'all of it in the delay topics' })
    expect(of('soon.example')).toEqual([])

    await eventually(() => of('soon.example').length === 80, { what: 'all pages of the site that has opened' })
    const starts = of('soon.example').map(({ at }) => at)
    expect((starts[0] ?? 0) - openingMono).toBeGreaterThan(-20)
    expectInTime((starts[0] ?? Number.NaN) - openingMono, 1_200)
    expectInTime((starts[79] ?? Number.NaN) - openingMono, 80 * 50 + 2_500)
    expect(of('later.example')).toEqual([])
    const copies = (await Promise.all(fixture.topics.delays.map(({ topic }) => fixture.messages(topic)))).flat()
    // One that finds no place at the opening waits for its turn, and not for the hours again.
    expect(copies.filter(({ headers }) => headers['millrace-reason']?.toString() === 'paused')).toHaveLength(produced.length)

    const at = clock.now()
    overrides.set('later.example', { paused: false, resumed: { at } })
    worker.paceChanged('later.example')
    delay.siteChanged('later.example', { resumedAt: at })
    await eventually(() => of('later.example').length === 20, { what: 'pages of the site that was resumed' })
  })

  it.each([
    { by: 'an operator', rules: [], overrides: [['closed.shop.example', { paused: true }]] as const },
    {
      by: 'its hours',
      rules: [
        { match: 'closed.shop.example', schedule: [{ fromMinute: 0, toMinute: 1_440, timezone: 'UTC', text: 'all day', isPaused: true }] },
      ],
      overrides: [],
    },
  ])('goes on for the other hosts of a domain that is one site, while one of them is paused by $by', async ({ rules, overrides }) => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const clock = systemClock
    const said = new Map<string, SiteOverride>(overrides)
    const { paceOf } = createPolicy({
      key: 'domain',
      default: { ratePerSecond: 50, burst: 1, concurrency: 2 },
      rules,
      overrideOf: (domain) => said.get(domain),
      now: clock.now,
    })
    const { exchange, of } = timed(() => ({}))
    const worker = await fixture.fetchWorker(exchange, { paceOf, spill: { ...SPILL_LIMITS, maxWaitMs: 60_000 } })
    const delay = await fixture.delayWorker()
    const hosts = ['closed.shop.example', 'open.shop.example']
    await fixture.produce(Array.from({ length: 40 }, (_, index) => ({ url: `http://${hosts[index % 2]}/${index}` })))
    await eventually(() => of('open.shop.example').length === 20, { what: 'pages of the open host' })
    await eventually(() => delay.heldCount === 20, { what: 'those of the closed one in the delay topics' })
    // What comes later is of an open host, whatever was paused before it.
    await fixture.produce([{ url: 'http://closed.shop.example/late' }, { url: 'http://open.shop.example/late' }])
    await eventually(() => of('open.shop.example').length === 21, { what: 'the late page of the open host' })
    expect(of('closed.shop.example')).toEqual([])
    const copies = (await Promise.all(fixture.topics.delays.map(({ topic }) => fixture.messages(topic)))).flat()
    const putAside = copies.map(
      ({ headers, value }) => `${headers['millrace-reason']} ${new URL(fixture.codec.decode('UrlTask', value).url).hostname}`,
    )
    expect(new Set(putAside)).toEqual(new Set(['paused closed.shop.example']))

    const at = clock.now()
    said.set('closed.shop.example', { paused: false, resumed: { at } })
    worker.paceChanged('closed.shop.example')
    delay.siteChanged('closed.shop.example', { resumedAt: at })
    await eventually(() => of('closed.shop.example').length === 21, { what: 'pages of the host that was resumed' })
  })
})
