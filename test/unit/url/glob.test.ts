import { describe, expect, it } from 'vitest'
import { compileHostGlob, compileUrlGlob, coversHosts, urlPattern } from '../../../src/url/glob.ts'

describe('a host pattern', () => {
  it.each([
    ['*', 'a.example', true],
    ['*', '*.example', true],
    ['*.com', 'com', true],
    ['*.com', '*.a.com', true],
    ['*.a.com', 'a.com', true],
    ['*.a.com', '*.A.com', true],
    ['*a.com', '*.a.com', true],
    ['*shop*', '*.shop.*', true],
    ['a.com', 'A.com', true],
    ['a.com', '*.a.com', false],
    ['*.*.com', '*.a.com', false],
    ['*.a.com', '*a.com', false],
    ['a.*', '*.com', false],
  ])('%s covers %s: %s', (wide, narrow, expected) => {
    expect(coversHosts(wide, narrow)).toBe(expected)
  })
})

describe('a host', () => {
  it.each(['bücher.example', 'BÜCHER.example.', '*.xn--bcher-kva.example'])('is matched by %s, as URLs write it', (pattern) => {
    expect(compileHostGlob(pattern)(new URL('https://bücher.example/').hostname)).toBe(true)
  })
})

describe('a URL pattern', () => {
  it.each([
    ['/straße/*', '/stra%C3%9Fe/*'],
    ['/stra%c3%9fe/*', '/stra%C3%9Fe/*'],
    ['/%7Euser/a b?q=ä', '/~user/a%20b?q=%C3%A4'],
    ['*?print=1', '*?print=1'],
    ['*/größe', '*/gr%C3%B6%C3%9Fe'],
    ['HTTPS://Bücher.example', 'https://xn--bcher-kva.example/'],
    ['https://*', 'https://*'],
    ['*://*.bücher.example:8080/ä', '*://*.xn--bcher-kva.example:8080/%C3%A4'],
    ['https://a.example:443?x=*', 'https://a.example/?x=*'],
    ['http://[::1]:*/x', 'http://[::1]:*/x'],
  ])('%s is written %s', (text, expected) => {
    expect(urlPattern(text)).toBe(expected)
  })

  it.each(['catalogue/*', '', 'ftp://a.example/*', '/a#b', 'https://a b/', '?print=1'])('%j could match no page', (text) => {
    expect(urlPattern(text)).toBeUndefined()
  })

  it.each(['/straße/*', '/stra%c3%9fe/*', '*/straße/*', 'https://bücher.example/stra*'])(
    '%s matches a page however its URL is encoded',
    (pattern) => {
      const matches = compileUrlGlob(pattern)
      expect(matches(new URL('https://bücher.example/straße/1'))).toBe(true)
      expect(matches(new URL('https://bücher.example/stra%c3%9fe/1'))).toBe(true)
      expect(matches(new URL('https://bücher.example/andere/1'))).toBe(false)
    },
  )
})
