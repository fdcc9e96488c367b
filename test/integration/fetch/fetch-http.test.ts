import { createHash, randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HttpClient } from '../../../src/fetch/http-client.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { unpackPageBody } from '../../../src/message/page-body.ts'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture, fastPace, TestSite } from '../../support/fetch-fixture.ts'

const bodies = new Map<string, Buffer>([
  ['/plain', Buffer.from(`<h1>plain ${'é'.repeat(500)}</h1>`)],
  ['/bytes', Buffer.concat([Buffer.from('<p>'), randomBytes(5_000)])],
  ['/empty', Buffer.alloc(0)],
  ['/search?q=top-1||60|1&Fr=4', Buffer.from('<p>bars</p>')],
  ['/a%20b?c%20d', Buffer.from('<p>spaces</p>')],
])

let fixture: FetchFixture
let site: TestSite

beforeEach(async () => {
  fixture = await FetchFixture.open({ delays: [200, 60_000, 600_000, 3_600_000] })
  site = await new TestSite((request, response) => {
    const body = bodies.get(request.path.replace(/^\/gzip/, ''))
    if (request.path === '/robots.txt') response.writeHead(404).end()
    else if (request.path === '/busy') response.writeHead(503, { 'retry-after': '1' }).end()
    else if (request.path === '/gone') response.writeHead(410, { 'content-type': 'text/html' }).end('gone')
    else if (request.path === '/image') response.writeHead(200, { 'content-type': 'image/png' }).end(randomBytes(100))
    else if (request.path === '/big') response.writeHead(200, { 'content-type': 'text/html' }).end(Buffer.alloc(3_000_000, 'x'))
    else if (request.path === '/cut-once') {
      // Five bytes of the five hundred that were promised, then the connection ends; whole when it is asked again.
      const isFirst = site.requests.filter(({ path }) => path === '/cut-once').length === 1
      response.writeHead(200, { 'content-type': 'text/html', 'content-length': 500 })
      if (isFirst) response.write('<h1>1', () => response.destroy())
      else response.end('y'.repeat(500))
    } else if (request.path === '/hop') response.writeHead(302, { location: '/plain' }).end()
    else if (request.path === '/inward') response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end()
    else if (request.path === '/inward-refresh') {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<meta http-equiv=refresh content="0;url=http://10.0.0.1/">')
    } else if (body === undefined) response.writeHead(404).end()
    else if (request.path.startsWith('/gzip')) {
      response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' }).end(gzipSync(body))
    } else response.writeHead(200, { 'content-type': 'text/html' }).end(body)
  }).open()
  fixture.onClose(() => site.close())
})
afterEach(() => fixture.close())

