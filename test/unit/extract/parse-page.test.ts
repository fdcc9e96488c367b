import { load } from 'cheerio'
import { describe, expect, it } from 'vitest'
import { createPageParser } from '../../../src/extract/parse-page.ts'
import { corpusNote, corpusPages, hasCorpus } from '../../support/corpus.ts'

const parser = createPageParser()
const probe = ($: ReturnType<typeof load>): unknown => ({
  html: $.html(),
  root: $.root().children().length,
  text: $('body').text(),
  isRoot: $('html').get(0)?.parent === $.root()[0],
  up: $('body').parents().length,
  links: $('a[href]')
    .map((_, element) => $(element).attr('href'))
    .get(),
  nested: $('div')
    .slice(0, 50)
    .map((_, element) => $(element).find('> p, ul li').length)
    .get(),
  contains: $.contains($('html')[0] as never, $('body')[0] as never),
})

describe('the shared document', () => {
  it('is that of cheerio.load for as long as the page is open', () => {
    const text = '<!doctype html><!-- c --><title>T</title><p>a<p>b<noscript><i>x</i></noscript>'
    expect(parser.withPage(text, { mode: 'document' }, ({ $ }) => probe($))).toEqual(probe(load(text)))
    expect(parser.withPage('<tr><td>1', { mode: 'fragment' }, ({ $ }) => $.html())).toBe(load('<tr><td>1', null, false).html())
  })

  it('holds nothing of a page once it is closed, also when its reader throws', () => {
    const kept = parser.withPage('<p>first</p>', { mode: 'document' }, ({ $ }) => $)
    expect(kept('p')).toHaveLength(0)
    expect(() =>
      parser.withPage('<p>second</p>', { mode: 'document' }, () => {
        throw new Error('reader')
      }),
    ).toThrow('reader')
    expect(kept('p')).toHaveLength(0)
    expect(parser.withPage('<b>third</b>', { mode: 'document' }, ({ $ }) => $('body').html())).toBe('<b>third</b>')
  })

  it('gives places in the text where they are asked for', () => {
    const line = parser.withPage(
      '<p>\n<b>x</b>',
      { mode: 'document', locations: true },
      ({ $ }) => $('b')[0]?.sourceCodeLocation?.startLine,
    )
    expect(line).toBe(2)
  })
})

describe('a page without end', () => {
  it('is refused before its depth costs minutes, and the next one is read', () => {
    const deep = (count: number): string => '<div>'.repeat(count)
    expect(() => parser.withPage(deep(100_000), { mode: 'document' }, () => undefined)).toThrow(/nested deeper than 8000 elements/)
    expect(parser.withPage(`${deep(5_000)}<b>x</b>`, { mode: 'document' }, ({ $ }) => $('b').length)).toBe(1)
    const wide = '<p>1<li>2<option>3'.repeat(5_000)
    expect(parser.withPage(wide, { mode: 'document' }, ({ $ }) => $('p').length)).toBe(5_000)
  })
})

describe.skipIf(!hasCorpus)(`real pages${corpusNote}`, () => {
  it('parse to what cheerio.load gives', () => {
    const pages = corpusPages({ every: 8 })
    expect(pages.length).toBeGreaterThan(15)
    for (const { id, bytes } of pages) {
      const text = bytes.toString('utf8')
      const shared = parser.withPage(text, { mode: 'document' }, ({ $ }) => probe($))
      expect({ id, same: JSON.stringify(shared) === JSON.stringify(probe(load(text))) }).toEqual({ id, same: true })
    }
  })
})
