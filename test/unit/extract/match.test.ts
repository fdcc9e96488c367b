import { describe, expect, it } from 'vitest'
import type { MatchDefinition } from '../../../src/extract/language/definition.ts'
import { compileMatch, isMeantFor, type MatchedPage } from '../../../src/extract/match.ts'

const page: MatchedPage = {
  finalUrl: 'http://Books.example/catalogue/a?x=1',
  status: 200,
  contentType: 'text/html',
  truncated: null,
  extractors: [],
  sitemapLevel: 0,
}
const matches = (match: Partial<MatchDefinition>, change: Partial<MatchedPage> = {}): boolean =>
  compileMatch('book', { hosts: [], paths: [], status: [], types: [], ...match })({ ...page, ...change })

describe('a page that was put back', () => {
  it('is for the extractor that it names, or for all of the stage, and never for another stage', () => {
    const isFor = (only?: string): boolean => isMeantFor(only === undefined ? {} : { 'millrace-only': Buffer.from(only) }, 'book')
    expect([isFor(), isFor('@extract'), isFor('book'), isFor('price'), isFor('@frontier')]).toEqual([true, true, true, false, false])
  })
})

describe('an extractor without conditions', () => {
  it('reads HTML with a final 2xx status and nothing else', () => {
    expect(matches({})).toBe(true)
    expect(matches({}, { contentType: 'application/xhtml+xml' })).toBe(true)
    expect(matches({}, { contentType: null })).toBe(true)
    expect(matches({}, { contentType: 'application/xml' })).toBe(false)
    expect(matches({}, { contentType: 'application/json' })).toBe(false)
    expect(matches({}, { status: 404 })).toBe(false)
    expect(matches({}, { status: 304 })).toBe(false)
    expect(matches({}, { truncated: 'size' })).toBe(true)
    expect(matches({}, { truncated: 'type' })).toBe(false)
    expect(matches({}, { truncated: 'undecoded' })).toBe(false)
    expect(matches({}, { truncated: 'encoding' })).toBe(true)
    expect(matches({}, { sitemapLevel: 1 })).toBe(false)
  })
})

describe('conditions', () => {
  it('on hosts and paths must both hold', () => {
    expect(matches({ hosts: ['books.example'] })).toBe(true)
    expect(matches({ hosts: ['*.example'] })).toBe(true)
    expect(matches({ hosts: ['other.example'] })).toBe(false)
    expect(matches({ hosts: ['books.example'], paths: ['/catalogue/*'] })).toBe(true)
    expect(matches({ hosts: ['books.example'], paths: ['/other/*', '*?x=1'] })).toBe(true)
    expect(matches({ hosts: ['books.example'], paths: ['/other/*'] })).toBe(false)
    expect(matches({ hosts: ['books.example'] }, { finalUrl: 'no url' })).toBe(false)
  })

  it('on status and type replace the usual ones', () => {
    expect(matches({ status: [404] }, { status: 404 })).toBe(true)
    expect(matches({ status: ['4xx', 200] }, { status: 410 })).toBe(true)
    expect(matches({ status: ['4xx'] })).toBe(false)
    expect(matches({ types: ['Application/JSON'] }, { contentType: 'application/json' })).toBe(true)
    expect(matches({ types: ['application/json'] })).toBe(false)
  })
})

describe('a task that names extractors', () => {
  it('sends its page to those alone, whatever their hosts', () => {
    expect(matches({ hosts: ['other.example'] }, { extractors: ['book'] })).toBe(true)
    expect(matches({}, { extractors: ['article'] })).toBe(false)
    expect(matches({}, { extractors: ['book'], status: 500 })).toBe(false)
  })
})
