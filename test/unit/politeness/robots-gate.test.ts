import { describe, expect, it } from 'vitest'
import { parseRobots, sitemapUrls } from '../../../src/politeness/robots.ts'
import { type KeptRobots, type RobotsDecision, type RobotsFetch, RobotsGate } from '../../../src/politeness/robots-gate.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

interface Wait {
  readonly kind: 'wait'
  readonly waitMs: number
}
type Answer = RobotsFetch<Wait>

const HOUR_MS = 3_600_000
const forbidsP = 'User-agent: *\nCrawl-delay: 2\nDisallow: /p\n'
const answer = (status: number, body: string | Buffer = ''): Answer => ({ kind: 'answer', status, body: Buffer.from(body) })
const silence: Answer = { kind: 'failure', reason: 'connect-timeout', detail: 'nobody there' }

class Shared {
  readonly entries = new Map<string, KeptRobots>()
  readonly ttls: number[] = []
  reads = 0
  async read(origin: string): Promise<KeptRobots | undefined> {
    this.reads += 1
    return this.entries.get(origin)
  }
  async write(origin: string, entry: KeptRobots, ttlMs: number): Promise<void> {
    this.entries.set(origin, entry)
    this.ttls.push(ttlMs)
  }
}

function gateOf(
  answers: (url: URL) => Answer | Promise<Answer>,
  more: { mode?: 'obey' | 'ignore'; shared?: Shared; clock?: ManualClock } = {},
) {
  const asked: string[] = []
  const { shared = new Shared(), clock = new ManualClock(), mode = 'obey' } = more
  const seen = recordingObserver()
  const gate = new RobotsGate<Wait>({
    mode,
    token: 'foobot',
    cache: shared,
    ask: async (url) => {
      asked.push(url.href)
      return answers(url)
    },
    clock,
    observer: seen.observer,
  })
  const check = (url: string): Promise<RobotsDecision<Wait>> => gate.check(new URL(url), new AbortController().signal)
  return { gate, check, asked, shared, clock, seen }
}

