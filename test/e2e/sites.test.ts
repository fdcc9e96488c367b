import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ExplainReport } from '../../src/control/inspect/explain.ts'
import type { SiteReport } from '../../src/control/sites/sites.ts'
import type { PolitenessKey } from '../../src/kernel/brand.ts'
import { partitionFor } from '../../src/url/partition.ts'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { TestSite } from '../support/fetch-fixture.ts'
import { expectInTime } from '../support/in-time.ts'
import { storeSets } from '../support/services.ts'
import { paceViolations } from '../support/site-log.ts'

const HOST = 'www.paced.example'

/** `sites` beside a fetch process that runs, as an operator types it. */
describe.each(['lmdb', 'redis'] as const)('millrace sites, with the state in %s', (store) => {
  let deployment: Deployment
  const site = new TestSite((_, response) => response.setHeader('content-type', 'text/html').end('<p>page</p>'))
  const since = (mono: number) => site.requests.filter(({ startedAt }) => startedAt > mono).length
  const show = async (domain = HOST) => JSON.parse((await deployment.run(['sites', 'show', domain, '--json'])).stdout) as SiteReport

  beforeAll(async () => {
    await site.open()
    deployment = await Deployment.open({ set: ['fetch.robots=ignore', 'politeness.default.ratePerSecond=2', ...storeSets(store)] })
    const urls = Array.from({ length: 60 }, (_, index) => site.url(HOST, `/${index}`)).join('\n')
    expect((await deployment.run(['produce', '--file', '-'], urls)).code).toBe(0)
  })
  afterAll(async () => {
    await deployment.close()
    await site.close()
  })

  it('pauses a site within two seconds, over a restart of its workers, and goes on within two seconds', async () => {
    const fetch = deployment.start(['fetch'])
    await eventually(() => site.requests.length > 2, { what: 'requests before the pause' })
    const paused = await deployment.run(['sites', 'pause', 'paced.example'])
    expect(paused.stdout).toContain('paced.example is paused')
    const pausedMono = performance.now()
    const lastMono = () => site.requests.at(-1)?.startedAt ?? pausedMono
    await eventually(() => performance.now() > Math.max(lastMono(), pausedMono) + 5_000, { what: 'five quiet seconds' })
    expectInTime(lastMono() - pausedMono, 2_000, 'the pause')
    expect((await show()).pace.paused).toEqual({ value: true, from: 'override paced.example' })
    expect((await deployment.run(['sites', 'show', HOST])).stdout).toMatch(/next start +after the pause/)

    const atResume = performance.now()
    expect((await deployment.run(['sites', 'resume', 'paced.example'])).stdout).toContain('goes on')
    const resumed = performance.now()
    await eventually(() => since(atResume) > 0, { what: 'requests after the resume' })
    const firstAgain = site.requests.find(({ startedAt }) => startedAt > atResume)?.startedAt ?? Number.NaN
    expectInTime(firstAgain - resumed, 2_000, 'the resume')

    await deployment.run(['sites', 'pause', 'paced.example'])
    fetch.child.kill('SIGTERM')
    await fetch.done
    const beforeRestart = performance.now()
    const again = deployment.start(['fetch'])
    const last = async () => JSON.parse((await deployment.run(['explain', site.url(HOST, '/59'), '--json'])).stdout) as ExplainReport
    const heldForPause = async () => (await last()).inWorkers.some(({ siteWaitReason }) => siteWaitReason === 'paused')
    await eventually(heldForPause, { what: 'the new worker to wait for the end of the pause' })
    expect(again.child.exitCode).toBeNull()
    expect(since(beforeRestart)).toBe(0)
    await deployment.run(['sites', 'resume', 'paced.example'])
    await eventually(() => since(beforeRestart) > 0, { what: 'requests after the second resume' })
    again.child.kill('SIGTERM')
    expect((await again.done).code).toBe(143)
  })

  it('asks a site again that has asked to be left alone for a year, within two seconds of a reset, and once only', async () => {
    const host = 'www.year.example'
    let patience: string | undefined = '31536000'
    const asked: { readonly at: number; readonly path: string }[] = []
    const patient = new TestSite(({ path }, response) => {
      asked.push({ at: performance.now(), path })
      if (patience === undefined) response.setHeader('content-type', 'text/html').end('<p>page</p>')
      else response.writeHead(429, { 'retry-after': patience }).end()
    })
    await patient.open()
    const urls = Array.from({ length: 6 }, (_, index) => patient.url(host, `/${index}`))
    expect((await deployment.run(['produce', ...urls])).code).toBe(0)
    const workers = [deployment.start(['fetch']), deployment.start(['delay'])]
    const explained = async () => JSON.parse((await deployment.run(['explain', urls[5] ?? '', '--json'])).stdout)
    await eventually(async () => (await explained()).state === 'delayed', { what: 'the last URL in a delay topic' })
    expect(asked).toHaveLength(1)

    patience = undefined
    const before = performance.now()
    // Of the domain, whose own key nobody has asked for: the host is reset by its worker.
    expect((await deployment.run(['sites', 'reset', 'year.example'])).stdout).toContain('year.example was reset')
    const done = performance.now()
    await eventually(() => asked.length > 1, { what: 'a request after the reset' })
    expectInTime((asked[1]?.at ?? Number.NaN) - done, 2_000)
    await eventually(() => new Set(asked.map(({ path }) => path)).size === 6, { what: 'all of its pages' })
    expect((await show(host)).limiter).toMatchObject({ backOffMs: 0, isAsked: false })
    expect((await show(host)).reset).toMatchObject({ from: 'override year.example' })
    for (const { at } of asked.slice(1)) expect(at).toBeGreaterThan(before)

    // What the site says after it counts, over a restart of the workers as well.
    patience = '86400'
    expect((await deployment.run(['produce', patient.url(host, '/after'), patient.url(host, '/behind')])).code).toBe(0)
    await eventually(async () => (await show(host)).limiter.isAsked, { what: 'the next back-off' })
    for (const { child, done: ended } of workers) {
      child.kill('SIGTERM')
      await ended
    }
    const count = asked.length
    const again = [deployment.start(['fetch']), deployment.start(['delay'])]
    await deployment.run(['produce', patient.url(host, '/third')])
    const third = async () => JSON.parse((await deployment.run(['explain', patient.url(host, '/third'), '--json'])).stdout)
    await eventually(async () => (await third()).state === 'delayed', { what: 'the third URL in a delay topic' })
    expect(asked).toHaveLength(count)

    const lifted = await deployment.run(['sites', 'reset', host])
    expect(lifted.stdout).toMatch(/it lifted a back-off of (23h \d+m|1d 0h) that the site had asked for/)
    expect((await deployment.run(['sites', 'show', host])).stdout).toMatch(
      /reset +\d.* ago, override www\.year\.example: it lifted a back-off/,
    )
    expect((await third()).lines.join('\n')).toMatch(/was reset .* ago \(override www\.year\.example\): it lifted a back-off/)
    await eventually(() => asked.length > count, { what: 'a request after the second reset' })
    for (const { child, done: ended } of again) {
      child.kill('SIGTERM')
      await ended
    }
    await patient.close()
  })

  it('shows the robots.txt of the origin that is named, with its port', async () => {
    const entry = { verdict: 'absent', body: '', status: 404, fetchedAt: Date.now() } as const
    await deployment.read(async (runtime) => (await runtime.state()).writeRobots('http://ported.example:8080', entry, 60_000))
    const obey = ['fetch.robots=obey']
    const robots = async (name: string) =>
      (JSON.parse((await deployment.run(['sites', 'show', name, '--json'], undefined, obey)).stdout) as SiteReport).robots
    expect(await robots('http://ported.example:8080/page')).toEqual({
      origin: 'http://ported.example:8080',
      verdict: 'absent',
      fetchedAt: entry.fetchedAt,
    })
    expect(await robots('ported.example:8080')).toMatchObject({ origin: 'http://ported.example:8080' })
    expect(await robots('ported.example')).toBeNull()
    const failed = { ...entry, verdict: 'unreachable', status: 500 } as const
    await deployment.read(async (runtime) => (await runtime.state()).writeRobots('http://broken.example', failed, 60_000))
    expect((await deployment.run(['sites', 'show', 'broken.example'], undefined, obey)).stdout).toMatch(
      /robots\.txt +could not be read .* ago, asked again at each attempt/,
    )
  })

  it('C023: goes by what robots.txt says to the name in its User-Agent, and so do explain and show', async () => {
    const agent = 'Mozilla/5.0 (compatible; FooBot/2.1; +https://bot.example.test)'
    const picky = await new TestSite(({ path }, response) => {
      if (path === '/robots.txt') response.end('User-agent: FooBot\nDisallow: /\nCrawl-delay: 7\n\nUser-agent: *\nDisallow:\n')
      else response.setHeader('content-type', 'text/html').end('<p>page</p>')
    }).open()
    const own = await Deployment.open({ set: [`fetch.userAgent=${agent}`] })
    const page = picky.url(HOST, '/page')
    expect((await own.run(['run', page, '--quiet'])).code).toBe(3)
    expect((await own.outcomes()).map(({ value }) => `${value.kind} ${value.reason}`)).toEqual(['REFUSED robots'])
    expect(picky.requests.map(({ path, headers }) => [path, headers['user-agent']])).toEqual([['/robots.txt', agent]])
    const [explained, shown] = await Promise.all([own.run(['explain', page, '--json']), own.run(['sites', 'show', page, '--json'])])
    const { robots, lines } = JSON.parse(explained.stdout) as ExplainReport
    expect(robots).toMatchObject({ verdict: 'parsed', allowed: false, rule: 'Disallow: /' })
    expect(lines.join('\n')).toContain('robots.txt forbids it by `Disallow: /`')
    expect((JSON.parse(shown.stdout) as SiteReport).pace.crawlDelayMs).toEqual({ value: 7_000, from: 'robots.txt' })
    await own.close()
    await picky.close()
  })

  it('tells when the URLs of a site that does not answer will fail', async () => {
    const dead = 'dead.example' as PolitenessKey
    const unanswered = { backOffMs: 0, isAsked: false, allowed: null, rateFactor: 1, trips: 2, parkedMs: 60_000 }
    expect((await show(dead)).givenUpInMs).toBeNull()
    await deployment.read(async (runtime) => (await runtime.state()).reassert(dead, unanswered, 0))
    const { givenUpInMs } = await show(dead)
    expect(givenUpInMs).toBeGreaterThan(3 * 86_400_000 - 60_000)
    expect(givenUpInMs).toBeLessThan(3 * 86_400_000)
    const said = async (giveUp: string) =>
      (await deployment.run(['sites', 'show', dead], undefined, [`politeness.breaker.giveUp=${giveUp}`])).stdout
    expect(await said('2h')).toMatch(/next start +in \d/)
    expect(await said('2h')).toMatch(/given up +in \d+[hm].*, unless it answers/)
    expect(await said('1ms')).toMatch(/given up +now: its URLs fail/)
    expect(await said('0s')).toMatch(/given up +never: its URLs wait for it/)
  })

  // What follows is the same whatever the store.
  if (store === 'redis') return

  it.each(['co.uk', 'lan'])('says that what holds for the suffix %s holds for none of the domains below it', async (suffix) => {
    const note = `domains below ${suffix} are sites of their own, which this does not cover`
    for (const words of [['pause'], ['show'], ['rate', '--concurrency', '1'], ['rate', '--reset'], ['resume']]) {
      const [verb = '', ...flags] = words
      expect((await deployment.run(['sites', verb, suffix, ...flags])).stderr).toContain(note)
    }
    const domain = await deployment.run(['sites', 'show', `example.${suffix}`])
    expect(domain.stderr).not.toContain('sites of their own')
  })

  it.each([
    [['pause'], []],
    [['resume'], []],
    [['rate'], ['--concurrency', '1']],
    [['rate'], ['--reset']],
    [['reset'], []],
    [['show'], []],
  ])('says for %j that the whole site is meant where a page of it is named', async (verb, flags) => {
    const done = await deployment.run(['sites', ...verb, 'https://www.whole.example/some/page', ...flags])
    expect(done.code).toBe(0)
    expect(done.stderr).toContain('all of www.whole.example is meant, not /some/page alone')
    expect((await deployment.run(['sites', ...verb, 'www.whole.example', ...flags])).stderr).not.toContain('is meant')
  })

  it('gives a site another pace until it is taken back, and tells where each value comes from', async () => {
    const slow = await deployment.run(['sites', 'rate', HOST, '--rate-per-second', '0.5', '--crawl-delay', '3s', '--concurrency', '2'])
    expect(slow.stdout).toBe(`${HOST}: 0.5 requests per second, 2 at the same time, 3.0s between them\n`)
    expect(slow.stderr).not.toContain('put aside')
    const bursts = await deployment.run(['sites', 'rate', HOST, '--burst', '4'])
    expect(bursts.stdout).toBe(`${HOST}: 0.5 requests per second in bursts of 4, 2 at the same time, 3.0s between them\n`)
    await deployment.run(['sites', 'pause', 'later.example'])
    expect((await deployment.run(['sites', 'rate', 'later.example', '--concurrency', '1'])).stdout).toContain(
      '; it is paused (override later.example) until `millrace sites resume`',
    )
    const report = await show(`https://${HOST.toUpperCase()}/some/page`)
    expect(report).toMatchObject({
      domain: HOST,
      key: HOST,
      override: { ratePerSecond: 0.5, crawlDelayMs: 3_000, concurrency: 2, burst: 4 },
      pace: {
        paused: { value: false, from: 'default' },
        ratePerSecond: { value: 0.5, from: `override ${HOST}` },
        crawlDelayMs: { value: 3_000, from: `override ${HOST}` },
      },
      limiter: { leases: 0, backOffMs: 0 },
    })
    expect((await deployment.run(['sites', 'rate', '127.0.0.1', '--rate-per-second', '5'])).stderr).toContain(
      'comes back as the new one allows',
    )
    const text = (await deployment.run(['sites', 'show', HOST])).stdout
    expect(text).toContain(`requests per second  0.5                override ${HOST}`)
    await deployment.run(['sites', 'rate', HOST, '--reset', '--concurrency', '3'])
    expect((await show()).override).toEqual({ concurrency: 3, faster: { at: expect.any(Number) } })
    const faster = await deployment.run(['sites', 'rate', HOST, '--crawl-delay', '0s'])
    expect(faster.stderr).not.toContain('put aside')
    await deployment.run(['sites', 'rate', HOST, '--rate-per-second', '0.5'])
    const reset = await deployment.run(['sites', 'rate', HOST, '--reset'])
    expect(reset.stderr).toContain('what was put aside at the slower pace comes back as the new one allows')
    expect((await show()).override).toEqual({ faster: { at: expect.any(Number) } })
    expect((await show()).pace.ratePerSecond).toEqual({ value: 2, from: 'default' })
  })

  it('brings back what was put aside at the old pace where the new one is faster, at the new one and once', async () => {
    const host = 'www.hurry.example'
    const urls = Array.from({ length: 150 }, (_, index) => site.url(host, `/${index}`))
    await deployment.run(['sites', 'rate', host, '--rate-per-second', '0.5'])
    expect((await deployment.run(['produce', '--file', '-'], urls.join('\n'))).code).toBe(0)
    const workers = [deployment.start(['fetch']), deployment.start(['delay'])]
    const last = async () => JSON.parse((await deployment.run(['explain', urls[149] ?? '', '--json'])).stdout) as ExplainReport
    await eventually(async () => (await last()).state === 'delayed', { what: 'the last URL in a delay topic' })

    const before = performance.now()
    await deployment.run(['sites', 'rate', host, '--rate-per-second', '10'])
    const paths = () => site.requests.filter((request) => request.host.startsWith(host)).map(({ path }) => path)
    await eventually(() => new Set(paths()).size === 150, { what: 'all of its pages' })
    expectInTime(performance.now() - before, 40_000)
    expect(paths()).toHaveLength(150)
    const requests = site.requests.filter((request) => request.host === host)
    const answer = { agent: '', status: 200, retryAfterMs: undefined, answered: true }
    const asSeen = requests.map(({ path, startedAt: at }) => ({ ...answer, host, path, at, sentAt: at, endedAt: at }))
    expect(paceViolations(asSeen, { ratePerSecond: 10, concurrency: 1 })).toEqual([])
    for (const { child, done } of workers) {
      child.kill('SIGTERM')
      await done
    }
  })

  it('refuses what makes no sense, and changes nothing', async () => {
    const refused: [string[], string][] = [
      [['rate', HOST], 'needs a value'],
      [['rate', HOST, '--rate-per-second', '0'], '--rate-per-second "0" is not possible; expected a number of at least 0.0001'],
      [['rate', HOST, '--concurrency', '1.5'], 'a whole number above 0'],
      [['rate', HOST, '--crawl-delay', '5'], '--crawl-delay "5" is no duration'],
      [['pause', 'no domain'], '"no domain" is no domain'],
      [['show', 'ftp://a.example/'], 'is no domain'],
    ]
    for (const [args, said] of refused) {
      const result = await deployment.run(['sites', ...args])
      expect(result.code).toBe(2)
      expect(result.stderr).toContain(said)
    }
  })
})