describe('a fetch worker on a real site', () => {
  it('stores pages byte for byte, plain and packed, and says what was cut or not kept', async () => {
    const exchange = new HttpClient({ resolve: { '*.example': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock })
    fixture.onClose(() => exchange.close())
    const worker = await fixture.fetchWorker(exchange, {
      robots: 'obey',
      paceOf: fastPace,
      retry: { maxAttempts: 2, firstDelayMs: 100, maxDelayMs: 500 },
    })
    await fixture.delayWorker()
    const paths = ['/plain', '/bytes', '/empty', '/gzip/plain', '/gzip/bytes', '/gone', '/image', '/big', '/hop', '/inward', '/busy']
    await fixture.produce(paths.map((path, i) => ({ url: site.url(`h${i}.example`, path) })))
    // The hop to the inward address is a task of its own.
    const outcomes = await eventually(() => fixture.finalOutcomes(paths.length + 1), { everyMs: 200 })
    const said = Object.fromEntries(outcomes.map(({ url, kind, reason, status }) => [new URL(url).pathname, `${kind} ${reason} ${status}`]))
    expect(said).toEqual({
      '/plain': 'FETCHED null 200',
      '/bytes': 'FETCHED null 200',
      '/empty': 'FETCHED null 200',
      '/gzip/plain': 'FETCHED null 200',
      '/gzip/bytes': 'FETCHED null 200',
      '/gone': 'FETCHED null 410',
      '/image': 'FETCHED null 200',
      '/big': 'FETCHED null 200',
      '/hop': 'FETCHED null 200',
      '/inward': 'REDIRECTED other-domain 302',
      '/latest/meta-data': 'REFUSED address-refused null',
      '/busy': 'FAILED http-503 503',
    })
    const pages = new Map((await fixture.pages()).map((page) => [new URL(page.url).pathname, page]))
    for (const path of ['/plain', '/bytes', '/empty', '/gzip/plain', '/gzip/bytes']) {
      const page = pages.get(path)
      if (page === undefined) throw new Error(`no page for ${path}`)
      const body = bodies.get(path.replace('/gzip', '')) ?? Buffer.alloc(0)
      expect(page.bodySha256).toBe(createHash('sha256').update(body).digest('hex'))
      const unpacked = await unpackPageBody(page)
      expect(unpacked.ok && unpacked.bytes.equals(body)).toBe(true)
    }
    expect(pages.get('/gzip/bytes')?.bodyEncoding).toBe('gzip')
    expect(pages.get('/image')).toMatchObject({ truncated: 'type', bodyLength: 0 })
    expect(pages.get('/big')).toMatchObject({ truncated: 'size', bodyLength: 1_048_576 })
    expect(pages.get('/hop')).toMatchObject({ finalUrl: site.url('h8.example', '/plain'), remoteAddress: '127.0.0.1' })
    expect(site.requests.filter(({ path }) => path === '/busy')).toHaveLength(2)
    // They go a moment after their outcomes are written.
    await eventually(() => worker.view().inFlight + worker.view().sites === 0, { what: 'no request and no site' })
    expect(worker.view()).toMatchObject({ waiting: 0, inFlight: 0, sites: 0 })
  })

  it('C149: takes an answer that ended too early for none, whatever its status, and keeps the whole one that comes next', async () => {
    const exchange = new HttpClient({ resolve: { '*.example': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock })
    fixture.onClose(() => exchange.close())
    await fixture.fetchWorker(exchange, { paceOf: fastPace, retry: { maxAttempts: 3, firstDelayMs: 100, maxDelayMs: 500 } })
    await fixture.delayWorker()
    await fixture.produce([{ url: site.url('h.example', '/cut-once') }])
    const [outcome] = await eventually(() => fixture.finalOutcomes(1), { everyMs: 100 })
    expect(outcome).toMatchObject({ kind: 'FETCHED', status: 200, attempt: 2 })
    const pages = await fixture.pages()
    expect(pages.map(({ attempt, bodyLength, truncated }) => ({ attempt, bodyLength, truncated }))).toEqual([
      { attempt: 2, bodyLength: 500, truncated: null },
    ])
  })

  it('C011: asks for URLs with bars and spaces as browsers do, and gives none of them up', async () => {
    const exchange = new HttpClient({ resolve: { '*.example': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock })
    fixture.onClose(() => exchange.close())
    await fixture.fetchWorker(exchange)
    await fixture.produce(['/search?q=top-1||60|1&Fr=4', '/a b?c d'].map((path) => ({ url: site.url('h.example', path) })))
    const outcomes = await eventually(() => fixture.finalOutcomes(2), { everyMs: 100 })
    expect(outcomes.map(({ kind, status }) => `${kind} ${status}`)).toEqual(['FETCHED 200', 'FETCHED 200'])
    expect(site.requests.map(({ path }) => path).sort()).toEqual(['/a%20b?c%20d', '/search?q=top-1||60|1&Fr=4'])
    expect(await fixture.messages(fixture.topics.deadLetters)).toEqual([])
  })

  it('C186: asks no address that is not public where a redirect or a page that refreshes leads there, once', async () => {
    const exchange = new HttpClient({ resolve: { '*.example': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock })
    fixture.onClose(() => exchange.close())
    await fixture.fetchWorker(exchange, { robots: 'obey' })
    await fixture.produce([{ url: site.url('a.example', '/inward') }, { url: site.url('b.example', '/inward-refresh') }])
    const outcomes = await eventually(() => fixture.finalOutcomes(4), { everyMs: 100 })
    expect(outcomes.map(({ kind, reason, attempt, url }) => `${kind} ${reason} ${attempt} ${new URL(url).hostname}`).sort()).toEqual([
      'REDIRECTED other-domain 1 a.example',
      'REDIRECTED other-domain 1 b.example',
      'REFUSED address-refused 1 10.0.0.1',
      'REFUSED address-refused 1 169.254.169.254',
    ])
    expect(await fixture.pages()).toEqual([])
  })

  it('C186: asks no address that is not public, robots.txt included', async () => {
    const exchange = new HttpClient({ resolve: { '*.example': '127.0.0.1' }, allowAddresses: [], clock: systemClock })
    fixture.onClose(() => exchange.close())
    await fixture.fetchWorker(exchange, { robots: 'obey' })
    await fixture.produce([{ url: site.url('a.example', '/plain') }, { url: site.url('[::1]', '/plain') }])
    const outcomes = await eventually(() => fixture.finalOutcomes(2), { everyMs: 100 })
    expect(outcomes.map(({ kind, reason }) => `${kind} ${reason}`)).toEqual(['REFUSED address-refused', 'REFUSED address-refused'])
    expect(site.requests).toEqual([])
  })
})
