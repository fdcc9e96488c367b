import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LinkSet } from '../../../src/frontier/link-set.ts'
import { LinkScanner } from '../../../src/frontier/links.ts'
import { growth } from '../../support/growth.ts'

/** Links of a whole text at once. */
function extractLinks(html: string, pageUrl: string, charset = 'UTF-8'): string[] {
  const links = new LinkSet(100_000)
  const scanner = new LinkScanner(links, charset)
  scanner.write(html)
  return [...links.batches(scanner.end(pageUrl), 100)].flat()
}

const page = 'http://example.test/dir/page?post=1'

describe('links of a page', () => {
  it('are absolute, without fragment, in order and each once', () => {
    const html = '<a href="b">1</a><a href="/c#top">2</a><a href="b#x">3</a><area href="http://other.test/">'
    expect(extractLinks(html, page)).toEqual(['http://example.test/dir/b', 'http://example.test/c', 'http://other.test/'])
  })

  it('C005: strip white space around an href, so that a page does not link to longer copies of itself', () => {
    expect(extractLinks('<a href=" \n http://b.example.test/a\n ">x</a>', page)).toEqual(['http://b.example.test/a'])
    const self = 'http://example.test/?post=1'
    expect(extractLinks(`<a href="\t${self.replace('post', 'po\nst')}\r\n">x</a><a href="&#32;&#10;${self}">`, self)).toEqual([self])
  })

  it('have the letters of their query in the encoding of the page, as its server reads them', () => {
    const html = '<a href="/п?q=тест">1</a><a href="?q=é#т">2</a>'
    expect(extractLinks(html, page, 'windows-1251')).toEqual([
      'http://example.test/%D0%BF?q=%F2%E5%F1%F2',
      'http://example.test/dir/page?q=%26%23233%3B',
    ])
    expect(extractLinks(html, page)).toEqual([
      'http://example.test/%D0%BF?q=%D1%82%D0%B5%D1%81%D1%82',
      'http://example.test/dir/page?q=%C3%A9',
    ])
  })

  it('follow no base within a template or another language', () => {
    const none = '<template><base href="/t/"></template><svg><base href="/s/"/></svg>'
    expect(extractLinks(`${none}<svg><foreignObject><base href="/f/"></foreignObject></svg><a href="x">`, page)).toEqual([
      new URL('/f/x', page).href,
    ])
  })

  it('follow the first base element, wherever it stands', () => {
    expect(extractLinks('<a href="x">1</a><base href="/other/"><base href="/third/"><a href="y">', page)).toEqual([
      'http://example.test/other/x',
      'http://example.test/other/y',
    ])
  })

  it('C009: that only say where they stand lead to one page', () => {
    expect(extractLinks('<a href="./"><a href="."><a href="%2e/./"><a href="">', 'http://example.test/')).toEqual(['http://example.test/'])
  })

  it('C013: survive template junk with lone percent signs', () => {
    expect(extractLinks(`<a href='/"%url%/"'>j</a><a href="/ok">o</a>`, 'http://example.test/')).toEqual([
      'http://example.test/%22%url%/%22',
      'http://example.test/ok',
    ])
  })

  it('C094: keep named references without semicolon in attribute URLs', () => {
    expect(extractLinks('<a href="/x?a=1&para=2&copy=3&lt=4">', 'http://example.test/')).toEqual([
      'http://example.test/x?a=1&para=2&copy=3&lt=4',
    ])
  })

  it('are not found in comments, scripts and templates', () => {
    expect(
      extractLinks('<!-- <a href="/c"> --><script>"<a href=/s>"</script><template><a href="/t"></a></template><a href="/a">', page),
    ).toEqual(['http://example.test/a'])
  })

  it('are hidden by a template until its own end, whatever else ends within', () => {
    expect(extractLinks('<div><template></div><a href="/t"></template><a href="/a">', page)).toEqual(['http://example.test/a'])
  })

  it('cost no more than the length of the page, which the frontier reads without a time limit', () => {
    expect(growth((count) => extractLinks('<font>'.repeat(count), page), 60_000)).toBeLessThan(9)
  })

  it('leave out what no crawler can fetch', () => {
    expect(
      extractLinks('<a href="mailto:a@b"><a href="javascript:x()"><a href="ftp://x/"><a href="http://[bad"><a href="tel:1"><a>', page),
    ).toEqual([])
  })

  it('leave out hosts that no resolver knows, each of which would be a task that fails', () => {
    const dots = `http://a${'.'.repeat(1_900)}b.example/`
    expect(extractLinks(`<a href="${dots}"><a href="http://a..b.example/"><a href="http://${'a.'.repeat(130)}example/">`, page)).toEqual([])
  })

  it('name nobody: one with a user is the page behind it, which a fetch would refuse', () => {
    expect(extractLinks('<a href="http://info:pw@example.test/a"><a href="/a"><a href="http://x@other.test">', page)).toEqual([
      'http://example.test/a',
      'http://other.test/',
    ])
    expect(extractLinks('<base href="http://u:p@other.test/b/"><a href="c">', page)).toEqual(['http://other.test/b/c'])
  })

  it('are bounded, and those that are passed over are counted', () => {
    const links = new LinkSet(3)
    const scanner = new LinkScanner(links, null)
    scanner.write('<a href="a"><a href="#top"><a href="a#b"><a href="b"><a href="c"><a href="d"><a href="a">')
    expect([...links.batches(scanner.end(page), 2)]).toEqual([['http://example.test/dir/a', page], ['http://example.test/dir/b']])
    expect(links.passedOver).toBe(2)
  })

  it('are none above the length that a URL may have, and cost no more where a base makes all of them that long', () => {
    const below = (length: number, count = 1): string =>
      `<base href="http://a.example/${'a'.repeat(length)}/">${Array.from({ length: count }, (_, index) => `<a href=${index}>`).join('')}`
    expect(extractLinks(below(8_000), page)).toHaveLength(1)
    expect(extractLinks(`${below(9_000)}<a href="/own"><a href="http://b.example/">`, page)).toEqual(['http://b.example/'])
    expect(extractLinks(`<a href="/${'a'.repeat(9_000)}"><a href="/${'ä'.repeat(2_000)}"><a href="/b">`, page)).toEqual([
      'http://example.test/b',
    ])
    expect(growth((count) => extractLinks(below(20_000, count), page), 2_000)).toBeLessThan(9)
  })

  it('give an answer for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => Array.isArray(extractLinks(`<a href="${text}">${text}`, page))),
      { numRuns: 300 },
    )
  })
})