describe('the robots gate', () => {
  it('asks once per origin, and gives the rule and the delay', async () => {
    const { check, asked } = gateOf(() => answer(200, forbidsP))
    expect(await check('http://a.test/x?y')).toEqual({ kind: 'allowed', verdict: 'allowed', rule: null, crawlDelayMs: 2_000 })
    expect(await check('http://a.test/p?y')).toEqual({ kind: 'refused', rule: 'Disallow: /p' })
    expect(asked).toEqual(['http://a.test/robots.txt'])
  })

  it('C031: takes scheme, host and port together for an origin', async () => {
    const { check, asked } = gateOf(({ origin }) => answer(200, origin === 'http://a.test' ? 'User-agent: *\nDisallow: /' : ''))
    const kinds = [await check('http://a.test/x'), await check('https://a.test/x'), await check('http://a.test:8080/x')].map(
      ({ kind }) => kind,
    )
    expect(kinds).toEqual(['refused', 'allowed', 'allowed'])
    expect(asked).toEqual(['http://a.test/robots.txt', 'https://a.test/robots.txt', 'http://a.test:8080/robots.txt'])
  })

  it('asks once for all that come while the answer is under way', async () => {
    let open: (value: Answer) => void = () => undefined
    const pending = new Promise<Answer>((resolve) => {
      open = resolve
    })
    const { check, asked } = gateOf(() => pending)
    const all = [check('http://a.test/x'), check('http://a.test/p'), check('http://a.test/y')]
    open(answer(200, forbidsP))
    expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(['allowed', 'refused', 'allowed'])
    expect(asked).toHaveLength(1)
  })

  it.each([400, 401, 403, 404, 410, 451, 301, 304])('C027: allows all after status %i, whatever its body says', async (status) => {
    const { check } = gateOf(() => answer(status, 'User-agent: *\nDisallow: /'))
    expect(await check('http://a.test/x')).toEqual({ kind: 'allowed', verdict: 'absent', rule: null, crawlDelayMs: 0 })
  })

  it.each([500, 503, 429, 599])('C025: allows nothing after status %i, and asks again at the next try', async (status) => {
    let now = answer(status, '<html>oops</html>')
    const { check, asked, clock, shared } = gateOf(() => now)
    expect(await check('http://a.test/x')).toMatchObject({ kind: 'unreachable', detail: expect.stringContaining(String(status)) })
    expect(await check('http://a.test/y')).toMatchObject({ kind: 'unreachable' })
    // For people: it keeps nobody from asking.
    expect(shared.entries.get('http://a.test')).toMatchObject({ verdict: 'unreachable', status, fetchedAt: 0 })
    const other = gateOf(() => now, { shared, clock })
    expect(await other.check('http://a.test/x')).toMatchObject({ kind: 'unreachable' })
    expect([asked.length, other.asked.length]).toEqual([1, 1])
    now = answer(404)
    await clock.advance(10_000)
    expect(await check('http://a.test/x')).toMatchObject({ kind: 'allowed' })
    expect(asked).toHaveLength(2)
    expect(shared.entries.get('http://a.test')).toMatchObject({ verdict: 'absent' })
  })

  it('allows nothing of a site that does not answer, and says why', async () => {
    const { check, shared } = gateOf(() => silence)
    expect(await check('http://a.test/x')).toEqual({ kind: 'unreachable', reason: 'connect-timeout', detail: 'nobody there' })
    expect(shared.entries.get('http://a.test')).toMatchObject({ verdict: 'unreachable', body: 'nobody there', status: null })
  })

  it('lets the last good copy stand in for a day, and no longer', async () => {
    let now = answer(200, forbidsP)
    const { check, clock, asked, shared } = gateOf(() => now)
    await check('http://a.test/x')
    now = answer(503)
    await clock.advance(13 * HOUR_MS)
    expect(await check('http://a.test/p')).toMatchObject({ kind: 'refused' })
    expect(shared.entries.get('http://a.test')).toMatchObject({ verdict: 'parsed', fetchedAt: 0 })
    expect(await check('http://a.test/x')).toMatchObject({ kind: 'allowed' })
    expect(asked).toHaveLength(2)
    await clock.advance(12 * HOUR_MS)
    expect(await check('http://a.test/x')).toMatchObject({ kind: 'unreachable' })
  })

  it('asks again after half a day, and never keeps a file longer than a day', async () => {
    let now = answer(200, forbidsP)
    const { check, clock, asked, shared } = gateOf(() => now)
    await check('http://a.test/p')
    await clock.advance(11 * HOUR_MS)
    await check('http://a.test/p')
    expect(asked).toHaveLength(1)
    now = answer(200, '')
    await clock.advance(2 * HOUR_MS)
    expect(await check('http://a.test/p')).toMatchObject({ kind: 'allowed' })
    expect(asked).toHaveLength(2)
    expect(Math.max(...shared.ttls)).toBeLessThanOrEqual(24 * HOUR_MS)
  })

  it('shares what it read, octet by octet', async () => {
    const shared = new Shared()
    const clock = new ManualClock()
    const file = Buffer.concat([Buffer.from('User-agent: *\nDisallow: /\xff\n', 'latin1'), Buffer.from('Disallow: /bücher\n')])
    const first = gateOf(() => answer(200, file), { shared, clock })
    const second = gateOf(() => silence, { shared, clock })
    await first.check('http://a.test/')
    for (const path of ['/%FF', '/b%C3%BCcher']) {
      expect(await first.check(`http://a.test${path}`)).toMatchObject({ kind: 'refused' })
      expect(await second.check(`http://a.test${path}`)).toMatchObject({ kind: 'refused' })
    }
    expect(second.asked).toEqual([])
  })

  it('keeps for others what is understood of a file alone, however large it is', async () => {
    const { check, shared } = gateOf(() => answer(200, `${forbidsP}# all else\n${'\0'.repeat(400_000)}\nSitemap: /map.xml # here\n`))
    expect(await check('http://a.test/p')).toMatchObject({ kind: 'refused' })
    expect(shared.entries.get('http://a.test')?.body).toBe(`${forbidsP}Sitemap: /map.xml`)
  })

  it.each([
    ['in the store where it is not too long', 60_000, `Disallow: /${'some-folder/'.repeat(20)}\n`, true],
    ['in memory where it is', 70_000, `Disallow: /${'some-folder/'.repeat(20)}\n`, false],
    ['in memory where JSON writes it long', 60_000, `Disallow: /${'\0'.repeat(1_000)}\n`, false],
    ['in memory where UTF-8 does', 60_000, `Disallow: /${'\xff'.repeat(4_000)}\n`, false],
  ])('obeys all of a file for its time, and keeps it %s', async (_, length, line, isKept) => {
    let now = answer(200, Buffer.from(`${forbidsP}${line.repeat(length / line.length)}Disallow: /last`, 'latin1'))
    const { check, shared, asked, clock } = gateOf(() => now)
    expect(await check('http://a.test/last')).toMatchObject({ kind: 'refused' })
    expect(shared.entries.get('http://a.test')?.verdict).toBe(isKept ? 'parsed' : 'unreachable')
    expect(await check('http://a.test/last')).toMatchObject({ kind: 'refused' })
    now = silence
    await clock.advance(13 * HOUR_MS)
    expect(await check('http://a.test/last')).toMatchObject({ kind: 'refused' })
    expect(asked).toHaveLength(2)
    await clock.advance(12 * HOUR_MS)
    expect(await check('http://a.test/last')).toMatchObject({ kind: 'unreachable' })
  })

  it('keeps what speaks to it alone, and the sitemaps, where the whole file is too long', async () => {
    const others = Array.from({ length: 200 }, (_, index) => `User-agent: other${index}\nDisallow: /${'x'.repeat(400)}\n`).join('')
    const shared = new Shared()
    const file = `${others}User-agent: *\nAllow: /p/b\u00fccher\nDisallow: /p\nCrawl-delay: 2.5\nSitemap: /m\u00fc.xml\n`
    await gateOf(() => answer(200, Buffer.from(file)), { shared }).check('http://a.test/x')
    const entry = shared.entries.get('http://a.test')
    expect(entry?.body.length).toBeLessThan(200)
    const rules = parseRobots(Buffer.from(entry?.body ?? '', 'latin1'))
    expect(sitemapUrls(rules, 'http://a.test/robots.txt')).toEqual(['http://a.test/m%C3%BC.xml'])
    const second = gateOf(() => silence, { shared })
    expect(await second.check('http://a.test/p/b%C3%BCcher')).toMatchObject({ kind: 'allowed', crawlDelayMs: 2_500 })
    expect(await second.check('http://a.test/p')).toMatchObject({ kind: 'refused' })
    expect(second.asked).toEqual([])
  })

  it('keeps of the files of one domain 16 MiB a day, and those of others whatever that has', async () => {
    const file = answer(200, `${forbidsP}${`Disallow: /${'x'.repeat(980)}\n`.repeat(60)}`)
    const { check, shared, asked, clock } = gateOf(() => file)
    const keptOf = (host: string): string | undefined => shared.entries.get(`http://${host}`)?.verdict
    for (let host = 0; host < 300; host += 1) await check(`http://s${host}.farm.test/x`)
    const verdicts = [...shared.entries.values()].map(({ verdict }) => verdict)
    const whole = verdicts.filter((verdict) => verdict === 'parsed').length
    expect(whole).toBeGreaterThan(270)
    expect(whole).toBeLessThan(285)
    expect(keptOf('s299.farm.test')).toBe('unreachable')
    expect(shared.entries.get('http://s299.farm.test')?.body).toContain('of its domain take more than 16 MiB')
    expect(await check('http://s299.farm.test/p')).toMatchObject({ kind: 'refused' })
    expect(asked).toHaveLength(300)
    await check('http://a.test/x')
    expect(keptOf('a.test')).toBe('parsed')
    await clock.advance(25 * HOUR_MS)
    await check('http://s299.farm.test/x')
    expect(keptOf('s299.farm.test')).toBe('parsed')
  })

  it('counts a file that is read again in the place of the former one, which it takes', async () => {
    const file = answer(200, `${forbidsP}${`Disallow: /${'x'.repeat(980)}\n`.repeat(60)}`)
    const { check, shared, clock } = gateOf(() => file)
    for (let round = 0; round < 2; round += 1) {
      for (let host = 0; host < 200; host += 1) await check(`http://s${host}.farm.test/x`)
      expect([...shared.entries.values()].filter(({ verdict }) => verdict !== 'parsed')).toEqual([])
      await clock.advance(13 * HOUR_MS)
    }
  })

  it('keeps of why it is not there what people read', async () => {
    const { check, shared } = gateOf(() => ({ ...silence, detail: 'DNS:a.test, '.repeat(10_000) }))
    await check('http://a.test/x')
    expect(shared.entries.get('http://a.test')?.body).toHaveLength(1_000)
  })

  it('reads a file that was kept whole', async () => {
    const shared = new Shared()
    shared.entries.set('http://a.test', { verdict: 'parsed', body: `# ours\n${forbidsP}`, status: 200, fetchedAt: 0 })
    const { check, asked } = gateOf(() => silence, { shared })
    expect(await check('http://a.test/p')).toMatchObject({ kind: 'refused' })
    expect(asked).toEqual([])
  })

  it('takes the last good copy of another process where the site is silent', async () => {
    const shared = new Shared()
    const clock = new ManualClock()
    const first = gateOf(() => answer(200, forbidsP), { shared, clock })
    const second = gateOf(() => silence, { shared, clock })
    await first.check('http://a.test/x')
    await clock.advance(23 * HOUR_MS)
    expect(await second.check('http://a.test/p')).toMatchObject({ kind: 'refused' })
    expect(second.asked).toEqual(['http://a.test/robots.txt'])
    await clock.advance(HOUR_MS)
    expect(await second.check('http://a.test/p')).toMatchObject({ kind: 'unreachable' })
  })

  it('lets an absent file stand in as well, and learns of a new one', async () => {
    let now = answer(404)
    const { check, clock } = gateOf(() => now)
    await check('http://a.test/p')
    now = answer(500)
    await clock.advance(13 * HOUR_MS)
    expect(await check('http://a.test/p')).toMatchObject({ kind: 'allowed', verdict: 'absent' })
    now = answer(200, forbidsP)
    await clock.advance(10_000)
    expect(await check('http://a.test/p')).toMatchObject({ kind: 'refused' })
  })

  it('hands on that the site has no place free, and asks again at once', async () => {
    const answers: Answer[] = [{ kind: 'wait', waitMs: 70 }, answer(404)]
    const { check } = gateOf(() => answers.shift() ?? silence)
    expect(await check('http://a.test/x')).toEqual({ kind: 'wait', waitMs: 70 })
    expect(await check('http://a.test/x')).toMatchObject({ kind: 'allowed' })
  })

  it('lets the tasks of an address that may not be asked meet the same wall', async () => {
    const { check, shared } = gateOf(() => ({ kind: 'failure', reason: 'address-refused', detail: '127.0.0.1 is not public' }))
    expect(await check('http://a.test/x')).toMatchObject({ kind: 'allowed', verdict: 'absent' })
    expect(shared.entries.size).toBe(0)
  })

  it('asks nobody where robots.txt is ignored', async () => {
    const { check, asked, shared } = gateOf(() => silence, { mode: 'ignore' })
    expect(await check('http://a.test/x')).toEqual({ kind: 'allowed', verdict: 'ignored', rule: null, crawlDelayMs: 0 })
    expect([asked.length, shared.reads]).toEqual([0, 0])
  })

  it('fails with the store, and asks again afterwards', async () => {
    const shared = new Shared()
    const { check, asked } = gateOf(() => answer(404), { shared })
    const { read } = shared
    shared.read = async () => {
      throw new Error('the store is away')
    }
    await expect(check('http://a.test/x')).rejects.toThrow('the store is away')
    shared.read = read
    expect(await check('http://a.test/x')).toMatchObject({ kind: 'allowed' })
    expect(asked).toHaveLength(1)
  })

  it('counts files without a rule apart', async () => {
    const { check, seen } = gateOf(({ hostname }) =>
      hostname === 'a.test' ? answer(200, '<html>Not found</html>') : answer(200, forbidsP),
    )
    await check('http://a.test/x')
    await check('http://b.test/x')
    const verdicts = seen.events.filter(({ event }) => event === 'RobotsRead').map(({ fields }) => fields?.verdict)
    expect(verdicts).toEqual(['no-rules', 'parsed'])
  })
})

