import { describe, expect, it } from 'vitest'
import type { HttpRequest, HttpResult } from '../../../src/fetch/http-exchange.ts'
import { RobotsFetcher } from '../../../src/fetch/robots-fetch.ts'
import { SiteLeases } from '../../../src/fetch/site-leases.ts'
import { StoreGate } from '../../../src/fetch/store-gate.ts'
import type { LimiterAnswer, LimiterRequest } from '../../../src/state/state-store.ts'
import { type FakeAnswer, fakeExchange, fastPace } from '../../support/fetch-fixture.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const signal = new AbortController().signal
const hoursOf = ({ hostname }: URL) => (hostname === 'soon.paused.test' ? { pausedUntil: new ManualClock().now() + 7_000 } : {})
const limits = { connectMs: 1, headersMs: 1, idleMs: 1, totalMs: 1, maxBodyBytes: 8_388_608 }

function fetcherOf(answers: (request: HttpRequest) => FakeAnswer, acquire: (request: LimiterRequest) => LimiterAnswer = lease) {
  const clock = new ManualClock()
  const { observer } = recordingObserver()
  const calls: string[] = []
  const proxies = { backInMs: 0 }
  const exchange = { ...fakeExchange((request) => answers(request)), proxiesBackInMs: () => proxies.backInMs }
  const fetcher = new RobotsFetcher({
    exchange,
    paceOf: (url) => ({ ...fastPace(url), isPaused: url.hostname.endsWith('paused.test'), ...hoursOf(url) }),
    addressOf: async () => '192.0.2.1',
    leases: new SiteLeases({
      state: {
        acquire: async (request) => {
          calls.push(`acquire ${request.keys[0]?.key} ${request.countsForRate}`)
          return acquire(request)
        },
        release: async (leaseId, _keys, report) => {
          calls.push(`release ${leaseId}, ${report?.kind}${report?.backOffMs === undefined ? '' : `, back off ${report.backOffMs}`}`)
          return []
        },
        reassert: async () => undefined,
        reportLate: async () => undefined,
        startAgain: async () => 0,
      },
      gate: new StoreGate({ clock, observer, signal, random: () => 0.5, onBack: () => undefined }),
      owner: { workerId: 'w', host: 'h', pid: 1, pidStartedAt: '0' },
      leaseMs: 1_000,
      rules: { isAdaptive: true, breakerFailures: 5, firstParkMs: 1_000, maxParkMs: 10_000 },
      clock,
      observer,
    }),
    userAgent: 'foobot/1.0',
    limits,
    clock,
  })
  const ask = (url = 'http://a.test/robots.txt') => fetcher.ask(new URL(url), signal)
  return { ask, calls, clock, proxies, requests: exchange.requests }
}

const lease = (request: LimiterRequest): LimiterAnswer => ({
  kind: 'lease',
  leaseId: `lease of ${request.keys[0]?.key}`,
  startInMs: 0,
  concurrency: 1,
  birth: 'b',
})
const hop = (location: string, status = 301): FakeAnswer => ({ status, headers: { location } })

