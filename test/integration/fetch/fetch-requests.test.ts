import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HttpClient } from '../../../src/fetch/http-client.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture } from '../../support/fetch-fixture.ts'
import { uniqueName } from '../../support/services.ts'

interface Asked {
  readonly method: string
  /** Host without its port, and path. */
  readonly at: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

let fixture: FetchFixture
let port = 0
let asked: Asked[] = []
const html = { 'content-type': 'text/html' }

/** What the site answers, by host and path. */
function answer({ at, headers }: Asked, response: ServerResponse): void {
  const to = (status: number, location: string, headers: Record<string, string | string[]> = {}): void =>
    void response.writeHead(status, { location, ...headers }).end()
  if (at === 'shop.test/login') to(303, '/home', { 'set-cookie': ['sid=2; Path=/; HttpOnly', 'junk', 'far=1; Domain=else.test'] })
  else if (at === 'shop.test/keep') to(308, '/form')
  else if (at === 'shop.test/away') to(307, `http://pay.test:${port}/form`, { 'set-cookie': 'cart=7; Path=/' })
  else if (at === 'shop.test/consent') to(302, `http://pay.test:${port}/consent`, { 'set-cookie': 'seen=1; Path=/' })
  else if (at === 'pay.test/consent') to(302, `http://shop.test:${port}/welcome`, { 'set-cookie': 'pay=1' })
  else if (at === 'shop.test/account' && headers.cookie === undefined)
    to(302, `http://pay.test:${port}/sso`, { 'set-cookie': 'visit=1; Path=/' })
  else if (at === 'pay.test/sso') to(302, `http://shop.test:${port}/account`)
  else if (at === 'shop.test/account' && asked.length === 3) response.writeHead(503, html).end('busy')
  else if (at === 'wall.test/') {
    const isFirst = asked.filter((one) => one.at === at).length === 1
    response.writeHead(isFirst ? 403 : 200, isFirst ? { ...html, 'cf-mitigated': 'challenge' } : html).end('page')
  } else if (at === 'wall.test/away') {
    if (asked.filter((one) => one.at === at).length === 1) response.writeHead(403, { ...html, 'cf-mitigated': 'challenge' }).end('wait')
    else to(302, `http://pay.test:${port}/plain`)
  } else if (at === 'shop.test/start') response.writeHead(200, { ...html, 'set-cookie': 'crawl=1; Path=/' }).end('start')
  else if (at === 'shop.test/tagged' && headers['if-none-match'] === '"v1"') response.writeHead(304).end()
  else if (at === 'shop.test/tagged') response.writeHead(200, { ...html, etag: '"v1"' }).end('tagged')
  else response.writeHead(200, html).end(at)
}

beforeEach(async () => {
  asked = []
  fixture = await FetchFixture.open({ delays: [200, 60_000, 600_000, 3_600_000] })
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
    const at = `${(request.headers.host ?? '').replace(/:\d+$/, '')}${request.url}`
    const one = { method: request.method ?? '', at, headers: request.headers, body: Buffer.concat(pieces).toString('latin1') }
    asked.push(one)
    answer(one, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
  fixture.onClose(() => {
    server.closeAllConnections()
    server.close()
  })
})
afterEach(() => fixture.close())

async function worker(cookies: 'none' | 'crawl' = 'none'): Promise<void> {
  const exchange = new HttpClient({ resolve: { '*.test': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock })
  fixture.onClose(() => exchange.close())
  await fixture.fetchWorker(exchange, { cookies })
}

const url = (host: string, path: string): string => `http://${host}:${port}${path}`
const of = (at: string): Asked | undefined => asked.find((one) => one.at === at)

describe('a request of a task', () => {
  it('has its method, headers and body, and keeps them over the redirects that keep them', async () => {
    await worker()
    const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization: 'Basic eA==', cookie: 'sid=1; lang=en' }
    const post = { method: 'POST', headers, body: Buffer.from('user=\xff', 'latin1') }
    await fixture.produce([
      { url: url('shop.test', '/login'), ...post },
      { url: url('shop.test', '/keep'), ...post },
      { url: url('shop.test', '/away'), ...post },
    ])
    // The hop to another domain is a task of its own.
    await eventually(() => fixture.finalOutcomes(4), { everyMs: 100 })
    expect(of('shop.test/login')).toMatchObject({ method: 'POST', body: 'user=\xff', headers: { ...headers, 'content-length': '6' } })
    const home = of('shop.test/home')
    expect(home).toMatchObject({ method: 'GET', body: '', headers: { authorization: 'Basic eA==', cookie: 'lang=en; sid=2' } })
    expect(home?.headers['content-type']).toBeUndefined()
    expect(of('shop.test/form')).toMatchObject({ method: 'POST', body: 'user=\xff', headers })
    const away = of('pay.test/form')
    expect(away).toMatchObject({ method: 'POST', body: 'user=\xff', headers: { 'content-type': headers['content-type'] } })
    expect([away?.headers.authorization, away?.headers.cookie]).toEqual([undefined, undefined])
    expect(fixture.seen.count('CookiesRefused', { count: 2 })).toBe(1)
  })

  it('carries the cookies of its chain of redirects, over another domain and back, and none elsewhere', async () => {
    await worker()
    const crawlId = uniqueName('crawl')
    await fixture.produce([
      { url: url('shop.test', '/consent'), crawlId },
      { url: url('shop.test', '/plain'), crawlId },
    ])
    await eventually(() => fixture.finalOutcomes(4), { everyMs: 100 })
    expect(of('pay.test/consent')?.headers.cookie).toBeUndefined()
    expect(of('shop.test/welcome')?.headers.cookie).toBe('seen=1')
    expect(of('shop.test/plain')?.headers.cookie).toBeUndefined()
    const page = (await fixture.pages()).find(({ finalUrl }) => finalUrl === url('shop.test', '/welcome'))
    expect(page?.redirects.map(({ setCookies }) => setCookies)).toEqual([['seen=1; Path=/'], ['pay=1']])
  })

  it('that a chain over another domain led back to is repeated as what it was, with its chain and cookies, and is no duplicate', async () => {
    await worker()
    await fixture.delayWorker()
    await fixture.produce([{ url: url('shop.test', '/account'), crawlId: uniqueName('crawl'), dedup: 'crawl' }])
    const final = await eventually(() => fixture.finalOutcomes(3), { everyMs: 100 })
    // In whatever order their partitions are read.
    expect(final.map(({ kind, attempt }) => `${kind} ${attempt}`).sort()).toEqual(['FETCHED 2', 'REDIRECTED 1', 'REDIRECTED 1'])
    expect(asked.map(({ at, headers: { cookie } }) => [at, cookie])).toEqual([
      ['shop.test/account', undefined],
      ['pay.test/sso', undefined],
      ['shop.test/account', 'visit=1'],
      ['shop.test/account', 'visit=1'],
    ])
    const [page] = await fixture.pages()
    expect(page?.redirects.map((hop) => hop.url)).toEqual([url('shop.test', '/account'), url('pay.test', '/sso')])
  })

  it('carries the cookies of its crawl where that was asked for', async () => {
    await worker('crawl')
    const [crawlId, other] = [uniqueName('crawl'), uniqueName('crawl')]
    await fixture.produce([{ url: url('shop.test', '/start'), crawlId }])
    await eventually(() => fixture.finalOutcomes(1), { everyMs: 100 })
    await fixture.produce([
      { url: url('shop.test', '/mine'), crawlId },
      { url: url('shop.test', '/other'), crawlId: other },
      { url: url('shop.test', '/alone') },
    ])
    await eventually(() => fixture.finalOutcomes(4), { everyMs: 100 })
    expect(['mine', 'other', 'alone'].map((path) => of(`shop.test/${path}`)?.headers.cookie)).toEqual(['crawl=1', undefined, undefined])
  })

  it('C057: with ifChanged ends unchanged by the validators of the page in html, and writes no page', async () => {
    await worker()
    const visits = [{}, { ifChanged: true }, { ifChanged: true }, {}]
    for (const [index, task] of visits.entries()) {
      await fixture.produce([{ url: url('shop.test', '/tagged'), ...task }])
      await eventually(() => fixture.finalOutcomes(index + 1), { everyMs: 50 })
      const [stored] = await fixture.pages()
      // What the site said is remembered after the outcome is written.
      await eventually(async () => (await fixture.state.readValidators(stored?.canonicalUrl ?? ''))?.etag === '"v1"')
    }
    expect(asked.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"v1"', '"v1"', undefined])
    const outcomes = await fixture.outcomes()
    expect(outcomes.map(({ kind, reason, status }) => `${kind} ${reason} ${status}`).sort()).toEqual([
      'FETCHED null 200',
      'FETCHED null 200',
      'UNCHANGED not-modified 304',
      'UNCHANGED not-modified 304',
    ])
    expect((await fixture.pages()).map(({ status, bodyLength }) => [status, bodyLength])).toEqual([
      [200, 6],
      [200, 6],
    ])
  })

  it('that meets a wall against robots is made again by the slow lane, its links keep theirs, and the wall is counted', async () => {
    await worker()
    await fixture.delayWorker()
    await fixture.produce([{ url: url('wall.test', '/'), lane: 'high' }])
    await eventually(() => fixture.finalOutcomes(1), { everyMs: 100 })
    const outcomes = await fixture.outcomes()
    expect(outcomes.map(({ kind, reason, status, attempt }) => `${kind} ${reason} ${status} ${attempt}`)).toEqual([
      'RETRY challenge 403 1',
      'FETCHED null 200 2',
    ])
    expect((await fixture.pages()).map(({ lane, status }) => `${lane} ${status}`)).toEqual(['high 200'])
    expect(await fixture.messages(fixture.topics.urls.low)).toHaveLength(1)
    expect(fixture.seen.count('ChallengeMet', { vendor: 'cloudflare' })).toBe(1)
  })

  it('that a wall has put into the slow lane leads to another domain in the lane that was asked for', async () => {
    await worker()
    await fixture.delayWorker()
    await fixture.produce([{ url: url('wall.test', '/away'), lane: 'high' }])
    await eventually(() => fixture.finalOutcomes(2), { everyMs: 100 })
    expect((await fixture.pages()).map(({ lane, finalUrl }) => `${lane} ${finalUrl}`)).toEqual([`high ${url('pay.test', '/plain')}`])
    expect(await fixture.messages(fixture.topics.urls.high)).toHaveLength(2)
  })
})
