import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pageCandidates, readAs } from '../../../src/frontier/frontier-page.ts'
import { sitemapLinks } from '../../../src/frontier/sitemap-links.ts'
import { MAX_SITEMAP_URLS, MAX_SITEMAPS_PER_FILE, SitemapScanner } from '../../../src/frontier/sitemap-scanner.ts'
import { MAX_SITEMAP_BYTES, sitemapText } from '../../../src/frontier/sitemap-text.ts'
import type { Page } from '../../../src/message/generated/types.ts'
import { compileScope } from '../../../src/url/scope.ts'
import { testPage } from '../../support/extraction.ts'
import { growth } from '../../support/growth.ts'

const FILE = 'http://a.example.test/maps/sitemap.xml'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

async function read(file: string | Buffer) {
  const scanner = new SitemapScanner(FILE)
  for await (const text of sitemapText(Buffer.from(file))) scanner.write(text)
  scanner.end()
  return { kind: scanner.kind, ...scanner.take(), passedOver: scanner.passedOver }
}

const urls = async (file: string | Buffer) => (await read(file)).pages
const urlset = (...locs: readonly string[]) => `<urlset>${locs.map((loc) => `<url><loc>${loc}</loc></url>`).join('')}</urlset>`

describe('a sitemap', () => {
  it('C034: may have white space or a byte order mark before its declaration, whatever its name says', async () => {
    const file =
      '\n  <?xml version="1.0"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://example.test/1</loc></url></urlset>'
    expect(await urls(file)).toEqual(['http://example.test/1'])
    expect(await urls(Buffer.concat([Buffer.from('efbbbf', 'hex'), Buffer.from(file)]))).toEqual(['http://example.test/1'])
  })

  it('C036: has its URLs in CDATA or padded, with entities that are read once', async () => {
    const file =
      '<urlset><url><loc>\n  <![CDATA[http://example.test/a?b=1&c=2]]>\n</loc></url><url><loc>http://example.test/a?b=1&amp;c=3</loc></url><url><loc>http://example.test/&amp;amp;</loc></url></urlset>'
    expect(await urls(file)).toEqual(['http://example.test/a?b=1&c=2', 'http://example.test/a?b=1&c=3', 'http://example.test/&amp;'])
  })

  it('C038: may be a list of URLs, packed or not', async () => {
    const list = 'http://example.test/1\r\nhttp://example.test/2\n\nno URL\nftp://example.test/3\rhttp://example.test/4'
    const expected = { kind: 'text', pages: ['1', '2', '4'].map((n) => `http://example.test/${n}`) }
    expect(await read(list)).toMatchObject(expected)
    expect(await read(zlib.gzipSync(list))).toMatchObject(expected)
  })

  it('C040: is none where a page stands in its place', async () => {
    for (const page of ['<!doctype html><html><body><a href="/login">log in</a>', '<h1>403</h1>', 'Not found', '{"error": 403}', '', ' \n'])
      expect(await read(page)).toEqual({ kind: 'none', pages: [], sitemaps: [], passedOver: 0 })
    expect(await read('<rss><channel><item><link>http://a.example.test/1</link></item></channel></rss>')).toMatchObject({ kind: 'none' })
  })

  it('C192: loads nothing for an external entity, and repeats none', async () => {
    const file =
      '<!DOCTYPE f [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY y "&x;&x;">]><urlset><url><loc>http://a.example.test/&x;&y;</loc></url><url><loc>http://a.example.test/2</loc></url></urlset>'
    expect(await urls(file)).toEqual(['http://a.example.test/&x;&y;', 'http://a.example.test/2'])
  })

  it('names others in an index, and what belongs to its own elements alone', async () => {
    const index = '<sitemapindex><sitemap><loc>http://a.example.test/1.xml</loc></sitemap></sitemapindex>'
    expect(await read(index)).toMatchObject({ kind: 'index', pages: [], sitemaps: ['http://a.example.test/1.xml'] })
    const named =
      '<s:urlset><s:url><s:loc>/one?q=ü#top</s:loc><image:image><image:loc>http://i.example.test/</image:loc></image:image><loc>http://no.example.test/</loc></s:url></s:urlset>'
    expect(await urls(named)).toEqual(['http://a.example.test/one?q=%C3%BC'])
  })

  it('gives what stands before a cut or a damage', async () => {
    const file = urlset(...Array.from({ length: 20_000 }, (_, index) => `http://a.example.test/${(index * 7_919) % 20_011}`))
    expect((await urls(file.slice(0, file.length / 2))).length).toBeGreaterThan(9_900)
    const packed = zlib.gzipSync(file)
    const half = Math.floor(packed.length / 2)
    expect((await urls(packed.subarray(0, half))).length).toBeGreaterThan(5_000)
    const damaged = Buffer.from(packed)
    damaged.fill(7, half, half + 400)
    expect((await urls(damaged)).length).toBeGreaterThan(5_000)
    expect(await urls(zlib.gzipSync(urlset('http://a.example.test/1')).subarray(0, -9))).toEqual(['http://a.example.test/1'])
  })

  it('C184: is read in pieces, and no further than the protocol allows once it is unpacked', async () => {
    const many = urlset(...Array.from({ length: MAX_SITEMAP_URLS + 7 }, (_, index) => `http://a.example.test/${index}`))
    const { pages, passedOver } = await read(many)
    expect([pages.length, passedOver]).toEqual([MAX_SITEMAP_URLS, 7])
    const index = `<sitemapindex>${'<sitemap><loc>http://a.example.test/x</loc></sitemap>'.repeat(MAX_SITEMAPS_PER_FILE + 7)}</sitemapindex>`
    expect(await read(index)).toMatchObject({ passedOver: 7 })

    const begin = `<urlset><url><loc>http://a.example.test/first</loc></url>`
    const bomb = zlib.gzipSync(Buffer.concat([Buffer.from(begin), Buffer.alloc(2 * MAX_SITEMAP_BYTES, 32)]))
    let [longest, length] = [0, 0]
    for await (const text of sitemapText(bomb)) {
      longest = Math.max(longest, text.length)
      length += text.length
    }
    expect([longest, length]).toEqual([8_192, MAX_SITEMAP_BYTES])
    expect(await urls(bomb)).toEqual(['http://a.example.test/first'])
  })

  it('C078: keeps a character that lies in two pieces, packed or not', async () => {
    const url = 'http://a.example.test/caf'
    const split = (begin: string, end: string) => Buffer.from(`${begin}${url.padStart(8_191 - begin.length)}ü${end}`)
    for (const file of [split('<urlset><url><loc>', '</loc></url></urlset>'), split('', `\n${url}`)]) {
      expect(file.indexOf('ü')).toBe(8_191)
      expect([await urls(file), await urls(zlib.gzipSync(file))].map(([first]) => first)).toEqual([`${url}%C3%BC`, `${url}%C3%BC`])
    }
  })

  it('C184: gives its URLs in batches while it is read, and holds none of them', async () => {
    const long = (index: number) => `http://a.example.test/products/${index}/${'of-the-same-name-'.repeat(7)}`
    const file = (count: number) => Buffer.from(urlset(...Array.from({ length: count }, (_, index) => long(index))))
    const bomb = zlib.gzipSync(file(20_000))
    expect(bomb.length).toBeLessThan(file(20_000).length / 20)
    for (const [read, count] of [
      [file(MAX_SITEMAP_URLS), MAX_SITEMAP_URLS],
      [bomb, 20_000],
    ] as const) {
      const seen = { pieces: 0, batches: 0, links: 0, longest: 0, grown: 0 }
      const breath = async () => {
        seen.pieces += 1
      }
      const before = heapBytes()
      for await (const { links } of sitemapLinks({ finalUrl: FILE, fetchId: 'f' }, read, { size: 20, breath })) {
        if (seen.batches === 0) expect([seen.pieces, links.length]).toEqual([0, 20])
        seen.batches += 1
        seen.links += links.length
        seen.longest = Math.max(seen.longest, links.length)
        if (seen.batches % 500 === 0) seen.grown = Math.max(seen.grown, heapBytes() - before)
      }
      expect(seen).toMatchObject({ links: count, longest: 20 })
      // Their text is several times that.
      expect(seen.grown).toBeLessThan(1_000_000)
    }
  })

  it('holds no more of a text than a URL may have, and ends with elements that go ever deeper', async () => {
    const long = 'x'.repeat(9_000)
    expect(await urls(urlset(`http://a.example.test/${long}`, 'http://a.example.test/1'))).toEqual(['http://a.example.test/1'])
    expect(await urls(`http://a.example.test/0\nhttp://a.example.test/${long}\nhttp://a.example.test/1`)).toEqual([
      'http://a.example.test/0',
      'http://a.example.test/1',
    ])
    const scanner = new SitemapScanner(FILE)
    scanner.write(`<urlset>${'<url>'.repeat(100)}`)
    expect(scanner.isDone).toBe(true)
  })

  it('gives the same however it is cut into pieces', () => {
    const file = `\uFEFF ${urlset('http://a.example.test/1?a=1&amp;b=2', '<![CDATA[http://a.example.test/2]]>')}`
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 40 }), fc.boolean(), (sizes, isList) => {
        const text = isList ? 'http://a.example.test/1?a=1&b=2\r\nhttp://a.example.test/2' : file
        const scanner = new SitemapScanner(FILE)
        for (let [at, turn] = [0, 0]; at < text.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1
          scanner.write(text.slice(at, at + size))
          at += size
        }
        scanner.end()
        expect(scanner.take().pages).toEqual(['http://a.example.test/1?a=1&b=2', 'http://a.example.test/2'])
      }),
    )
  })

  it('takes time by its length alone, whatever is in it', () => {
    const scan = (text: string) => {
      const scanner = new SitemapScanner(FILE)
      for (let at = 0; at < text.length; at += 65_536) scanner.write(text.slice(at, at + 65_536))
      scanner.end()
    }
    for (const piece of ['<', '&', ' a="', '<!--', '<![CDATA[', ']]', 'x'])
      expect(growth((size) => scan(`<urlset><url><loc>${piece.repeat(size)}`), 20_000)).toBeLessThan(9)
    expect(growth((size) => scan('x'.repeat(size)), 200_000)).toBeLessThan(9)
  })
})