describe('a site that is made slower while two workers ask', () => {
  let deployment: Deployment
  const site = new TestSite((_, response) => response.setHeader('content-type', 'text/html').end('<p>page</p>'))
  const askedBy = (worker: string) => site.requests.filter(({ headers }) => headers['user-agent']?.startsWith(worker)).length
  const start = (worker: string) => deployment.start(['fetch', '--set', `fetch.userAgent=${worker}/1.0 (+https://example.com/bot)`])

  beforeAll(async () => {
    await site.open()
    const set = ['fetch.robots=ignore', 'politeness.default.ratePerSecond=2', 'topics.partitions.urls=2', ...storeSets('redis')]
    deployment = await Deployment.open({ set })
  })
  afterAll(async () => {
    await deployment.close()
    await site.close()
  })

  it('is asked at its new pace by both from two seconds on, and over a restart of one', async () => {
    const hosts = [0, 1].map((partition) => nameIn(partition, 2))
    const urls = hosts.flatMap((host) => Array.from({ length: 60 }, (_, index) => site.url(host, `/${index}`)))
    expect((await deployment.run(['produce', '--file', '-'], urls.join('\n'))).code).toBe(0)
    const [first, second] = [start('first'), start('second')]
    // What is put aside at the slow pace comes back by it: each worker has something to do however long the restart takes.
    const delay = deployment.start(['delay'])
    const bothAsk = () => askedBy('first') > 2 && askedBy('second') > 2
    await eventually(bothAsk, { what: 'requests of both workers' })

    await Promise.all(hosts.map((host) => deployment.run(['sites', 'rate', host, '--rate-per-second', '0.5'])))
    // Two seconds are promised. Here the pace is looked at, from when it surely holds.
    const slowFrom = performance.now() + 10_000
    const startsOf = (host: string) =>
      site.requests.filter((request) => request.host === host && request.startedAt > slowFrom).map(({ startedAt }) => startedAt)
    await eventually(() => hosts.every((host) => startsOf(host).length > 2), { what: 'slow requests of both sites' })

    first.child.kill('SIGTERM')
    await first.done
    const third = start('third')
    await eventually(() => askedBy('third') > 2, { what: 'requests of the worker that was restarted' })
    for (const host of hosts) {
      const starts = startsOf(host)
      const gaps = starts.slice(1).map((at, index) => at - (starts[index] ?? Number.NaN))
      // A request that arrives late is closer to the next one, and farther from the one before.
      expect(Math.min(...gaps)).toBeGreaterThan(1_000)
      expect(gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length).toBeGreaterThan(1_600)
    }
    for (const { child, done } of [second, third, delay]) {
      child.kill('SIGTERM')
      await done
    }
  })
})

describe('millrace sites, while the state store is away', () => {
  it('has done what it says, and what asks the store first has done nothing', async () => {
    const deployment = await Deployment.open()
    const away = ['redis=redis://127.0.0.1:1']
    const paused = await deployment.run(['sites', 'pause', HOST], undefined, away)
    expect([paused.code, paused.stdout]).toEqual([0, expect.stringContaining(`${HOST} is paused`)])
    expect(paused.stderr).toContain('it is done; what the limiter knows')
    const rated = await deployment.run(['sites', 'rate', HOST, '--rate-per-second', '9'], undefined, away)
    expect(rated.code).toBe(4)
    const report = JSON.parse((await deployment.run(['sites', 'show', HOST, '--json'])).stdout) as SiteReport
    expect([report.pace.paused.value, report.pace.ratePerSecond.value]).toEqual([true, 500])
    await deployment.close()
  })
})

/** A domain whose tasks lie in that partition. */
function nameIn(partition: number, count: number): string {
  const names = Array.from({ length: 100 }, (_, index) => `slow${index}.example`)
  return names.find((name) => partitionFor(name, count) === partition) ?? ''
}
