import { describe, expect, it } from 'vitest'
import { compileGlob, compileHostGlob } from '../../../src/url/glob.ts'
import { compileScope, type ScopeKind, trapReason } from '../../../src/url/scope.ts'

const seed = new URL('https://www.example.test/shop/index.html')
const verdict = (kind: ScopeKind, url: string, rules: { allow?: string[]; deny?: string[] } = {}): string => {
  const result = compileScope({ kind, ...rules })(new URL(url), seed)
  return result.inScope ? 'in' : result.reason
}

describe('scope of a crawl', () => {
  it.each<[ScopeKind, string, string]>([
    ['domain', 'http://other.example.test/', 'in'],
    ['domain', 'https://example.com/', 'out-of-scope'],
    ['host', 'http://www.example.test:8080/', 'in'],
    ['host', 'https://www.example.test./', 'in'],
    ['host', 'https://example.test/', 'out-of-scope'],
    ['origin', 'https://www.example.test/x', 'in'],
    ['origin', 'http://www.example.test/x', 'out-of-scope'],
    ['origin', 'https://www.example.test:8443/x', 'out-of-scope'],
    ['prefix', 'https://www.example.test/shop/a/b', 'in'],
    ['prefix', 'https://www.example.test/shopping', 'out-of-scope'],
    ['prefix', 'https://www.example.test/', 'out-of-scope'],
    ['any', 'http://anything.example/', 'in'],
  ])('%s: %s is %s', (kind, url, expected) => {
    expect(verdict(kind, url)).toBe(expected)
  })

  it('takes only what a glob allows, and nothing that one denies', () => {
    const rules = { allow: ['/catalogue/*', '*.pdf'], deny: ['*?print=1', '/catalogue/private*'] }
    expect(verdict('any', 'https://a.test/catalogue/x', rules)).toBe('in')
    expect(verdict('any', 'https://a.test/y.pdf', rules)).toBe('in')
    expect(verdict('any', 'https://a.test/about', rules)).toBe('not-allowed')
    expect(verdict('any', 'https://a.test/catalogue/x?print=1', rules)).toBe('denied')
    expect(verdict('any', 'https://a.test/catalogue/private/x', rules)).toBe('denied')
  })
})

describe('globs', () => {
  it('take * for any characters and everything else for itself', () => {
    expect(compileGlob('/a/*/c')('/a/b/b/c')).toBe(true)
    expect(compileGlob('/a?b')('/axb')).toBe(false)
    expect(compileGlob('/a.b')('/axb')).toBe(false)
    expect(compileGlob('*')('')).toBe(true)
    expect(compileGlob('a*a')('a')).toBe(false)
    expect(compileGlob('a**b*')('a-b-')).toBe(true)
  })

  it('end soon on a pattern that would send a regular expression away', () => {
    const matches = compileGlob(`${'*a'.repeat(500)}*b`)
    expect(matches('a'.repeat(8_000))).toBe(false)
  })

  it('for hosts mean the domain itself by *. as well, and no name that only ends alike', () => {
    const matches = compileHostGlob('*.Example.com')
    expect(['example.com', 'EXAMPLE.com.', 'a.b.example.com', 'notexample.com', 'example.com.evil.test'].map(matches)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    expect(compileHostGlob('example.com')('www.example.com')).toBe(false)
  })
})

describe('C132: the bound of endless paths', () => {
  it('ends a crawl of a site that answers every path with relative links, without exponential growth', () => {
    const start = new URL('http://example.test/')
    const found = new Set([start.href])
    const queue = [start]
    for (let page = queue.shift(); page !== undefined; page = queue.shift()) {
      for (const link of ['www.other.example.test/x', 'x/y/']) {
        const url = new URL(link, page)
        if (trapReason(url) !== undefined || found.has(url.href)) continue
        found.add(url.href)
        queue.push(url)
      }
      expect(found.size).toBeLessThan(200)
    }
    expect(found.size).toBeGreaterThan(3)
  })

  it('says which bound a link passes', () => {
    expect(trapReason(new URL('http://a.test/x/y/x/y/x/y'))).toBeUndefined()
    expect(trapReason(new URL('http://a.test/x/y/x/y/x/y/x'))).toBe('path-repeats')
    expect(trapReason(new URL(`http://a.test/${Array.from({ length: 32 }, (_, i) => i).join('/')}`))).toBeUndefined()
    expect(trapReason(new URL(`http://a.test/${Array.from({ length: 33 }, (_, i) => i).join('/')}`))).toBe('path-too-deep')
    expect(trapReason(new URL(`http://a.test/?q=${'a'.repeat(2_048)}`))).toBe('url-too-long')
  })
})
