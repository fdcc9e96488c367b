import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRobots, robotsCrawlDelayMs, robotsVerdict, textFor, understoodText } from '../../../src/politeness/robots.ts'
import { escapePath, escapePattern, matchPattern, robotsPattern } from '../../../src/politeness/robots-pattern.ts'

/** The same meaning by trying every place: short inputs only. */
function reference(pattern: string, path: string): boolean {
  if (pattern === '') return true
  if (pattern === '$') return path === ''
  if (pattern[0] === '*') return reference(pattern.slice(1), path) || (path !== '' && reference(pattern, path.slice(1)))
  return path !== '' && path[0] === pattern[0] && reference(pattern.slice(1), path.slice(1))
}

const few = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 12 })
const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*', '*'), maxLength: 10 })

/** Time of this process alone: a busy machine makes no pattern slow. */
const cpuMsSince = (before: NodeJS.CpuUsage): number => process.cpuUsage(before).user / 1_000

describe('a pattern of robots.txt', () => {
  it('means what trying every place means', () => {
    fc.assert(
      fc.property(pattern, fc.boolean(), few, (text, isAnchored, rest) => {
        const rule = isAnchored ? `${text}$` : text
        expect(matchPattern(robotsPattern(rule), `/${rest}`)).toBe(reference(rule, `/${rest}`))
      }),
      { numRuns: 3_000 },
    )
  })

  it('means the same for pieces too long for the quick search', () => {
    const long = fc.string({ unit: fc.constantFrom('a', 'a', 'a', 'b'), minLength: 17, maxLength: 40 })
    const text = fc.array(fc.oneof(long, few), { maxLength: 6 }).map((parts) => `/${parts.join('')}`)
    fc.assert(
      fc.property(fc.array(long, { minLength: 1, maxLength: 2 }), fc.boolean(), text, (pieces, isInside, path) => {
        const given = isInside ? `${path}${pieces.join('x')}${path}` : path
        let at = 1
        const expected = pieces.every((piece) => {
          const found = given.indexOf(piece, at)
          at = found + piece.length
          return found !== -1
        })
        expect(matchPattern(robotsPattern(`/*${pieces.join('*')}`), given)).toBe(expected)
      }),
      { numRuns: 1_000 },
    )
  })

  it('is compared in a spelling that does not change when it is spelled again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (unicode, ascii) => {
        const octets = Buffer.from(unicode).toString('latin1')
        for (const text of [octets, ascii]) expect(escapePattern(escapePattern(text))).toBe(escapePattern(text))
        for (const text of [unicode, ascii]) expect(escapePath(escapePath(text))).toBe(escapePath(text))
        expect(escapePath(unicode)).toMatch(/^[\x21-\x7e]*$/)
      }),
    )
  })

  it.each([
    ['wildcards', `/${'*a'.repeat(8_000)}b`, `/${'a'.repeat(8_000)}`],
    ['a piece that nearly fits everywhere', `/*${'a'.repeat(4_000)}b`, `/${'a'.repeat(8_000)}`],
    ['a piece that fails at its beginning', `/*b${'a'.repeat(4_000)}`, `/${'a'.repeat(8_000)}`],
    // The search that is built in takes half a second for one verdict on these.
    ['a piece that fails in its middle', `/*${'a'.repeat(2_000)}b${'a'.repeat(2_000)}`, `/${'a'.repeat(8_000)}`],
    ['stars alone', `/${'*'.repeat(16_000)}x`, `/${'y'.repeat(8_000)}`],
  ])('costs no more than its length: %s', (_about, rule, path) => {
    const file = `User-agent: *\n${`Disallow: ${rule}\n`.repeat(Math.floor(500_000 / (rule.length + 11)))}`
    const before = process.cpuUsage()
    const rules = parseRobots(file)
    for (let times = 0; times < 5; times += 1) expect(robotsVerdict(rules, 'foobot', path).allowed).toBe(true)
    expect(cpuMsSince(before)).toBeLessThan(1_000)
  })

  it('is read in no time from a file of spaces', () => {
    const file = `${'a'.padEnd(16_000)}b: c\n`.repeat(30)
    const before = process.cpuUsage()
    expect(parseRobots(file).understoodLines).toBe(0)
    expect(cpuMsSince(before)).toBeLessThan(500)
  })
})

describe('robots.txt', () => {
  it('gives a verdict for any bytes and any path', () => {
    const line = fc.tuple(
      fc.constantFrom('user-agent: ', 'allow:', 'Disallow: ', 'crawl-delay:', 'sitemap: ', ''),
      fc.string({ unit: 'binary' }),
    )
    fc.assert(
      fc.property(fc.array(line), fc.uint8Array(), fc.webPath(), (lines, bytes, path) => {
        const file = Buffer.concat([Buffer.from(lines.map((parts) => parts.join('')).join('\n')), Buffer.from(bytes)])
        expect(typeof robotsVerdict(parseRobots(file), 'foobot', `/${path}`).allowed).toBe('boolean')
      }),
    )
  })
})

describe('what is kept of a robots.txt', () => {
  const word = fc.constantFrom(
    ...['User-agent:', 'disallow', 'Allow: ', 'crawl-delay:', 'Sitemap:', 'Host: x', '*', 'foobot', '/a*b$', '2.5', ' ', '\t', '\v', '\0'],
    ...['#', ':', '\n', '\r\n', '\r', '\n', '\n', '\xff\xfe', '\xef\xbb\xbf', '\xe9'],
  )
  const file = fc.array(word, { maxLength: 60 }).map((words) => Buffer.from(words.join(''), 'latin1'))

  it('has the rules of the whole file', async () => {
    await fc.assert(
      fc.asyncProperty(file, async (body) => {
        const text = await understoodText(body, async () => undefined)
        expect(parseRobots(Buffer.from(text, 'latin1'))).toEqual(parseRobots(body))
      }),
      { numRuns: 2_000 },
    )
  })

  it('has the same verdicts for the one token where it is that which counts for it, whatever its octets are', () => {
    const line = fc.constantFrom(
      ...['User-agent: *', 'User-agent: foobot', 'User-agent: other', 'Disallow: /caf\xe9', 'Allow: /caf\xe9/a', 'Disallow: /caf\xc3\xa9'],
      ...['Allow: /*\xff$', 'Disallow: /', 'Crawl-delay: 2.5', 'Crawl-delay: 7', 'Sitemap: /\xe9.xml', 'disallow /a'],
    )
    const lines = fc.array(line, { maxLength: 20 }).map((all) => Buffer.from(all.join('\n'), 'latin1'))
    const path = fc.constantFrom('/', '/a', '/caf%E9', '/caf%E9/a', '/caf%C3%A9', '/caf%EF%BF%BD', '/x%FF')
    fc.assert(
      fc.property(fc.oneof(lines, file), path, (body, sought) => {
        const whole = parseRobots(body)
        const kept = parseRobots(Buffer.from(textFor(whole, 'foobot'), 'latin1'))
        expect(robotsVerdict(kept, 'foobot', sought)).toEqual(robotsVerdict(whole, 'foobot', sought))
        expect(robotsCrawlDelayMs(kept, 'foobot')).toBe(robotsCrawlDelayMs(whole, 'foobot'))
        expect(kept.sitemaps).toEqual(whole.sitemaps)
      }),
      { numRuns: 2_000 },
    )
  })
})
