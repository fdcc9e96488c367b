import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { SPILL_LIMITS } from '../../../src/fetch/spill.ts'
import { DurableProducer } from '../../../src/kafka/producer.ts'
import type { PolitenessKey } from '../../../src/kernel/brand.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import type { Outcome } from '../../../src/message/generated/types.ts'
import { unpackPageBody } from '../../../src/message/page-body.ts'
import type { LimiterAnswer } from '../../../src/state/state-store.ts'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture, fakeExchange, fastPace } from '../../support/fetch-fixture.ts'
import { expectInTime } from '../../support/in-time.ts'
import { uniqueName } from '../../support/services.ts'

let fixture: FetchFixture
afterEach(() => fixture.close())

const settled = (count: number) => eventually(() => fixture.finalOutcomes(count), { everyMs: 100, what: `${count} outcomes` })

describe('a fetch worker on a real broker', () => {
  it('turns tasks into pages and outcomes, and tells the store before it commits', async () => {
    fixture = await FetchFixture.open()
    const exchange = fakeExchange(({ url }) => ({ body: `<p>${url.pathname} é`, headers: { 'X-Odd': 'one' } }))
    await fixture.fetchWorker(exchange)
    const crawlId = uniqueName('crawl')
    const tasks = await fixture.produce(
      Array.from({ length: 20 }, (_, i) => ({ url: `http://s${i % 4}.example/p${i}`, crawlId, meta: { i: String(i) } })),
    )
    const outcomes = await settled(20)
    expect(new Set(outcomes.map(({ kind, status, reason }) => `${kind} ${status} ${reason}`))).toEqual(new Set(['FETCHED 200 null']))
    expect(new Set(outcomes.map(({ taskId }) => taskId))).toEqual(new Set(tasks.map(({ taskId }) => taskId)))
    const pages = await fixture.pages()
    expect(pages).toHaveLength(20)
    for (const page of pages) {
      const body = await unpackPageBody(page)
      expect(body.ok && String(body.bytes)).toBe(`<p>${new URL(page.url).pathname} é`)
      expect(page.headers).toContainEqual({ name: 'X-Odd', value: 'one' })
      expect(page).toMatchObject({ charset: 'UTF-8', robots: { verdict: 'ignored' }, crawlId, finalUrl: page.url, attempt: 1 })
    }
    const ids = tasks.map(({ taskId }) => ({ taskId, attempt: 1 }))
    await eventually(async () => (await fixture.state.isFinished(ids)).every(Boolean))
    await eventually(async () => {
      const counts = await fixture.state.crawlCounts(crawlId)
      return counts.accepted === 20 && counts.final === 20
    })
  })

  it('C157: answers poison with dead letters that hold the original bytes, and lives on', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    await fixture.fetchWorker(fakeExchange(() => ({ body: 'ok' })))
    const topic = fixture.topics.urls.normal
    const poison = [
      Buffer.from('rubbish'),
      Buffer.from('{"uri":"http://a.example/"}'),
      Buffer.from('{"url":'),
      null,
      Buffer.alloc(10, 0xc3),
    ]
    await fixture.producer.send(poison.map((value) => ({ topic, partition: 0, key: 'k', value })))
    await fixture.producer.send([{ topic, partition: 0, key: null, value: Buffer.from('{"url":"ftp://a.example/x"}') }])
    await fixture.producer.send([{ topic, partition: 0, key: null, value: Buffer.from(' {"url":"http://a.example/good"}') }])
    const outcomes = await settled(2)
    expect(outcomes.map(({ kind, reason, url }) => `${kind} ${reason} ${url}`).sort()).toEqual([
      'FAILED bad-url ftp://a.example/x',
      'FETCHED null http://a.example/good',
    ])
    const dead = await fixture.messages(fixture.topics.deadLetters)
    expect(dead.map(({ headers }) => String(headers['millrace-error-code'])).sort()).toEqual([
      'MESSAGE_EMPTY',
      'MESSAGE_FRAMING_UNKNOWN',
      'MESSAGE_FRAMING_UNKNOWN',
      'MESSAGE_MALFORMED',
      'TASK_FIELD_INVALID',
      'TASK_URL_INVALID',
    ])
    expect(dead.map(({ value }) => String(value))).toContain('rubbish')
    expect(dead.every(({ headers }) => String(headers['millrace-stage']) === 'fetch')).toBe(true)
  })

  it('C049: follows redirects hop by hop, ends at the hop limit, and hands a hop to another domain on as a task of its own', async () => {
    fixture = await FetchFixture.open()
    const exchange = fakeExchange(({ url }) => {
      if (url.pathname === '/a') return { status: 302, headers: { location: 'b' } }
      if (url.pathname === '/b') return { status: 301, headers: { location: 'http://www.one.example/c' } }
      if (url.pathname === '/loop') return { status: 302, headers: { location: '/loop' } }
      if (url.pathname === '/away') return { status: 307, headers: { location: 'http://two.example/here' } }
      return { body: url.href }
    })
    await fixture.fetchWorker(exchange)
    const headers = { 'x-token': 'secret' }
    const crawlId = uniqueName('crawl')
    await fixture.produce([
      { url: 'http://one.example/a', headers },
      { url: 'http://one.example/loop' },
      { url: 'http://one.example/away', headers, crawlId },
    ])
    const outcomes = await settled(4)
    expect(outcomes.map(({ kind, reason, url }) => `${kind} ${reason} ${url}`).sort()).toEqual([
      'FAILED too-many-redirects http://one.example/loop',
      'FETCHED null http://one.example/a',
      'FETCHED null http://two.example/here',
      'REDIRECTED other-domain http://one.example/away',
    ])
    const pages = await fixture.pages()
    const page = pages.find(({ url }) => url === 'http://one.example/a')
    expect(page?.finalUrl).toBe('http://www.one.example/c')
    expect(page?.redirects).toEqual([
      { url: 'http://one.example/a', status: 302, location: 'b', setCookies: [] },
      { url: 'http://one.example/b', status: 301, location: 'http://www.one.example/c', setCookies: [] },
    ])
    expect(pages.find(({ url }) => url === 'http://two.example/here')?.redirects).toEqual([
      { url: 'http://one.example/away', status: 307, location: 'http://two.example/here', setCookies: [] },
    ])
    expect(exchange.requests.filter(({ url }) => url.pathname === '/loop')).toHaveLength(11)
    const [dead, ...others] = await fixture.messages(fixture.topics.deadLetters)
    expect(others).toEqual([])
    expect(String(dead?.headers['millrace-reason'])).toBe('too-many-redirects')
    expect(String(dead?.headers['millrace-error-message'])).toBe(
      `more than 10 redirects: ${'http://one.example/loop -> '.repeat(11)}http://one.example/loop`,
    )
    const sentTo = exchange.requests.filter((request) => request.headers['x-token'] !== undefined).map(({ url }) => url.host)
    expect(new Set(sentTo)).toEqual(new Set(['one.example']))
    await eventually(async () => (await fixture.state.crawlCounts(crawlId)).final === 2)
    expect(await fixture.state.crawlCounts(crawlId)).toEqual({ accepted: 2, final: 2 })
  })

  it('retries through the delay topics and counts attempts, until it works or they are used up', async () => {
    fixture = await FetchFixture.open({ delays: [200, 400, 60_000, 600_000] })
    const exchange = fakeExchange(({ url }) => {
      const tries = exchange.requests.filter((request) => request.url.href === url.href).length
      if (url.pathname === '/once') return tries === 1 ? { status: 503, headers: { 'retry-after': '1' } } : { body: 'fine' }
      return { kind: 'failure', reason: 'connection-reset', detail: 'reset by peer', totalMs: 1 }
    })
    await fixture.fetchWorker(exchange)
    await fixture.delayWorker()
    const started = Date.now()
    const [once] = await fixture.produce([{ url: 'http://a.example/once' }, { url: 'http://b.example/never' }])
    const final = await settled(2)
    const all = await fixture.outcomes()
    expect(all.filter(({ taskId }) => taskId === once?.taskId).map(({ kind, reason, attempt }) => `${kind} ${reason} ${attempt}`)).toEqual([
      'RETRY http-503 1',
      'FETCHED null 2',
    ])
    const fetched = final.find(({ taskId }) => taskId === once?.taskId)
    expect((fetched?.at ?? 0) - started).toBeGreaterThanOrEqual(1_000)
    // Sooner than after what the longer delay topics hold.
    expectInTime((fetched?.at ?? Number.NaN) - started, 30_000)
    expect(all.filter(({ url }) => url === 'http://b.example/never').map(({ kind, attempt }) => `${kind} ${attempt}`)).toEqual([
      'RETRY 1',
      'RETRY 2',
      'FAILED 3',
    ])
    const [dead] = await fixture.messages(fixture.topics.deadLetters)
    expect(String(dead?.headers['millrace-orig-topic'])).toBe(fixture.topics.urls.normal)
    expect(String(dead?.headers['millrace-attempt'])).toBe('3')
    expect(String(dead?.headers['millrace-reason'])).toBe('connection-reset')
  })

  it('holds the pace of a site, keeps its order, and lets no site wait for a slow one', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    let release = (): void => undefined
    const stuck = new Promise<void>((resolve) => {
      release = resolve
    })
    const starts: { host: string; path: string; at: number }[] = []
    const exchange = fakeExchange(async ({ url }) => {
      starts.push({ host: url.host, path: url.pathname, at: performance.now() })
      if (url.host === 'slow.example') await stuck
      return { body: 'x' }
    })
    const paced = { ratePerSecond: 10, burst: 1, concurrency: 1 }
    await fixture.fetchWorker(exchange, {
      paceOf: (url) => ({ ...fastPace(url), ...(url.host === 'paced.example' ? paced : { concurrency: 1 }) }),
    })
    await fixture.produce([
      ...Array.from({ length: 5 }, (_, i) => ({ url: `http://slow.example/${i}` })),
      ...Array.from({ length: 8 }, (_, i) => ({ url: `http://paced.example/${i}` })),
      ...Array.from({ length: 20 }, (_, i) => ({ url: `http://quick${i}.example/` })),
    ])
    await settled(28)
    expect(starts.filter(({ host }) => host === 'slow.example')).toHaveLength(1)
    const paces = starts.filter(({ host }) => host === 'paced.example')
    expect(paces.map(({ path }) => path)).toEqual(['/0', '/1', '/2', '/3', '/4', '/5', '/6', '/7'])
    const gaps = paces.slice(1).map(({ at }, i) => at - (paces[i]?.at ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(95)
    release()
    await settled(33)
  })

  it('drops duplicates of a crawl, refuses what a budget has no place for, and ends what has expired or was stopped', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const exchange = fakeExchange(({ url }) => (url.pathname === '/gone' ? { status: 404, body: 'no' } : { body: 'x' }))
    await fixture.fetchWorker(exchange, {
      isCrawlStopped: (crawlId) => crawlId === 'stopped',
      budgetsOf: ({ crawlId }) => (crawlId === 'small' ? [{ id: 'small:pages', limit: 1, reason: 'budget-pages' }] : []),
      paceOf: (url) => ({ ...fastPace(url), concurrency: 1 }),
    })
    await fixture.produce([
      { url: 'http://a.example/x?utm_source=1', crawlId: 'one' },
      { url: 'http://a.example/x', crawlId: 'one' },
      { url: 'http://a.example/gone', crawlId: 'small' },
      { url: 'http://a.example/2', crawlId: 'small' },
      { url: 'http://a.example/3', crawlId: 'stopped' },
      { url: 'http://a.example/4', expiresAt: Date.now() - 1 },
    ])
    const outcomes = await settled(6)
    expect(outcomes.map(({ kind, reason, status, url }) => `${kind} ${reason} ${status} ${new URL(url).pathname}`).sort()).toEqual([
      'DUPLICATE known-url null /x',
      'EXPIRED expired null /4',
      'FETCHED null 200 /x',
      'FETCHED null 404 /gone',
      'REFUSED budget-pages null /2',
      'REFUSED crawl-stopped null /3',
    ])
    expect(exchange.requests).toHaveLength(2)
  })

  it('has a page of a crawl fetched in the place of one that failed, and a hop to another domain in that of its parent', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [100, 60_000, 600_000, 3_600_000] })
    const exchange = fakeExchange(({ url }) => {
      if (url.host === 'busy.example') return { status: 503 }
      if (url.host === 'moved.example') return { status: 302, headers: { location: 'http://new.example/' } }
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange, {
      budgetsOf: ({ crawlId }) => [{ id: crawlId ?? '', limit: 1, reason: 'budget-pages' }],
      retry: { maxAttempts: 2, firstDelayMs: 2_000, maxDelayMs: 2_000 },
    })
    await fixture.produce([
      { url: 'http://busy.example/', crawlId: 'failing' },
      { url: 'http://moved.example/', crawlId: 'moved' },
    ])
    await eventually(async () => (await fixture.outcomes()).some(({ kind }) => kind === 'RETRY'))
    await fixture.produce([{ url: 'http://good.example/', crawlId: 'failing' }])
    await eventually(() => fixture.seen.count('LimiterWaited') > 0)
    await fixture.delayWorker()
    const outcomes = await settled(4)
    expect(outcomes.map(({ kind, reason, url }) => `${kind} ${reason} ${new URL(url).host}`).sort()).toEqual([
      'FAILED http-503 busy.example',
      'FETCHED null good.example',
      'FETCHED null new.example',
      'REDIRECTED other-domain moved.example',
    ])
  })

  it('spills what would wait too long, keeps its window open for others, and fetches it all in the end', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [100, 60_000, 600_000, 3_600_000] })
    const exchange = fakeExchange(() => ({ body: 'x' }))
    await fixture.fetchWorker(exchange, {
      paceOf: (url) => ({ ...fastPace(url), ratePerSecond: 20, burst: 1, concurrency: 1 }),
      spill: { ...SPILL_LIMITS, maxWaitMs: 500 },
    })
    await fixture.delayWorker()
    await fixture.produce(Array.from({ length: 60 }, (_, i) => ({ url: `http://big.example/${i}` })))
    await fixture.produce([{ url: 'http://small.example/' }])
    await settled(61)
    const outcomes = await fixture.outcomes()
    expect(outcomes.every(({ kind, attempt }) => kind === 'FETCHED' && attempt === 1)).toBe(true)
    expect(fixture.seen.count('TaskSpilled')).toBeGreaterThan(20)
    expect(exchange.requests).toHaveLength(61)
  })

  it('puts nothing aside while an operator or the disk holds all starts, and fetches it all afterwards', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const exchange = fakeExchange(() => ({ body: 'ok' }))
    const worker = await fixture.fetchWorker(exchange, { spill: { ...SPILL_LIMITS, maxPerWindow: 5 } })
    await fixture.produce([{ url: 'http://first.example/' }])
    await settled(1)
    worker.holdRequests(true)
    await fixture.produce(Array.from({ length: 60 }, (_, i) => ({ url: `http://large.example/p${i}` })))
    await eventually(() => worker.view().windowMessages === 60)
    for (const { topic } of fixture.topics.delays) expect(await fixture.messages(topic)).toEqual([])
    expect([fixture.seen.count('TaskAccepted'), fixture.seen.count('TaskSpilled')]).toEqual([1, 0])
    worker.holdRequests(false)
    await fixture.delayWorker()
    await settled(61)
  })

  it('repeats after an abort only what was in flight, and asks for no finished task again', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    let isStuck = true
    const exchange = fakeExchange(async ({ url, signal }) => {
      if (isStuck && url.pathname.startsWith('/hold')) {
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      }
      return { body: 'x' }
    })
    const first = await fixture.fetchWorker(exchange)
    const tasks = await fixture.produce([
      ...Array.from({ length: 3 }, (_, i) => ({ url: `http://h${i}.example/hold` })),
      ...Array.from({ length: 30 }, (_, i) => ({ url: `http://q${i}.example/` })),
    ])
    await settled(30)
    await eventually(() => first.view().inFlight === 3)
    // An attempt is noted as finished after its outcome is written; one that is stopped in between is asked for again.
    const quick = tasks.slice(3).map(({ taskId }) => ({ taskId, attempt: 1 }))
    await eventually(async () => (await fixture.state.isFinished(quick)).every(Boolean), { what: 'all to be noted' })
    await first.stop({ mode: 'abort', timeoutMs: 0 })
    isStuck = false
    const before = exchange.requests.length
    await fixture.fetchWorker(exchange)
    await settled(33)
    expect(exchange.requests.slice(before).map(({ url }) => url.pathname)).toEqual(['/hold', '/hold', '/hold'])
    expect((await fixture.outcomes()).length).toBe(33)
  })

  it('drains: what is on the wire is finished and committed, what waits is left for the next', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    let release = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const exchange = fakeExchange(async () => {
      await gate
      return { body: 'x' }
    })
    const slow = { paceOf: (url: URL) => ({ ...fastPace(url), concurrency: 1 }) }
    const worker = await fixture.fetchWorker(exchange, slow)
    await fixture.produce(Array.from({ length: 4 }, (_, i) => ({ url: `http://one.example/${i}` })))
    await eventually(() => worker.view().inFlight === 1 && worker.view().waiting === 3)
    const stopped = worker.stop({ mode: 'drain', timeoutMs: 5_000 })
    release()
    await stopped
    expect(exchange.requests).toHaveLength(1)
    expect(await fixture.outcomes()).toHaveLength(1)
    await fixture.fetchWorker(exchange, slow)
    await settled(4)
    expect(exchange.requests.map(({ url }) => url.pathname)).toEqual(['/0', '/1', '/2', '/3'])
  })

  it('ends one task, and no other, when the work on it throws', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const exchange = fakeExchange(({ url }) => {
      if (url.pathname === '/defect') throw new TypeError('x is not a function')
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange)
    await fixture.produce([{ url: 'http://a.example/defect' }, { url: 'http://a.example/fine' }])
    const outcomes = await settled(2)
    expect(outcomes.map(({ kind, reason }) => `${kind} ${reason}`).sort()).toEqual(['FAILED internal', 'FETCHED null'])
    const [dead] = await fixture.messages(fixture.topics.deadLetters)
    expect(String(dead?.headers['millrace-error-code'])).toBe('INTERNAL')
    expect(String(dead?.headers['millrace-error-message'])).toContain('x is not a function')
  })

  it('sends a task that lies in a wrong partition to the right one, once', async () => {
    fixture = await FetchFixture.open({ partitions: 4 })
    await fixture.fetchWorker(fakeExchange(() => ({ body: 'x' })))
    const url = 'http://moved.example/'
    const right = fixture.publisher.partitionOf({ url })
    const topic = fixture.topics.urls.normal
    await fixture.producer.send([{ topic, partition: (right + 1) % 4, key: null, value: Buffer.from(JSON.stringify({ url })) }])
    await settled(1)
    expect(fixture.seen.count('TaskMoved')).toBe(1)
    const copies = (await fixture.messages(topic)).filter(({ headers }) => headers['millrace-moved'] !== undefined)
    expect(copies.map(({ partition, headers }) => [partition, String(headers['millrace-moved'])])).toEqual([[right, '1']])
  })

  it('asks robots.txt before the first page of an origin, obeys it, and takes its crawl delay', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const requests: { start: number; end: number }[] = []
    // Several at a time by its rule, and answers that take a while.
    const exchange = fakeExchange(async ({ url }) => {
      if (url.host === 'absent.example' && url.pathname === '/robots.txt') return { status: 404 }
      if (url.pathname === '/robots.txt') return { body: 'User-agent: *\nDisallow: /private\nCrawl-delay: 0.3' }
      const start = performance.now()
      await systemClock.sleep(60)
      if (url.host === 'rules.example') requests.push({ start, end: performance.now() })
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange, { robots: 'obey' })
    await fixture.produce([
      ...Array.from({ length: 3 }, (_, i) => ({ url: `http://rules.example/${i}` })),
      { url: 'http://rules.example/private/1' },
      { url: 'http://absent.example/private/1' },
    ])
    const outcomes = await settled(5)
    expect(outcomes.filter(({ kind }) => kind === 'REFUSED').map(({ url, reason }) => `${url} ${reason}`)).toEqual([
      'http://rules.example/private/1 robots',
    ])
    expect(exchange.requests.filter(({ url }) => url.pathname === '/robots.txt')).toHaveLength(2)
    const gaps = requests.slice(1).map(({ start }, index) => start - (requests[index]?.end ?? 0))
    expect(gaps).toHaveLength(2)
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(295)
    const page = (await fixture.pages()).find(({ url }) => url === 'http://rules.example/0')
    expect(page).toMatchObject({ robots: { verdict: 'allowed' }, policy: { crawlDelayMs: 300 } })
  })

  it('C134: keeps its own crawl delay where robots.txt asks for a shorter one', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const requests: { start: number; end: number }[] = []
    const exchange = fakeExchange(async ({ url }) => {
      if (url.pathname === '/robots.txt') return { body: 'User-agent: *\nCrawl-delay: 0.05' }
      const start = performance.now()
      await systemClock.sleep(60)
      requests.push({ start, end: performance.now() })
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange, { robots: 'obey', paceOf: (url) => ({ ...fastPace(url), crawlDelayMs: 400 }) })
    await fixture.produce(Array.from({ length: 3 }, (_, i) => ({ url: `http://slow.example/${i}` })))
    await settled(3)
    const gaps = requests.slice(1).map(({ start }, index) => start - (requests[index]?.end ?? 0))
    expect(gaps).toHaveLength(2)
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(395)
    expect((await fixture.pages()).map(({ policy }) => policy?.crawlDelayMs)).toEqual([400, 400, 400])
  })

  it('waits for a proxy as it waits for its store: no attempt is used up, and what expires meanwhile ends as that', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    let backMono = 0
    const asked: string[] = []
    const exchange = fakeExchange(({ url }) => {
      asked.push(url.pathname)
      if (asked.length % 2 === 0) return { body: url.pathname === '/robots.txt' ? 'User-agent: *' : 'x' }
      // Nobody is there: for the robots.txt, and once more for the page.
      backMono = performance.now() + 300
      return { kind: 'failure', reason: 'proxy-down', detail: 'proxy a: refused', totalMs: 0 }
    })
    const proxiesBackInMs = ({ hostname }: URL): number =>
      hostname === 'never.example' ? 100 : Math.max(0, Math.ceil(backMono - performance.now()))
    const retry = { maxAttempts: 1, firstDelayMs: 1, maxDelayMs: 1 }
    await fixture.fetchWorker({ ...exchange, proxiesBackInMs }, { robots: 'obey', retry })
    await fixture.produce([{ url: 'http://behind.example/' }])
    await settled(1)
    await fixture.produce([{ url: 'http://never.example/', expiresAt: Date.now() + 3_000 }])
    await settled(2)
    expect(asked).toEqual(['/robots.txt', '/robots.txt', '/', '/'])
    expect((await fixture.outcomes()).map(({ kind, reason, attempt }) => `${kind} ${reason} ${attempt}`).sort()).toEqual([
      'EXPIRED expired 1',
      'FETCHED null 1',
    ])
    expect(fixture.seen.count('LimiterWaited', { reason: 'proxies-out' })).toBeGreaterThanOrEqual(3)
    expect(await fixture.messages(fixture.topics.deadLetters)).toEqual([])
  })

  it('retries tasks whose robots.txt can not be had, and refuses them at the end', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [100, 60_000, 600_000, 3_600_000] })
    const exchange = fakeExchange(({ url }) => (url.pathname === '/robots.txt' ? { status: 500 } : { body: 'x' }))
    await fixture.fetchWorker(exchange, { robots: 'obey', retry: { maxAttempts: 2, firstDelayMs: 200, maxDelayMs: 1_000 } })
    await fixture.delayWorker()
    await fixture.produce([{ url: 'http://broken.example/' }])
    await settled(1)
    expect((await fixture.outcomes()).map(({ kind, reason, attempt }) => `${kind} ${reason} ${attempt}`)).toEqual([
      'RETRY robots-unreachable 1',
      'REFUSED robots-unreachable 2',
    ])
    expect(exchange.requests.every(({ url }) => url.pathname === '/robots.txt')).toBe(true)
    expect(await fixture.messages(fixture.topics.deadLetters)).toEqual([])
  })

  it('skips a copy of a finished task: no request, no outcome, counted', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const exchange = fakeExchange(() => ({ body: 'x' }))
    await fixture.fetchWorker(exchange)
    const [task] = await fixture.produce([{ url: 'http://a.example/once' }])
    await settled(1)
    await eventually(async () => (await fixture.state.isFinished([{ taskId: task?.taskId ?? '', attempt: 1 }]))[0])
    await fixture.publisher.publish([task as NonNullable<typeof task>])
    await fixture.produce([{ url: 'http://b.example/after' }])
    await settled(2)
    await eventually(() => fixture.seen.count('RepeatSkipped') === 1)
    expect(exchange.requests).toHaveLength(2)
    expect(await fixture.outcomes()).toHaveLength(2)
  })

  it('counts bodies while they come: where too many bytes are in memory large ones wait for others', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const held: boolean[] = []
    let letAllCome = (): void => undefined
    const allCame = new Promise<void>((resolve) => (letAllCome = resolve))
    const exchange = fakeExchange(async ({ onBody }, count) => {
      const room = onBody?.(300_000)
      held.push(room !== undefined)
      if (count === 10) letAllCome()
      // Those that may read on are whole when all have come; the others wait for them.
      await (room ?? allCame)
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange, { maxBytesInFlight: 2_000_000 })
    await fixture.produce(Array.from({ length: 10 }, (_, index) => ({ url: `http://host${index}.example/` })))
    await eventually(() => fixture.finalOutcomes(10))
    expect(held).toHaveLength(10)
    expect(held[0]).toBe(false)
    expect(held.filter(Boolean).length).toBeGreaterThan(0)
  })

  it('skips a copy of what its crawl knows as final, however late it comes', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const exchange = fakeExchange(() => ({ body: 'x' }))
    // Days later the notes of what was finished are gone.
    const state = new Proxy(fixture.state, {
      get: (store, name) => {
        if (name === 'isFinished') return async (attempts: readonly unknown[]) => attempts.map(() => false)
        const value: unknown = Reflect.get(store, name)
        return typeof value === 'function' ? value.bind(store) : value
      },
    })
    await fixture.fetchWorker(exchange, { state })
    const crawlId = uniqueName('crawl')
    const tasks = await fixture.produce([{ url: 'http://a.example/once', crawlId, dedup: 'crawl' }])
    await settled(1)
    await eventually(async () => (await fixture.state.crawlCounts(crawlId)).final === 1)
    await fixture.publisher.publish(tasks)
    await fixture.produce([{ url: 'http://a.example/after', crawlId, dedup: 'crawl' }])
    await eventually(() => exchange.requests.some(({ url }) => url.pathname === '/after'))
    await eventually(() => fixture.finalOutcomes(2))
    expect(exchange.requests.map(({ url }) => url.pathname)).toEqual(['/once', '/after'])
    await eventually(() => fixture.seen.count('RepeatSkipped') === 1)
    // As a link is whose claim has lapsed: it is to be fetched anew.
    const again = await fixture.produce([{ url: 'http://a.example/again', crawlId, dedup: 'ttl' }])
    await eventually(() => fixture.finalOutcomes(3))
    await fixture.publisher.publish(again)
    await eventually(() => fixture.finalOutcomes(4))
    expect(exchange.requests.map(({ url }) => url.pathname)).toEqual(['/once', '/after', '/again', '/again'])
    // But a sitemap, which is read once in a crawl.
    const sitemap = await fixture.produce([{ url: 'http://a.example/map.xml', crawlId, dedup: 'ttl', sitemapLevel: 1 }])
    await eventually(() => fixture.finalOutcomes(5))
    await fixture.publisher.publish(sitemap)
    await eventually(() => fixture.seen.count('RepeatSkipped') === 2)
    expect(exchange.requests.filter(({ url }) => url.pathname === '/map.xml')).toHaveLength(1)
  })

  it('fetches what was to wait once it comes back from its wait, though its own clock is behind that of the delay stage', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const exchange = fakeExchange(() => ({ body: 'x' }))
    await fixture.fetchWorker(exchange, { clock: { ...systemClock, now: () => Date.now() - 4_000 } })
    await fixture.delayWorker()
    await fixture.produce([{ url: 'http://a.example/later', notBefore: Date.now() + 1_000 }])
    await settled(1)
    expect(exchange.requests).toHaveLength(1)
    const copies = (await Promise.all(fixture.topics.delays.map(({ topic }) => fixture.messages(topic)))).flat()
    expect(copies).toHaveLength(1)
  })

  it('asks the store for what is known of the page before the limiter gives a start, which does not wait for it', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const asked: string[] = []
    const state = new Proxy(fixture.state, {
      get: (store, name) => {
        const value: unknown = Reflect.get(store, name)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          asked.push(String(name))
          return Reflect.apply(value, store, args)
        }
      },
    })
    await fixture.fetchWorker(
      fakeExchange(() => ({ body: 'x' })),
      { state },
    )
    await fixture.produce([{ url: 'http://a.example/', ifChanged: true }])
    await settled(1)
    expect(asked.filter((name) => name === 'acquire' || name === 'readValidators')).toEqual(['readValidators', 'acquire'])
  })

  it('asks the limiter again where the process stood still for longer than the lease lives, before anything leaves', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    let stoodStillMs = 0
    const clock = { ...systemClock, mono: () => systemClock.mono() + stoodStillMs }
    let leaseCount = 0
    const state = new Proxy(fixture.state, {
      get: (store, name) => {
        const value: unknown = Reflect.get(store, name)
        if (name !== 'acquire' || typeof value !== 'function') return typeof value === 'function' ? value.bind(store) : value
        return async (...args: unknown[]) => {
          const answer: LimiterAnswer = await Reflect.apply(value, store, args)
          if (answer.kind === 'lease') leaseCount += 1
          if (leaseCount === 1) stoodStillMs += 3_600_000
          return answer
        }
      },
    })
    const exchange = fakeExchange(async ({ beforeSent }, count) => {
      if (count > 1) return { body: 'x' }
      // Once more when its connection stands.
      stoodStillMs += 3_600_000
      const reason = await beforeSent?.().catch((error: Error) => error.message)
      return { kind: 'failure', reason: 'network-error', detail: String(reason), totalMs: 1 }
    })
    await fixture.fetchWorker(exchange, { state, clock })
    await fixture.produce([{ url: 'http://a.example/' }])
    await settled(1)
    expect((await fixture.outcomes()).map(({ kind, attempt }) => `${kind} ${attempt}`)).toEqual(['FETCHED 1'])
    expect([leaseCount, exchange.requests.length]).toEqual([3, 2])
    // A place is given back a moment after the outcome is written.
    const leases = async (): Promise<number> => (await fixture.state.limiterState('a.example' as PolitenessKey)).leases
    await eventually(async () => (await leases()) === 0, { what: 'no request of the site' })
  })

  it('asks once for an attempt whose copies come before it has ended, whether it waits or is on the wire', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const tasks = Array.from({ length: 4 }, (_, i) => ({ url: `http://a.example/${i}`, taskId: uniqueName('copy') }))
    await fixture.produce([...tasks, ...tasks, ...tasks])
    let answer: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      answer = resolve
    })
    const exchange = fakeExchange(() => gate.then(() => ({ body: 'x' })))
    await fixture.fetchWorker(exchange, { paceOf: (url) => ({ ...fastPace(url), concurrency: 2 }) })
    await eventually(() => exchange.requests.length === 2)
    await fixture.produce(tasks)
    answer()
    await settled(4)
    await eventually(() => fixture.seen.count('RepeatSkipped') === 12)
    expect(exchange.requests.map(({ url }) => url.pathname).sort()).toEqual(['/0', '/1', '/2', '/3'])
    expect(await fixture.pages()).toHaveLength(4)
    expect(await fixture.outcomes()).toHaveLength(4)
  })

  it('starts no request while the store is away, guesses nothing, and goes on by itself', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    let isAway = false
    const state = new Proxy(fixture.state, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return (...args: unknown[]) =>
          isAway ? Promise.reject(new MillraceError('STATE_UNAVAILABLE', 'away')) : Reflect.apply(value, target, args)
      },
    })
    const exchange = fakeExchange(() => ({ body: 'x' }))
    await fixture.fetchWorker(exchange, { state })
    await fixture.produce([{ url: 'http://a.example/1' }])
    await settled(1)
    isAway = true
    await fixture.produce(Array.from({ length: 5 }, (_, i) => ({ url: `http://a${i}.example/2` })))
    await eventually(() => fixture.seen.count('StorePaused') > 0)
    expect(exchange.requests).toHaveLength(1)
    isAway = false
    await settled(6)
    expect(exchange.requests).toHaveLength(6)
    expect(fixture.seen.count('StoreResumed')).toBeGreaterThan(0)
  })

  it('leaves a site alone for as long as it asks, its other tasks included, and goes on with the others', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [100, 60_000, 600_000, 3_600_000] })
    const starts: { host: string; at: number }[] = []
    const exchange = fakeExchange(({ url }) => {
      starts.push({ host: url.host, at: performance.now() })
      const isFirst = starts.filter(({ host }) => host === 'busy.example').length === 1
      return url.host === 'busy.example' && isFirst ? { status: 429, headers: { 'retry-after': '2' } } : { body: 'x' }
    })
    await fixture.fetchWorker(exchange, { paceOf: (url) => ({ ...fastPace(url), concurrency: 1 }) })
    await fixture.delayWorker()
    await fixture.produce(Array.from({ length: 8 }, (_, i) => ({ url: `http://${i % 2 === 0 ? 'busy' : 'free'}.example/${i}` })))
    await settled(8)
    const busy = starts.filter(({ host }) => host === 'busy.example').map(({ at }) => at)
    expect(busy).toHaveLength(5)
    expect((busy[1] ?? 0) - (busy[0] ?? 0)).toBeGreaterThanOrEqual(1_990)
    const free = starts.filter(({ host }) => host === 'free.example').map(({ at }) => at)
    const [first = 0, second = 0] = busy
    expectInTime((free.at(-1) ?? Number.NaN) - first, second - first, 'the free site')
  })

  it('ends what expires before its site may be asked again when it expires, and what was asked at once', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [100, 60_000, 600_000, 3_600_000] })
    const exchange = fakeExchange(() => ({ status: 503, headers: { 'retry-after': '86400' } }))
    await fixture.fetchWorker(exchange, { paceOf: (url) => ({ ...fastPace(url), concurrency: 1 }) })
    await fixture.delayWorker()
    const expiresAt = Date.now() + 3_000
    await fixture.produce([
      { url: 'http://a.example/asked', expiresAt: Date.now() + 60_000 },
      { url: 'http://a.example/waits', expiresAt },
      { url: 'http://b.example/later', expiresAt, notBefore: Date.now() + 86_400_000 },
    ])
    const outcomes = await settled(3)
    expect(outcomes.map(({ kind, reason, status, url }) => `${kind} ${reason} ${status} ${new URL(url).pathname}`).sort()).toEqual([
      'EXPIRED expired 503 /asked',
      'EXPIRED expired null /later',
      'EXPIRED expired null /waits',
    ])
    const waited = outcomes.filter(({ status }) => status === null).map(({ at }) => at)
    expect(Math.min(...waited)).toBeGreaterThanOrEqual(expiresAt)
    expect(exchange.requests).toHaveLength(1)
    expect(await fixture.messages(fixture.topics.deadLetters)).toEqual([])
  })

  it('keeps a page that was cut only when there is no further attempt', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [100, 60_000, 600_000, 3_600_000] })
    const exchange = fakeExchange(({ url }, count) => ({
      body: 'short',
      ...(url.pathname === '/ever' || count === 1 ? { truncated: 'network' } : {}),
    }))
    await fixture.fetchWorker(exchange, { retry: { maxAttempts: 2, firstDelayMs: 100, maxDelayMs: 200 } })
    await fixture.delayWorker()
    await fixture.produce([{ url: 'http://a.example/once' }])
    await settled(1)
    await fixture.produce([{ url: 'http://a.example/ever' }])
    await settled(2)
    expect((await fixture.pages()).map(({ url, truncated, attempt }) => [new URL(url).pathname, truncated, attempt])).toEqual([
      ['/once', null, 2],
      ['/ever', 'network', 2],
    ])
  })

  it('lives through tasks whose outcome, or whose copy, is too large for its topic', async () => {
    fixture = await FetchFixture.open({ partitions: 2 })
    await fixture.fetchWorker(fakeExchange(() => ({ body: 'x' })))
    const topic = fixture.topics.urls.normal
    const url = 'http://big.example/'
    const right = fixture.publisher.partitionOf({ url })
    const json = (fields: object): Buffer => Buffer.from(JSON.stringify({ url, ...fields }))
    const huge = 'j'.repeat(1_048_300)
    await fixture.producer.send([
      { topic, partition: right, key: null, value: json({ taskId: 'large-job', jobId: huge }) },
      { topic, partition: right, key: null, value: json({ taskId: huge }) },
      { topic, partition: 1 - right, key: null, value: json({ taskId: 'large-copy', meta: { m: huge } }) },
      { topic, partition: right, key: null, value: json({ taskId: 'large-url', url: `${url}?${huge.slice(0, -100)}` }) },
      { topic, partition: right, key: null, value: json({ taskId: 'large-identity', canonicalUrl: `${url}?${huge.slice(0, 700_000)}` }) },
      { topic, partition: right, key: null, value: json({ taskId: 'small' }) },
    ])
    const outcomes = await settled(5)
    expect(outcomes.map(({ taskId, kind, reason }) => `${taskId.slice(0, 20)} ${kind} ${reason}`).sort()).toEqual([
      'large-copy FAILED message-too-large',
      'large-identity FAILED bad-url',
      'large-job FAILED message-too-large',
      'large-url FAILED message-too-large',
      'small FETCHED null',
    ])
    await eventually(async () => (await fixture.messages(fixture.topics.deadLetters)).length === 5)
  })

  it('writes no outcome of a page that the broker refuses: its topic still has the limit of before', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const { client, seen } = fixture
    const producer = new DurableProducer({ client, clock: systemClock, observer: seen.observer, maxBatchBytes: () => 20_971_520 })
    await producer.start()
    fixture.onClose(() => producer.stop({ mode: 'drain', timeoutMs: 10_000 }))
    const body = randomBytes(2_200_000).toString('base64')
    await fixture.fetchWorker(
      fakeExchange(({ url }) => ({ body: url.pathname === '/large' ? body : 'x' })),
      { producer },
    )
    await fixture.produce([{ url: 'http://a.example/large' }, { url: 'http://a.example/small' }])
    const kinds = (outcomes: readonly Outcome[]): string[] =>
      outcomes.map(({ url, kind, reason }) => `${new URL(url).pathname} ${kind} ${reason}`).sort()
    expect(kinds(await settled(2))).toEqual(['/large FAILED body-too-large', '/small FETCHED null'])
    expect((await fixture.pages()).map(({ url }) => url)).toEqual(['http://a.example/small'])
  })
})
