import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { Runtime } from '../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../src/control/runtime/topics.ts'
import { startFrontier } from '../../../src/control/stages/frontier-stage.ts'
import { createFrontier } from '../../../src/control/stages/stages.ts'
import { loadDefinition } from '../../../src/extract/load-extractors.ts'
import type { KafkaMessage } from '../../../src/kafka/message.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import type { Service } from '../../../src/kernel/lifecycle.ts'
import { ServiceGroup } from '../../../src/kernel/service-group.ts'
import { registryFrame } from '../../../src/message/framing.ts'
import type { Page } from '../../../src/message/generated/types.ts'
import { readDeadLetter } from '../../../src/message/read-dead-letter.ts'
import { eventually } from '../../support/eventually.ts'
import { testPage } from '../../support/extraction.ts'
import { readAll } from '../../support/kafka.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { brokers, uniqueName } from '../../support/services.ts'
import { startStubRegistry } from '../../support/stub-registry.ts'

const seen = recordingObserver()
let folder: string
let runtime: Runtime
let frontier: Pick<Service, 'stop'> | undefined

async function open(...more: readonly string[]): Promise<void> {
  const sets = [
    `brokers=${brokers().join(',')}`,
    `topics.prefix=${uniqueName('frontier')}.`,
    'topics.partitions.urls=1',
    'topics.partitions.deadLetters=1',
    `data=${folder}`,
    'extract.pageTimeout=3s',
    'extract.parser=parse5',
    ...more,
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: seen.observer })
  await applyTopics(runtime)
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-frontier-'))
  await open()
})
afterEach(async () => {
  await frontier?.stop({ mode: 'drain', timeoutMs: 10_000 })
  await runtime.close()
  rmSync(folder, { recursive: true })
})

async function put(page: Page): Promise<Buffer> {
  const value = runtime.codec.encode('Page', page, runtime.topics.html)
  await putValue(value)
  return value
}

async function putValue(value: Buffer, headers: Record<string, string> = {}): Promise<void> {
  const { topics } = runtime
  await (await runtime.producer()).send([{ topic: topics.html, partition: 0, key: 'http://shop.example.test/', value, headers }])
}

/** All of a topic, once there are so many. */
function arrived(topic: string, count = 1): Promise<KafkaMessage[]> {
  return eventually(
    async () => {
      const messages = await readAll(runtime.client, topic)
      return messages.length >= count && messages
    },
    { everyMs: 100, what: `a message in ${topic}` },
  )
}

async function urlsOfTasks(count = 1): Promise<string[]> {
  const { topics, codec } = runtime
  return (await arrived(topics.urls.normal, count)).map(({ value }) => codec.decode('UrlTask', value).url)
}

