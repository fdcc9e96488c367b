import { describe, expect, it } from 'vitest'
import { productToken } from '../../../src/kernel/product-token.ts'
import {
  MAX_ROBOTS_BYTES,
  parseRobots,
  parseRobotsInTurns,
  robotsCrawlDelayMs,
  robotsVerdict,
  sitemapUrls,
} from '../../../src/politeness/robots.ts'
import { escapePath, escapePattern } from '../../../src/politeness/robots-pattern.ts'
import { growth } from '../../support/growth.ts'
import {
  GOOGLE_CASES,
  GOOGLE_FILES,
  GOOGLE_PATHS,
  GOOGLE_SITEMAP,
  GOOGLE_SITEMAP_FILES,
  GOOGLE_SPELLINGS,
  GOOGLE_TOKENS,
} from './robots-google-cases.ts'

const isAllowed = (robots: string | Buffer, url: string, token = 'foobot'): boolean => {
  const { pathname, search } = new URL(url, 'http://site.test')
  return robotsVerdict(parseRobots(robots), token, pathname + search).allowed
}

/** Paths that begin with two slashes are no hosts here. */
const pathOf = (url: string): string => {
  const { pathname, search } = new URL(`http://site.test${url}`)
  return pathname + search
}

describe("Google's table", () => {
  const verdicts = GOOGLE_CASES.flatMap(({ about, robots, agent, allowed, refused }) =>
    [...allowed.map((url) => ({ url, expected: true })), ...refused.map((url) => ({ url, expected: false }))].map((rest) => ({
      about,
      robots,
      agent,
      ...rest,
    })),
  )
  const cut = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text)

  it.each(verdicts.map((verdict) => [verdict.about, cut(verdict.url), verdict.expected ? 'allowed' : 'refused', verdict] as const))(
    '%s: %s is %s',
    (_about, _url, _expected, { robots, agent, url, expected }) => {
      expect(robotsVerdict(parseRobots(robots), agent.toLowerCase(), pathOf(url)).allowed).toBe(expected)
    },
  )

  it.each(GOOGLE_FILES)('reads %s', (_about, file, understood) => {
    expect(parseRobots(file).understoodLines).toBe(understood)
  })

  it('knows what is a product token', () => {
    const isToken = (name: string): boolean => name !== '' && productToken(name) === name.toLowerCase()
    expect(GOOGLE_TOKENS.valid.filter((name) => !isToken(name))).toEqual([])
    expect(GOOGLE_TOKENS.invalid.filter(isToken)).toEqual([])
  })

  it.each(GOOGLE_SPELLINGS)('spells %j as %j', (rule, compared) => {
    expect(escapePattern(Buffer.from(rule).toString('latin1'))).toBe(compared)
  })

  it.each(GOOGLE_PATHS)('compares %j as %j', (url, compared) => {
    const { pathname, search } = new URL(url)
    expect(escapePath(pathname + search)).toBe(compared)
    const rules = parseRobots(`User-agent: *\nDisallow: ${compared}$\n`)
    expect(robotsVerdict(rules, 'foobot', pathname + search).allowed).toBe(false)
  })

  it('reads a sitemap wherever it stands', () => {
    expect(GOOGLE_SITEMAP_FILES.map((file) => sitemapUrls(parseRobots(file), 'http://foo.bar/robots.txt'))).toEqual([
      [GOOGLE_SITEMAP],
      [GOOGLE_SITEMAP],
    ])
  })

  it('is whole', () => {
    const tokens = GOOGLE_TOKENS.valid.length + GOOGLE_TOKENS.invalid.length
    const lists = [verdicts, GOOGLE_FILES, GOOGLE_SPELLINGS, GOOGLE_PATHS, GOOGLE_SITEMAP_FILES]
    expect(lists.reduce((sum, { length }) => sum + length, tokens)).toBeGreaterThanOrEqual(155)
  })
})