describe('what a sitemap leads to', () => {
  const crawl = { crawlId: 'spring', depth: 0, maxDepth: 1, seedUrl: 'http://a.example.test/' }
  const page = (change: Partial<Page>): Page => testPage('', FILE, { ...crawl, ...change })
  let scope: 'domain' | 'any' = 'domain'
  const candidates = (of: Page, to: 'pages' | 'sitemaps', ...links: readonly string[]) =>
    pageCandidates(of, { links, to, foundOn: 'http://a.example.test/robots.txt', claimant: of.fetchId }, compileScope({ kind: scope }))

  it('is tasks one deeper for its URLs, and sitemaps of the same depth, so that one crawl of depth 1 has both', () => {
    const [link] = candidates(page({ sitemapLevel: 1 }), 'pages', 'http://a.example.test/1').candidates
    expect(link?.task).toMatchObject({ depth: 1, sitemapLevel: 0 })
    const [sitemap] = candidates(page({}), 'sitemaps', 'http://a.example.test/1.xml').candidates
    expect(sitemap?.task).toMatchObject({ depth: 0, sitemapLevel: 1, parentUrl: 'http://a.example.test/robots.txt' })
  })

  it('is apart from the page of the same URL: neither takes it from the other', () => {
    const [asPage, asSitemap] = (['pages', 'sitemaps'] as const).map(
      (to) => candidates(page({}), to, 'http://a.example.test/map').candidates[0],
    )
    expect(asPage?.task.canonicalUrl).toBe(asSitemap?.task.canonicalUrl)
    expect(asPage?.identity).not.toBe(asSitemap?.identity)
    expect(asPage?.task.taskId).not.toBe(asSitemap?.task.taskId)
  })

  it('C194: stays within the scope of the crawl, and ends where sitemaps name each other without end', () => {
    const foreign = candidates(page({ sitemapLevel: 1 }), 'sitemaps', 'http://127.0.0.1:8080/admin', 'http://other.example.test.evil/s.xml')
    expect([foreign.candidates, [...foreign.refused]]).toEqual([[], [['out-of-scope', 2]]])
    scope = 'any'
    const anywhere = candidates(page({}), 'sitemaps', 'http://other.example.org/s.xml', 'http://maps.example.test/s.xml')
    expect([anywhere.candidates.length, [...anywhere.refused]]).toEqual([1, [['foreign-sitemap', 1]]])
    scope = 'domain'
    const deep = candidates(page({ sitemapLevel: 2 }), 'sitemaps', 'http://a.example.test/3.xml')
    expect([deep.candidates, [...deep.refused]]).toEqual([[], [['sitemaps-too-deep', 1]]])
  })

  it('is looked for in what its task calls one, and in XML that a user gave, where links are followed', () => {
    const html = { contentType: 'text/html' }
    expect(readAs(page(html))).toBe('html')
    expect(readAs(page({ ...html, sitemapLevel: 1 }))).toBe('sitemap')
    expect(readAs(page({ contentType: 'application/xml' }))).toBe('sitemap')
    expect(readAs(page({ contentType: 'application/json' }))).toBeUndefined()
    for (const change of [{ depth: 1 }, { crawlId: null }, { status: 403 }, { truncated: 'undecoded' }])
      expect(readAs(page({ sitemapLevel: 1, ...change }))).toBeUndefined()
  })
})