describe('asking a site for its robots.txt', () => {
  it('takes a place of the site, not a turn, and gives it back', async () => {
    const { ask, calls, requests } = fetcherOf(() => ({ body: 'User-agent: *' }))
    expect(await ask()).toEqual({ kind: 'answer', status: 200, body: Buffer.from('User-agent: *') })
    expect(calls).toEqual(['acquire a.test false', 'release lease of a.test, success'])
    expect(requests[0]).toMatchObject({ method: 'GET', headers: { 'user-agent': 'foobot/1.0' }, limits: { maxBodyBytes: 524_288 } })
  })

  it('C029: follows five hops, each on a place of where it leads', async () => {
    const { ask, calls, requests } = fetcherOf(({ url }) => {
      if (url.hostname === 'www.test') return { body: 'User-agent: *\nDisallow: /p' }
      const step = Number(url.pathname.match(/\d/)?.[0] ?? 0)
      return hop(step === 4 ? 'https://www.test/r.txt' : `/r${step + 1}.txt`)
    })
    expect(await ask()).toMatchObject({ kind: 'answer', status: 200, body: Buffer.from('User-agent: *\nDisallow: /p') })
    expect(requests.map(({ url }) => url.href)).toEqual([
      'http://a.test/robots.txt',
      'http://a.test/r1.txt',
      'http://a.test/r2.txt',
      'http://a.test/r3.txt',
      'http://a.test/r4.txt',
      'https://www.test/r.txt',
    ])
    expect(calls.slice(-2)).toEqual(['acquire www.test false', 'release lease of www.test, success'])
  })

  it('C029: takes more hops for a file that is not there', async () => {
    const { ask, requests } = fetcherOf(() => hop('/robots.txt'))
    expect(await ask()).toMatchObject({ kind: 'answer', status: 404 })
    expect(requests).toHaveLength(6)
  })

  it('goes on where it had to wait, and asks the sites before it again only after a while', async () => {
    let isBusy = true
    const { ask, clock, requests } = fetcherOf(
      ({ url }) => (url.hostname === 'a.test' ? hop('http://www.test/robots.txt') : { body: 'User-agent: *' }),
      (request) => {
        const [site] = request.keys
        if (!isBusy || site?.key !== 'www.test') return lease(request)
        return { kind: 'wait', waitMs: 250, reason: 'concurrency', key: site.key, concurrency: 1, birth: 'b' }
      },
    )
    const asked = (): string[] => requests.map(({ url }) => url.hostname)
    for (let round = 0; round < 5; round += 1) expect(await ask()).toMatchObject({ kind: 'wait', waitMs: 250 })
    expect(asked()).toEqual(['a.test'])
    await clock.advance(599_000)
    await ask()
    await clock.advance(2_000)
    await ask()
    expect(asked()).toEqual(['a.test', 'a.test'])
    isBusy = false
    expect(await ask()).toMatchObject({ kind: 'answer', status: 200 })
    expect(asked()).toEqual(['a.test', 'a.test', 'www.test'])
    await ask()
    expect(asked().slice(3)).toEqual(['a.test', 'www.test'])
  })

  it('takes a file that lies where nobody may ask for one that is not there', async () => {
    const refused: HttpResult = { kind: 'failure', reason: 'address-refused', detail: '10.0.0.1 is not public', totalMs: 1 }
    const { ask } = fetcherOf(({ url }) => (url.hostname === 'a.test' ? hop('http://10.0.0.1/robots.txt') : refused))
    expect(await ask()).toMatchObject({ kind: 'answer', status: 404 })
    expect(await fetcherOf(() => refused).ask()).toEqual(refused)
  })

  it('takes no fault of a host that it led to for one of the site', async () => {
    const bad: HttpResult = { kind: 'failure', reason: 'tls-failed', detail: 'certificate has expired', totalMs: 1 }
    const { ask } = fetcherOf(({ url }) => (url.protocol === 'http:' ? hop('https://a.test/robots.txt') : bad))
    expect(await ask()).toEqual({ kind: 'failure', reason: null, detail: 'https://a.test/robots.txt: certificate has expired' })
    expect(await fetcherOf(() => bad).ask()).toEqual(bad)
  })

  it('takes a redirect that leads nowhere for an answer', async () => {
    expect(await fetcherOf(() => hop('http://\xa0bad/')).ask()).toMatchObject({ kind: 'answer', status: 301 })
    expect(await fetcherOf(() => ({ status: 302 })).ask()).toMatchObject({ kind: 'answer', status: 302 })
  })

  it('does not follow the refresh of a page', async () => {
    const body = '<meta http-equiv="refresh" content="0;url=/home">'
    const { ask, requests } = fetcherOf(() => ({ body }))
    expect(await ask()).toEqual({ kind: 'answer', status: 200, body: Buffer.from(body) })
    expect(requests).toHaveLength(1)
  })

  it('takes half a file for none, and one that is too large for as much as it is', async () => {
    expect(await fetcherOf(() => ({ body: 'User-agent: *\nDis', truncated: 'network' })).ask()).toMatchObject({
      kind: 'failure',
      reason: 'truncated',
    })
    // Noise would allow all.
    expect(await fetcherOf(() => ({ body: 'no rule', truncated: 'undecoded' })).ask()).toMatchObject({ kind: 'failure' })
    expect(await fetcherOf(() => ({ body: 'User-agent: *\nDis', truncated: 'size' })).ask()).toMatchObject({ kind: 'answer', status: 200 })
    expect(await fetcherOf(() => ({ body: 'not fou', status: 404, truncated: 'network' })).ask()).toMatchObject({
      kind: 'answer',
      status: 404,
    })
  })

  it('hands on a failure, and gives the place back', async () => {
    const failure: HttpResult = { kind: 'failure', reason: 'dns-failed', detail: 'no resolver', totalMs: 1 }
    const { ask, calls } = fetcherOf(() => failure)
    expect(await ask()).toEqual(failure)
    expect(calls.at(-1)).toBe('release lease of a.test, failure')
  })

  it('asks for a place again where it stood still for longer than its lease lives', async () => {
    let startInMs = 20
    const { ask, calls, clock, requests } = fetcherOf(
      () => ({ body: 'User-agent: *' }),
      (request) => ({ ...lease(request), startInMs }) as LimiterAnswer,
    )
    const asked = ask()
    await clock.standStill(1_020)
    startInMs = 0
    expect(await asked).toMatchObject({ kind: 'wait' })
    expect(requests).toEqual([])
    expect(await ask()).toMatchObject({ kind: 'answer' })
    expect(calls).toEqual([
      'acquire a.test false',
      'release lease of a.test, none',
      'acquire a.test false',
      'release lease of a.test, success',
    ])
  })

  it('waits for a proxy where none takes the request, and gives the place back', async () => {
    const { ask, calls, proxies } = fetcherOf(() => ({ kind: 'failure', reason: 'proxy-down', detail: 'proxy a: refused', totalMs: 1 }))
    expect(await ask()).toEqual({ kind: 'wait', waitMs: 1, reason: 'proxies-out' })
    proxies.backInMs = 10_000
    expect(await ask()).toEqual({ kind: 'wait', waitMs: 10_000, reason: 'proxies-out' })
    expect(calls).toEqual(['acquire a.test false', 'release lease of a.test, none'])
  })

  it('leaves a site alone that asks for it, before its place is free again', async () => {
    const { ask, calls } = fetcherOf(() => ({ status: 503, headers: { 'retry-after': '30' } }))
    expect(await ask()).toMatchObject({ kind: 'answer', status: 503 })
    expect(calls).toEqual(['acquire a.test false', 'release lease of a.test, overload, back off 30000'])
  })

  it.each<[string, FakeAnswer]>([
    ['aws-waf', { status: 202, headers: { 'x-amzn-waf-action': 'challenge' } }],
    ['imperva', { body: '<iframe src="/_Incapsula_Resource?x=1&incident_id=9"></iframe>' }],
    ['cloudflare', { status: 403, headers: { 'cf-mitigated': 'challenge' } }],
  ])("takes the page of a wall against robots (%s) for no file, and tells the site's pace of it", async (vendor, answer) => {
    const { ask, calls } = fetcherOf(() => answer)
    expect(await ask()).toEqual({
      kind: 'failure',
      reason: null,
      detail: expect.stringMatching(`^http://a.test/robots.txt answered with a challenge of ${vendor}`),
    })
    expect(calls.at(-1)).toBe('release lease of a.test, overload')
  })

  it('waits where no place is free, or the site is paused', async () => {
    const busy: LimiterAnswer = {
      kind: 'wait',
      waitMs: 70,
      reason: 'concurrency',
      key: fastPace(new URL('http://a.test/')).key,
      concurrency: 4,
      birth: 'b',
    }
    const { ask, requests } = fetcherOf(
      () => ({}),
      () => busy,
    )
    expect(await ask()).toEqual({ kind: 'wait', waitMs: 70, reason: 'concurrency', concurrency: 4 })
    expect(await ask('http://paused.test/robots.txt')).toMatchObject({ kind: 'wait', waitMs: 30_000 })
    expect(await ask('http://soon.paused.test/robots.txt')).toMatchObject({ kind: 'wait', waitMs: 7_000 })
    expect(requests).toEqual([])
  })
})
