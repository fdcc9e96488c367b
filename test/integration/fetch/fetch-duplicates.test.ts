import { afterEach, describe, expect, it } from 'vitest'
import type { MessageProducer } from '../../../src/kafka/producer.ts'
import { linkTaskId } from '../../../src/message/ids.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeAnswer, FetchFixture, fakeExchange } from '../../support/fetch-fixture.ts'
import { uniqueName } from '../../support/services.ts'

let fixture: FetchFixture

afterEach(() => fixture.close())

/** Kind, reason and path of the final outcomes, once so many are there. */
async function ends(count: number): Promise<string[]> {
  const final = await eventually(() => fixture.finalOutcomes(count), { everyMs: 100 })
  return final.map(({ kind, reason, url }) => `${kind} ${reason} ${new URL(url).pathname}`).sort()
}

const to = (location: string, headers: Record<string, string> = {}): FakeAnswer => ({ status: 302, headers: { location, ...headers } })

describe('a URL of a crawl', () => {
  it('C128: that was claimed before its worker was killed is fetched by the next one, and by no other task', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    let isStuck = true
    const exchange = fakeExchange(async ({ signal }) => {
      if (isStuck) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      return { body: 'x' }
    })
    const first = await fixture.fetchWorker(exchange)
    const crawlId = uniqueName('crawl')
    await fixture.produce([
      { url: 'http://a.example/seed', crawlId },
      { url: 'http://a.example/link', crawlId, taskId: linkTaskId(crawlId, 'http://a.example/link', 0) },
    ])
    await eventually(() => exchange.requests.length === 2)
    const claim = { crawlId, canonicalUrl: 'http://a.example/seed', round: 0, claimant: 'another' }
    expect(await fixture.state.lookUpClaims([claim])).toEqual(['known'])
    await first.stop({ mode: 'abort', timeoutMs: 0 })
    isStuck = false
    await fixture.fetchWorker(exchange)
    await fixture.produce([{ url: 'http://a.example/seed', crawlId }])
    expect(await ends(3)).toEqual(['DUPLICATE known-url /seed', 'FETCHED null /link', 'FETCHED null /seed'])
    expect(exchange.requests).toHaveLength(4)
  })

  it('C130: is tried again although it is known, and a redirect to a page that the crawl has is not followed', async () => {
    fixture = await FetchFixture.open({ delays: [200, 400, 60_000, 600_000] })
    const asked = (path: string): number => exchange.requests.filter(({ url }) => url.pathname === path).length
    const exchange = fakeExchange(({ url }) => {
      if (url.pathname !== '/a') return { body: 'x' }
      return asked('/a') === 1 ? { status: 503 } : to('/b')
    })
    await fixture.fetchWorker(exchange)
    await fixture.delayWorker()
    const crawlId = uniqueName('crawl')
    await fixture.produce([{ url: 'http://a.example/b', crawlId }])
    await ends(1)
    await fixture.produce([{ url: 'http://a.example/a', crawlId }])
    await ends(2)
    expect(asked('/b')).toBe(1)
    await fixture.produce([{ url: 'http://a.example/a', crawlId: uniqueName('other') }])
    expect(await ends(3)).toEqual(['DUPLICATE known-url /a', 'FETCHED null /a', 'FETCHED null /b'])
    const ofA = (await fixture.outcomes()).filter(({ url, crawlId: of }) => url.endsWith('/a') && of === crawlId)
    expect(ofA.map(({ kind, attempt, status }) => `${kind} ${attempt} ${status}`)).toEqual(['RETRY 1 503', 'DUPLICATE 2 302'])
    // Once for the crawl that has it, once for the other one, which has not.
    expect(asked('/b')).toBe(2)
    expect(await fixture.state.crawlCounts(crawlId)).toEqual({ accepted: 2, final: 2 })
  })

  it('C124: that was fetched at the end of a redirect is known to the crawl, over another domain too', async () => {
    fixture = await FetchFixture.open()
    const exchange = fakeExchange(({ url }) => {
      if (url.pathname === '/short') return to('/page')
      if (url.pathname === '/away') return to('http://two.example/page')
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange)
    const crawlId = uniqueName('crawl')
    await fixture.produce([
      { url: 'http://one.example/short', crawlId },
      { url: 'http://one.example/away', crawlId },
    ])
    expect(await ends(3)).toEqual(['FETCHED null /page', 'FETCHED null /short', 'REDIRECTED other-domain /away'])
    await fixture.produce([
      { url: 'http://one.example/page#top', crawlId },
      { url: 'http://TWO.example:80/page', crawlId },
      { url: 'http://three.example/away', crawlId },
      { url: 'http://one.example/short?free', crawlId, dedup: 'none' },
    ])
    expect((await ends(7)).filter((end) => end.startsWith('DUPLICATE'))).toEqual([
      'DUPLICATE known-url /away',
      'DUPLICATE known-url /page',
      'DUPLICATE known-url /page',
    ])
    const asked = exchange.requests.map(({ url }) => url.href)
    expect(asked.filter((url) => url === 'http://two.example/page')).toHaveLength(1)
    expect(asked.filter((url) => url === 'http://one.example/page')).toHaveLength(2)
  })

  it('C124: is known at the end of a redirect before anybody can read the links of its page', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const crawlId = uniqueName('crawl')
    const link = { crawlId, canonicalUrl: 'http://a.example/page', round: 0, claimant: 'a page that links to itself' }
    const verdicts: string[] = []
    const producer: MessageProducer = {
      async send(messages, options) {
        if (messages.some(({ topic }) => topic === fixture.topics.html)) verdicts.push(...(await fixture.state.lookUpClaims([link])))
        return fixture.producer.send(messages, options)
      },
    }
    await fixture.fetchWorker(
      fakeExchange(({ url }) => (url.pathname === '/short' ? to('/page') : { body: 'x' })),
      { producer },
    )
    await fixture.produce([{ url: 'http://a.example/short', crawlId }])
    expect(await ends(1)).toEqual(['FETCHED null /short'])
    expect(verdicts).toEqual(['known'])
  })

  it('is fetched as a page beside the sitemap of its URL, and the other way round', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    await fixture.fetchWorker(fakeExchange(() => ({ body: 'x' })))
    const crawlId = uniqueName('crawl')
    await fixture.produce([
      { url: 'http://a.example/one', crawlId, sitemapLevel: 1 },
      { url: 'http://a.example/one', crawlId },
      { url: 'http://a.example/two', crawlId },
      { url: 'http://a.example/two', crawlId, sitemapLevel: 1 },
    ])
    expect(await ends(4)).toEqual(['FETCHED null /one', 'FETCHED null /one', 'FETCHED null /two', 'FETCHED null /two'])
  })

  it('C130: is fetched through a gateway that sends every page on, and back to itself', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const exchange = fakeExchange(({ url, headers }) => {
      if (url.pathname === '/gate') return to(url.searchParams.get('back') ?? '/p0', { 'set-cookie': 'ok=1; Path=/' })
      if (url.pathname === '/consent') return to('/p0')
      if (url.pathname.startsWith('/p') && headers.cookie === undefined) return to(`/gate?back=${url.pathname}`)
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange)
    const crawlId = uniqueName('crawl')
    await fixture.produce([0, 1, 2].map((index) => ({ url: `http://a.example/p${index}`, crawlId })))
    expect(await ends(3)).toEqual(['FETCHED null /p0', 'FETCHED null /p1', 'FETCHED null /p2'])
  })
})