/** Until the function is called. Shape: the share of the CPU time of this process that its longest turn of the event loop took. */
function longestTurn(): () => number {
  const begun = process.cpuUsage()
  let [longestUs, last, isOver] = [0, begun, false]
  const look = (): void => {
    const { user, system } = process.cpuUsage(last)
    longestUs = Math.max(longestUs, user + system)
    last = process.cpuUsage()
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  return () => {
    isOver = true
    const { user, system } = process.cpuUsage(begun)
    return longestUs / (user + system)
  }
}

/** What is followed where no extractor has a word. */
const ALL = async () => ({ selected: [], byTags: () => true })

describe('the frontier', () => {
  it('C132: follows a site that leads to endless paths within its bounds, and names it', async () => {
    const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
    await put(testPage('<a href="x/y/">1</a><a href="/end">2</a>', 'http://trap.example.test/x/y/x/y/x/y/', crawl))
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    expect(await urlsOfTasks()).toEqual(['http://trap.example.test/end'])
    // Both are told a moment after what is followed was published.
    await eventually(() => seen.count('LinksFound', { verdict: 'path-repeats', count: 1 }) === 1)
    await eventually(() => seen.count('SiteTrapped', { host: 'trap.example.test', reason: 'path-repeats' }) === 1)
  })

  it('publishes the sitemaps of a site once in a crawl, also where somebody has claimed them and died', async () => {
    const state = await runtime.state()
    const origin = 'http://shop.example.test'
    const robots = { verdict: 'parsed', body: 'Sitemap: /one.xml\nSitemap: /two.xml\n', status: 200, fetchedAt: Date.now() } as const
    await state.writeRobots(origin, robots, 3_600_000)
    const claimed = { crawlId: 'spring', canonicalUrl: `sitemap ${origin}/one.xml`, round: 0, claimant: `${origin}/robots.txt` }
    await state.claim([claimed])
    const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
    await put(testPage('<a href="/a">1</a>', `${origin}/first`, crawl))
    await put(testPage('<a href="/one.xml">2</a>', `${origin}/second`, crawl))
    await put(testPage('<a href="/b">3</a>', `${origin}/third`, { ...crawl, crawlId: 'autumn' }))
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    const { topics, codec } = runtime
    const tasks = (await arrived(topics.urls.normal, 7)).map(({ value }) => codec.decode('UrlTask', value))
    const shown = tasks.map(({ crawlId, url, sitemapLevel }) => `${crawlId} ${new URL(url).pathname} ${sitemapLevel}`)
    expect([...new Set(shown)].sort()).toEqual(
      [
        'autumn /b 0',
        'autumn /one.xml 1',
        'autumn /two.xml 1',
        'spring /a 0',
        'spring /one.xml 0',
        'spring /one.xml 1',
        'spring /two.xml 1',
      ].sort(),
    )
    // What two pages publish at the same time is the same tasks.
    expect(new Set(tasks.map(({ taskId }) => taskId)).size).toBe(7)
    const note = { crawlId: 'spring', canonicalUrl: `sitemaps of ${origin}`, round: 0, claimant: 'published' }
    await eventually(async () => (await state.lookUpClaims([note]))[0] === 'own', { what: 'the note that they were published' })
  })

  it('follows no URL of a sitemap where the crawl has far more than its pages already, but the links of a page', async () => {
    await runtime.close()
    await open('crawl.maxPages=1')
    const urls = Array.from({ length: 1_002 }, (_, index) => `task ${index}`)
    await (await runtime.state()).accept('spring', urls)
    const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
    const sitemap = '<urlset><url><loc>http://shop.example.test/listed</loc></url></urlset>'
    await put(testPage(sitemap, 'http://shop.example.test/map.xml', { ...crawl, contentType: 'application/xml', sitemapLevel: 1 }))
    await put(testPage('<a href="/linked">1</a>', 'http://shop.example.test/page', crawl))
    await put(testPage(sitemap, 'http://shop.example.test/map.xml', { ...crawl, crawlId: 'autumn', sitemapLevel: 1 }))
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    expect((await urlsOfTasks(2)).sort()).toEqual(['http://shop.example.test/linked', 'http://shop.example.test/listed'])
    await eventually(() => seen.count('LinksFound', { verdict: 'over-budget', count: 1 }) === 1)
  })

  it('C040: says of what was to be a sitemap and is none that it is none, and not of a page that a user gave', async () => {
    const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
    const login = '<!doctype html><a href="/login">log in</a>'
    await put(testPage(login, 'http://shop.example.test/sitemap.xml', { ...crawl, sitemapLevel: 1 }))
    await put(testPage(login, 'http://shop.example.test/feed', { ...crawl, contentType: 'application/xml' }))
    await put(testPage('<a href="/linked">1</a>', 'http://shop.example.test/page', crawl))
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    await eventually(() => seen.count('LinksFound', { verdict: 'not-a-sitemap', count: 1 }) > 0)
    expect(await urlsOfTasks()).toEqual(['http://shop.example.test/linked'])
    await worker.stop({ mode: 'drain', timeoutMs: 10_000 })
    expect(seen.count('LinksFound', { verdict: 'not-a-sitemap' })).toBe(1)
  })

  it('follows nothing of a page that could not be decoded', async () => {
    const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
    await put(testPage('<a href="/noise">1</a>', 'http://shop.example.test/undecoded', { ...crawl, truncated: 'undecoded' }))
    await put(testPage('<a href="/good">2</a>', 'http://shop.example.test/page', { ...crawl, truncated: 'encoding' }))
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    expect(await urlsOfTasks()).toEqual(['http://shop.example.test/good'])
  })

  it.each([
    ['an error', new TypeError('nobody foresaw this page')],
    ['a defect', new MillraceError('INTERNAL', 'nobody foresaw this page')],
  ])('keeps a page whose links it can not follow (%s) as a dead letter, and goes on with the next', async (_, error) => {
    const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
    const bad = await put(testPage('<a href="/bad">bad</a>', 'http://shop.example.test/bad-page', crawl))
    await put(testPage('<a href="/good">good</a>', 'http://shop.example.test/good-page', crawl))
    const worker = await createFrontier(runtime, async (page) => {
      if (page.url.endsWith('/bad-page')) throw error
      return ALL()
    })
    frontier = worker
    await worker.start({ signal: new AbortController().signal })

    expect(await urlsOfTasks()).toEqual(['http://shop.example.test/good'])
    const letters = await arrived(runtime.topics.deadLetters)
    expect(letters).toHaveLength(1)
    expect(letters[0]?.value).toEqual(bad)
    const header = (name: string): string => String(letters[0]?.headers[name])
    expect(header('millrace-stage')).toBe('frontier')
    expect(header('millrace-error-code')).toBe('INTERNAL')
    expect(header('millrace-error-message')).toContain('nobody foresaw this page')
    expect(header('millrace-orig-offset')).toBe('0')
    const told = { stage: 'frontier', code: 'INTERNAL', topic: runtime.topics.html, partition: 0, offset: 0n }
    await eventually(() => seen.count('DeadLetterWritten', told) === 1)
  })

  it('keeps a page that it can not read as a dead letter of its own, where its links would be followed', async () => {
    const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
    const large = { body: Buffer.alloc(0), bodyRef: `${'0'.repeat(64)}.identity` }
    const page = (name: string, more: Partial<Page>): Page => testPage('<a href="/link">1</a>', `http://shop.example.test/${name}`, more)
    await put(page('large', { ...crawl, ...large }))
    await put(page('damaged', { ...crawl, bodySha256: '0'.repeat(64) }))
    await putValue(Buffer.from('c301ffffffffffffffff02', 'hex'))
    await put(page('large-and-last', { ...crawl, ...large, maxDepth: 0 }))
    await putValue(Buffer.from('rubbish'), { 'millrace-only': '@extract', 'millrace-requeued': '0:0' })
    await put(page('good', crawl))
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })

    expect(await urlsOfTasks()).toEqual(['http://shop.example.test/link'])
    const letters = (await arrived(runtime.topics.deadLetters, 3)).map(({ headers }) => readDeadLetter(headers))
    const told = letters.map(({ stage, code, original }) => `${stage} ${code} ${original?.offset}`)
    expect(told.toSorted()).toEqual([
      'frontier BLOB_STORE_UNKNOWN 0',
      'frontier EXTRACT_PAGE_BROKEN 1',
      'frontier MESSAGE_SCHEMA_UNKNOWN 2',
    ])
  })

  it('waits for the schema of a page that the registry does not have yet', async () => {
    const registry = await startStubRegistry()
    await runtime.close()
    await open(`registry.url=${registry.url}`)
    const { codec, topics } = runtime
    const page = testPage('<a href="/next">1</a>', 'http://shop.example.test/', { crawlId: 'spring', depth: 0, maxDepth: 1 })
    const schema = codec.schemas.current('Page')
    await putValue(registryFrame(4711, schema.encode(page)), codec.headers('Page'))
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    await eventually(() => seen.count('SchemaAwaited', { topic: topics.html, offset: 0n }) === 1)
    registry.put(4711, schema.text)
    await arrived(topics.urls.normal)
    expect(await readAll(runtime.client, topics.deadLetters)).toEqual([])
    await registry.close()
  })

  it.each([
    ['by tags', 'a', 0],
    ['that an extractor selects', 'b', 150_000],
    ['by tags and selected', 'a', 5_000],
  ])('follows as many links of a page as it may, says so, and holds up nobody meanwhile: %s', async (_about, tag, selected) => {
    const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
    const links = Array.from({ length: 150_000 - (selected % 150_000) }, (_, index) => `<${tag} href=${index}>`).join('')
    const host = `large${selected}.example.test`
    await put(testPage(links, `http://${host}/`, crawl))
    const worker = await createFrontier(runtime, async () => ({
      selected: [
        {
          links: Array.from({ length: selected }, (_, index) => `http://${host}/selected/${index}`),
          passes: (link) => new URL(link).pathname !== '/',
        },
      ],
      byTags: () => true,
    }))
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    const share = longestTurn()
    await eventually(() => seen.count('LinksPassedOver', { host, count: 140_000 }) === 1)
    // In one piece it is most of it.
    expect(share()).toBeLessThan(0.25)
    expect(seen.count('LinksFound', { verdict: 'too-many-links', count: 140_000 })).toBeGreaterThan(0)
    expect(new Set(await urlsOfTasks(10_000)).size).toBe(10_000)
  })

  it('publishes what is left where the store went away meanwhile, and nothing twice', async () => {
    const links = Array.from({ length: 700 }, (_, index) => `<a href=${index}>`).join('')
    await put(testPage(links, 'http://large.example.test/', { crawlId: 'spring', depth: 0, maxDepth: 1 }))
    const state = await runtime.state()
    const claim = vi.spyOn(state, 'claim')
    const { claim: claimed } = Object.getPrototypeOf(state) as typeof state
    for (const isAway of [false, false, true, true]) {
      claim.mockImplementationOnce((claims) => {
        if (isAway) throw new MillraceError('STATE_UNAVAILABLE', 'away')
        return claimed.call(state, claims)
      })
    }
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    await eventually(() => seen.count('LinksFound', { verdict: 'followed', count: 200 }) === 1)
    expect(claim).toHaveBeenCalledTimes(5)
    expect(seen.count('FrontierRetried')).toBe(2)
    expect(await urlsOfTasks(700)).toHaveLength(700)
  })

  it('follows a page that is put back where its links were claimed and not published', async () => {
    const page = testPage('<a href="/next">1</a>', 'http://again.example.test/', { crawlId: 'spring', depth: 0, maxDepth: 1 })
    const state = await runtime.state()
    const claim = { crawlId: 'spring', canonicalUrl: 'http://again.example.test/next', round: page.round, claimant: page.fetchId }
    expect(await state.claim([claim])).not.toContain('known')
    await put(page)
    const worker = await createFrontier(runtime, ALL)
    frontier = worker
    await worker.start({ signal: new AbortController().signal })
    expect(await urlsOfTasks()).toEqual(['http://again.example.test/next'])
  })
})