describe('robots.txt in the wild', () => {
  it('C015: is not hidden by a byte order mark', () => {
    expect(isAllowed(Buffer.from('efbbbf557365722d6167656e743a202a0a446973616c6c6f773a202f0a', 'hex'), '/x')).toBe(false)
    expect(isAllowed('\ufeffUser-agent: *\nDisallow: /\n', '/x')).toBe(false)
  })

  it('forbids as much in UTF-16, of both orders, where its first octets say so', () => {
    const text = 'User-agent: *\r\nDisallow: /caf\u00e9\r\nSitemap: https://a.example/\u00e9.xml\r\n'
    const little = Buffer.from(`\ufeff${text}`, 'utf16le')
    for (const body of [little, Buffer.from(little).swap16(), Buffer.concat([little, Buffer.from([0x41])])]) {
      const rules = parseRobots(body)
      expect(robotsVerdict(rules, 'bot', '/caf%C3%A9')).toEqual({ allowed: false, rule: 'Disallow: /caf\u00e9' })
      expect(robotsVerdict(rules, 'bot', '/other').allowed).toBe(true)
      expect(sitemapUrls(rules, 'https://a.example/robots.txt')).toEqual(['https://a.example/%C3%A9.xml'])
    }
    expect(parseRobots(Buffer.from([0xff, 0xfe])).understoodLines).toBe(0)
  })

  it('C017: compares raw characters with encoded ones, and loses no more than the line that is broken', () => {
    const robots = 'User-agent: *\nDisallow: /bücher/\n'
    for (const path of ['/b%C3%BCcher/1', '/b%c3%bccher/1', '/bücher/1']) {
      expect(robotsVerdict(parseRobots(robots), 'foobot', path).allowed).toBe(false)
    }
    const broken = Buffer.from('User-agent: *\nDisallow: /\xff\xfe/\nDisallow: /b/\n', 'latin1')
    expect([isAllowed(broken, '/a'), isAllowed(broken, '/b/')]).toEqual([true, false])
  })

  it('keeps a last octet that looks like a space', () => {
    expect(isAllowed('User-agent: *\nDisallow: /Ã\n', '/%C3')).toBe(true)
    expect(isAllowed('User-agent: *\nDisallow: /à\n', '/%C3%A0/x')).toBe(false)
    expect(isAllowed('User-agent: *\nDisallow: /à\n', '/%C3/x')).toBe(true)
  })

  it('C019: takes user-agent lines that follow each other as one group, whatever stands between them', () => {
    expect(isAllowed('User-agent: *\nUser-agent: BadBot\nDisallow: /\n', '/x')).toBe(false)
    expect(isAllowed('User-agent: *\n\n# comment\nSitemap: /s.xml\nHost: x\nUser-agent: BadBot\n\nDisallow: /\n', '/x')).toBe(false)
  })

  it('C021: an empty Disallow is a group all the same, and a tie goes to Allow', () => {
    const own = 'User-agent: FooBot\nDisallow:\n\nUser-agent: *\nDisallow: /\n'
    expect([isAllowed(own, '/x'), isAllowed(own, '/x', 'barbot')]).toEqual([true, false])
    expect(isAllowed('User-agent: *\nDisallow: /t.html\nAllow: /t.html\n', '/t.html')).toBe(true)
  })

  it.each([
    ['FooBot/2.1', 'foobot'],
    ['Mozilla/5.0 (compatible; FooBot/2.1; +https://bot.example.test)', 'foobot'],
    ['mozilla/5.0 (Compatible;foo-bot)', 'foo-bot'],
    ['examplebot/1.0 (+https://example.com/bot)', 'examplebot'],
    ['Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; FooBot/1.0; +https://bot.example.test)', 'foobot'],
    ['Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Safari/537.36 (compatible; FooBot; bot@foo.test)', 'foobot'],
    ['Mozilla/5.0 (Macintosh) Version/17.4 Safari/605.1.15 (FooBot/0.1; +http://foo.test)', 'foobot'],
    ['Mozilla/5.0 (X11; Foo_Bot https://foo.test)', 'foo_bot'],
    ['Mozilla/5.0 (FooBot/0.1, bot@foo.test)', 'foobot'],
    ['FooBot/1.0 (compatible; BarBot; +https://foo.test)', 'foobot'],
    ['Mozilla/5.0 (compatible; +https://foo.test)', 'mozilla'],
    ['Mozilla/5.0 (X11; Linux; +https://foo.test)', 'mozilla'],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) Safari/605.1.15 (+https://foo.test)', 'mozilla'],
    ['Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/130.0', 'mozilla'],
    ['', ''],
  ])('C023: the token of %j is %j', (userAgent, token) => {
    expect(productToken(userAgent)).toBe(token)
  })

  it('C023: the group of a bot is found by the token of its header', () => {
    const token = productToken('Mozilla/5.0 (compatible; FooBot/2.1; +https://bot.example.test)')
    expect(isAllowed('User-agent: FooBot\nDisallow: /\n\nUser-agent: *\nDisallow:\n', '/x', token)).toBe(false)
    expect(isAllowed('User-agent: foobot/1.0 (x)\nDisallow: /\n', '/x', token)).toBe(false)
  })

  it('C027: HTML is no rules', () => {
    const rules = parseRobots('<!DOCTYPE html>\n<html><body style="color: red">Not found: /robots.txt</body></html>')
    expect(rules.understoodLines).toBe(0)
    expect(robotsVerdict(rules, 'foobot', '/x').allowed).toBe(true)
  })

  it('C042: resolves sitemaps, however they are written, and drops what is no http', () => {
    const robots =
      'SITEMAP:/sitemap.xml # main\nUser-agent: *\nDisallow:\nSitemap: https://example.test/s3.xml\nSitemap: ftp://x/\nsitemap: http://[\nSitemap:\n'
    const urls = sitemapUrls(parseRobots(robots), 'https://example.test/robots.txt')
    expect(urls.slice(0, 2)).toEqual(['https://example.test/sitemap.xml', 'https://example.test/s3.xml'])
    expect(urls.some((url) => !url.startsWith('https://example.test/'))).toBe(false)
  })

  it('always allows robots.txt itself', () => {
    expect(isAllowed('User-agent: *\nDisallow: /\n', '/robots.txt')).toBe(true)
  })

  it.each([
    ['/~joe/', '/%7Ejoe/x'],
    ['/%7ejoe/', '/~joe/x'],
    ['/a b', '/a%20b'],
    ['/a%2Fb', '/a%2fb'],
    ['/{id}', '/%7Bid%7D'],
    ["/?q='x'", '/?q=%27x%27'],
    ['/file-with-a-%2A.html', '/file-with-a-*.html'],
    ['/price%24', '/price$'],
    ['/price$list', '/price$list'],
  ])('takes %j and %j for the same path', (rule, path) => {
    expect(isAllowed(`User-agent: *\nDisallow: ${rule}\n`, path)).toBe(false)
  })

  it.each([
    ['/n%6f', '/no'],
    ['/n%6F', '/n%6f'],
    ['/no', '/n%6f'],
    ['/foo/bar/%62%61%7A', '/foo/bar/baz'],
    ['/?id=%35', '/?id=5'],
    ['/*%70df$', '/a.p%64f'],
  ])('%j forbids %j, whose letters are one URL encoded or not', (rule, path) => {
    expect(isAllowed(`User-agent: *\nDisallow: ${rule}\n`, path)).toBe(false)
  })

  it('lets no rule allow what it does not spell, nor weigh more for its spelling', () => {
    expect(isAllowed('User-agent: *\nDisallow: /\nAllow: /n%6f\n', '/no')).toBe(false)
    expect(isAllowed('User-agent: *\nDisallow: /\nAllow: /n%6f\n', '/n%6f')).toBe(true)
    expect(isAllowed('User-agent: *\nDisallow: /no*\nAllow: /n%6f\n', '/n%6f')).toBe(false)
  })

  it('does not take an encoded slash for a slash', () => {
    expect(isAllowed('User-agent: *\nDisallow: /a%2Fb\n', '/a/b')).toBe(true)
  })

  it('names the rule that decided, as it is written', () => {
    const rules = parseRobots('User-agent: *\nDisallow: /  # all\nAllow: /bü*\n')
    expect(robotsVerdict(rules, 'foobot', '/x')).toEqual({ allowed: false, rule: 'Disallow: /' })
    expect(robotsVerdict(rules, 'foobot', '/b%C3%BC1')).toEqual({ allowed: true, rule: 'Allow: /bü*' })
    expect(robotsVerdict(parseRobots(''), 'foobot', '/x')).toEqual({ allowed: true, rule: undefined })
    const twice = parseRobots('User-agent: *\nDisallow: /x # first\nDISALLOW: /x\n')
    expect(robotsVerdict(twice, 'foobot', '/x').rule).toBe('Disallow: /x')
  })

  it('weighs an index page that allows its folder by the length of the folder', () => {
    const rules = (forbidden: string) => `User-agent: *\nDisallow: ${forbidden}\nAllow: /a/index.html\n`
    expect(isAllowed(rules('/*a*/'), '/a/')).toBe(false)
    expect(isAllowed(rules('/*a*/'), '/a/index.html')).toBe(true)
    expect(isAllowed(rules('/*/'), '/a/')).toBe(true)
  })

  it('reads 512 KiB and no more', () => {
    const filler = `#${'x'.repeat(1_022)}\n`.repeat(MAX_ROBOTS_BYTES / 1_024 - 1)
    expect(isAllowed(`User-agent: *\n${filler}Disallow: /\n`, '/x')).toBe(false)
    expect(isAllowed(`User-agent: *\n${filler}${filler.slice(0, 1_024)}Disallow: /\n`, '/x')).toBe(true)
  })

  it.each(['\0', '\0\0\0', ':', '::::', 'user-agent', 'user-agent:', 'disallow:', '\r', '#', '\xff\xfe', 'user-agent:\ndisallow: /'])(
    'reads %j without a rule for anybody',
    (text) => expect(isAllowed(Buffer.from(text, 'latin1'), '/x')).toBe(true),
  )
})

