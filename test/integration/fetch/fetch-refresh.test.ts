import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture, fakeExchange } from '../../support/fetch-fixture.ts'

let fixture: FetchFixture
afterEach(() => fixture.close())

const refresh = (to: string) => ({ body: `<meta http-equiv=refresh content="3; url=${to}">`, headers: { 'content-type': 'text/html' } })

describe('a fetch worker and pages that refresh', () => {
  it('follows them like redirects, and keeps the page where they only turn in a circle', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const exchange = fakeExchange(({ url }) => {
      if (url.pathname === '/moved') return refresh('here')
      if (url.pathname === '/away') return refresh('http://two.example/there')
      if (url.pathname.startsWith('/slide')) return refresh(url.pathname === '/slide1' ? '/slide2' : '/slide1')
      return { body: url.href }
    })
    await fixture.fetchWorker(exchange)
    const headers = { 'x-token': 'secret' }
    await fixture.produce(['moved', 'away', 'slide1'].map((path) => ({ url: `http://one.example/${path}`, headers })))
    const outcomes = await eventually(() => fixture.finalOutcomes(4), { everyMs: 100, what: '4 outcomes' })
    expect(outcomes.map(({ kind, reason, status, url }) => `${kind} ${reason} ${status} ${url}`).sort()).toEqual([
      'FETCHED null 200 http://one.example/moved',
      'FETCHED null 200 http://one.example/slide1',
      'FETCHED null 200 http://two.example/there',
      'REDIRECTED other-domain 200 http://one.example/away',
    ])
    const pages = await fixture.pages()
    expect(
      Object.fromEntries(pages.map(({ url, finalUrl, redirects }) => [url, [finalUrl, redirects.map(({ location }) => location)]])),
    ).toEqual({
      'http://one.example/moved': ['http://one.example/here', ['here']],
      'http://one.example/slide1': ['http://one.example/slide2', ['/slide2']],
      'http://two.example/there': ['http://two.example/there', ['http://two.example/there']],
    })
    const sentTo = exchange.requests.filter((request) => request.headers['x-token'] !== undefined).map(({ url }) => url.host)
    expect(new Set(sentTo)).toEqual(new Set(['one.example']))
  })
})