describe('a worker whose clock was ahead', () => {
  class SkewedClock extends ManualClock {
    aheadMs = 48 * HOUR_MS
    override now(): number {
      return super.now() + this.aheadMs
    }
  }

  it('asks again when the clock is put right', async () => {
    const clock = new SkewedClock()
    const { check, asked } = gateOf(() => answer(200, forbidsP), { clock })
    await check('http://a.test/x')
    clock.aheadMs -= 60_000
    await check('http://a.test/x')
    expect(asked).toHaveLength(1)
    clock.aheadMs = 0
    await check('http://a.test/x')
    expect(asked).toHaveLength(2)
  })

  it('makes no other one wait with what it has read, and a small difference makes nobody ask', async () => {
    const clock = new SkewedClock()
    const { check, shared } = gateOf(() => answer(200, forbidsP), { clock })
    await check('http://a.test/x')
    const other = gateOf(() => answer(200, forbidsP), { shared })
    await other.check('http://a.test/x')
    expect(other.asked).toHaveLength(1)
    const third = gateOf(() => answer(200, forbidsP), { shared })
    shared.entries.set('http://a.test', { ...(shared.entries.get('http://a.test') as KeptRobots), fetchedAt: 60_000 })
    await third.check('http://a.test/x')
    expect(third.asked).toHaveLength(0)
  })
})