describe('Crawl-delay', () => {
  const delayMs = (robots: string, token = 'foobot') => robotsCrawlDelayMs(parseRobots(robots), token)

  it.each([
    ['10', 10_000],
    ['0.2', 200],
    ['0,5', 500],
    ['.5', 500],
    ['2.', 2_000],
    ['10 seconds', 10_000],
    ['0', 0],
    ['-1', undefined],
    ['ten', undefined],
    ['', undefined],
    ['Infinity', undefined],
    ['9'.repeat(400), 365 * 86_400_000],
  ])('of %j is %s ms', (text, ms) => {
    expect(delayMs(`User-agent: *\nCrawl-delay: ${text}\n`)).toBe(ms)
  })

  it('C136: meant for one bot is not that of another, and a group of its own does not inherit', () => {
    expect(delayMs('User-agent: *\nDisallow: /p\n\nUser-agent: OtherBot\nCrawl-delay: 10\n')).toBeUndefined()
    expect(delayMs('User-agent: *\nCrawl-delay: 10\nDisallow: /p\n\nUser-agent: FooBot\nDisallow: /q\n')).toBeUndefined()
    expect(delayMs('User-agent: OtherBot\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /p\n')).toBeUndefined()
    expect(delayMs('User-agent: OtherBot\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /p\n', 'otherbot')).toBe(10_000)
  })

  it('belongs to all agents named before it, and the longest counts', () => {
    const robots = 'User-agent: FooBot\nUser-agent: BarBot\nCrawl-delay: 2\nDisallow: /p\nUser-agent: FooBot\nCrawl-delay: 1\n'
    expect([delayMs(robots), delayMs(robots, 'barbot'), delayMs(robots, 'other')]).toEqual([2_000, 2_000, undefined])
  })

  it('does not end a group', () => {
    expect(isAllowed('User-agent: FooBot\nCrawl-delay: 2\nUser-agent: BarBot\nDisallow: /\n', '/x')).toBe(false)
  })
})