describe('the links of an extractor', () => {
  async function start(...texts: string[]): Promise<void> {
    const current = texts.map((text, index) => loadDefinition(`${index}.yaml`, `name: e${index}\nversion: 1\nfields: { a: h1 }\n${text}`))
    const stages = new ServiceGroup()
    frontier = stages
    await startFrontier(runtime, stages, { current, loaded: current }, new AbortController().signal)
  }
  const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1 }
  const html = '<nav><a href="/1#top">1</a><a href="/out">2</a></nav><li data-url="/3">3</li><footer><a href="/4">4</a></footer>'

  it('are those that it selects and lets through, of all that match the page, and of no other page', async () => {
    await start(
      "match: { hosts: [shop.example.test] }\nlinks: { select: 'nav a', deny: ['/out'] }",
      "match: { hosts: [shop.example.test] }\nlinks: { select: 'li@data-url' }",
    )
    await put(testPage(html, 'http://shop.example.test/list', crawl))
    await put(testPage('<footer><a href="/5">5</a></footer>', 'http://other.example.test/', crawl))
    expect((await urlsOfTasks(3)).sort()).toEqual([
      'http://other.example.test/5',
      'http://shop.example.test/1',
      'http://shop.example.test/3',
    ])
  })

  it('are all of its tags where it selects all', async () => {
    await start("links: { select: 'a@href', allow: ['/1', '/4'] }")
    await put(testPage(html, 'http://shop.example.test/list', crawl))
    expect(await urlsOfTasks(2)).toEqual(['http://shop.example.test/1', 'http://shop.example.test/4'])
  })

  it('hold up no other page where one takes its parser for ever: that is a dead letter', async () => {
    await start("links: { select: 'nav a' }")
    // Each stays open, and is looked for among all that are.
    const hostile = Array.from({ length: 20_000 }, (_, index) => `<b a=${index}>`).join('')
    await put(testPage(hostile, 'http://shop.example.test/hostile', crawl))
    await put(testPage(html, 'http://shop.example.test/list', crawl))
    const [letter] = await arrived(runtime.topics.deadLetters)
    expect([letter?.headers['millrace-stage'], letter?.headers['millrace-error-code']].map(String)).toEqual(['frontier', 'EXTRACT_TIMEOUT'])
    // By the name that its author gave it.
    expect(seen.count('ExtractionProcessReplaced', { reason: 'timeout', extractors: 'e0' })).toBe(1)
    expect(await urlsOfTasks(2)).toEqual(['http://shop.example.test/1', 'http://shop.example.test/out'])
  })
})