describe('a file that is made to take long', () => {
  const lines = (line: string): string => `User-agent: *\n${`${line}\n`.repeat(Math.floor(520_000 / (line.length + 1)))}`
  it.each(['allow:*aaaaab', 'allow:*aaaaaaaaaaaaaaaaaaaaaaab', 'disallow:*ab*ac*ad*ae', 'allow:*/index.html'])(
    'gives its verdict at once all the same: %s',
    (line) => {
      const rules = parseRobots(lines(line))
      // Four times the path is four times the work and more, where nothing bounds it.
      expect(growth((length) => robotsVerdict(rules, 'foobot', `/${'a'.repeat(length)}`), 2_000)).toBeLessThan(2.5)
    },
  )

  it('forbids rather more than it means, where its wildcards are too many to be looked through', () => {
    const file = `${lines('allow:*aaaaab')}disallow:/aa*private\ndisallow:/plain\nallow:/aa*never-looked-at\n`
    const verdict = (path: string): boolean => robotsVerdict(parseRobots(file), 'foobot', path).allowed
    expect(verdict(`/${'a'.repeat(2_000)}`)).toBe(false)
    expect(verdict(`/b${'a'.repeat(2_000)}`)).toBe(true)
    expect(verdict(`/plain${'a'.repeat(2_000)}`)).toBe(false)
  })

  it('says of a rule that was not looked at that it was not', () => {
    const rules = parseRobots(`${lines('allow:*aaaaab')}disallow:/aa*private\n`)
    expect(robotsVerdict(rules, 'foobot', `/${'a'.repeat(2_000)}`)).toEqual({
      allowed: false,
      rule: 'disallow:/aa*private (taken as /aa*: more rules with * than are looked at)',
    })
  })

  it('is none that forbids the filters of a shop one by one, however long a path is', () => {
    const filters = Array.from(
      { length: 2_000 },
      (_, index) => `Disallow: /*?filter${index}=\nDisallow: /*&filter${index}=\nDisallow: /*?filter-by-colour${index}=`,
    ).join('\n')
    const rules = parseRobots(`User-agent: *\n${filters}\nDisallow: /*?last=\n`)
    const long = `/${'shop/'.repeat(1_000)}?${'color=red&'.repeat(300)}`
    expect(robotsVerdict(rules, 'foobot', long)).toEqual({ allowed: true, rule: undefined })
    expect(robotsVerdict(rules, 'foobot', `${long}&filter1999=1`).rule).toBe('Disallow: /*&filter1999=')
    expect(robotsVerdict(rules, 'foobot', '/shop?last=1').rule).toBe('Disallow: /*?last=')
  })

  it('has its crawl delay in time, however many bots and delays it names', () => {
    const rulesOf = (count: number) => {
      const bots = Array.from({ length: count }, (_, index) => `user-agent:b${'x'.repeat(index % 7)}`).join('\n')
      return parseRobots(`${bots}\nuser-agent: *\n${'crawl-delay:1\n'.repeat(count)}`)
    }
    const [some, many] = [rulesOf(4_000), rulesOf(16_000)]
    expect(growth((count) => robotsCrawlDelayMs(count === 4_000 ? some : many, 'foobot'), 4_000)).toBeLessThan(9)
    expect(robotsCrawlDelayMs(many, 'foobot')).toBe(1_000)
  })

  it('is parsed a piece at a time, to the same rules', async () => {
    const file = Buffer.from(lines('disallow:/a*b'))
    let turns = 0
    const rules = await parseRobotsInTurns(file, async () => {
      turns += 1
    })
    expect(rules).toEqual(parseRobots(file))
    expect(turns).toBeGreaterThan(30)
  })
})
