import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { canonicalUrl } from '../../../src/url/canonical-url.ts'

const vectors = JSON.parse(readFileSync(new URL('../../../schemas/vectors.json', import.meta.url), 'utf8'))

describe('canonical form of a URL', () => {
  it.each(vectors.canonicalUrl as { url: string; canonical: string }[])('turns $url into $canonical', ({ url, canonical }) => {
    expect(canonicalUrl(url)).toBe(canonical)
    expect(canonicalUrl(canonical)).toBe(canonical)
  })

  it('C001: never decodes an encoded percent sign', () => {
    expect(canonicalUrl('http://shop.example.test/cmp/Dia%25')).toBe('http://shop.example.test/cmp/Dia%25')
    expect(canonicalUrl('http://shop.example.test/100%2525?a=%2520')).toBe('http://shop.example.test/100%2525?a=%2520')
  })

  it('C003: keeps a value that is encoded twice as it is, however often', () => {
    const once = canonicalUrl('https://example.test/w?key=%252fx&a=1')
    expect(once).toBe('https://example.test/w?a=1&key=%252fx')
    expect(canonicalUrl(canonicalUrl(once))).toBe(once)
  })

  it('C007: keeps the case of path and query', () => {
    const upper = canonicalUrl('https://Example.TEST/Product/AbC?t=SeCrEt')
    expect(upper).toBe('https://example.test/Product/AbC?t=SeCrEt')
    expect(upper).not.toBe(canonicalUrl('https://example.test/product/abc?t=secret'))
  })

  it('C009: resolves dot segments, encoded ones too', () => {
    expect(canonicalUrl('http://example.test/./././a')).toBe('http://example.test/a')
    expect(canonicalUrl('http://example.test/a/%2e%2e/b')).toBe('http://example.test/b')
    expect(canonicalUrl('http://example.test/a/%2E/b')).toBe('http://example.test/a/b')
    expect(canonicalUrl('http://example.test/a/.%2e/%2E./b/%2e')).toBe('http://example.test/b/')
  })

  it('C124: takes the seed and its discovered twin for one', () => {
    const forms = ['https://example.test', 'https://example.test/', 'https://EXAMPLE.test:443/#top']
    expect(new Set(forms.map((form) => canonicalUrl(form)))).toEqual(new Set(['https://example.test/']))
  })

  it('C126: sorts by name but keeps the order of repeated names', () => {
    expect(canonicalUrl('https://example.test/p?b=2&a=1')).toBe(canonicalUrl('https://example.test/p?a=1&b=2'))
    expect(canonicalUrl('https://example.test/p?a=2&a=1')).not.toBe(canonicalUrl('https://example.test/p?a=1&a=2'))
  })

  it('drops each tracking parameter, in any case, and none that only looks like one', () => {
    const names = [
      'utm_source',
      'UTM_Medium',
      'gclid',
      'gbraid',
      'wbraid',
      'dclid',
      'fbclid',
      'msclkid',
      'yclid',
      'mc_cid',
      'mc_eid',
      'igshid',
      '_ga',
      '_gl',
    ]
    for (const name of names)
      expect([name, canonicalUrl(`https://example.test/?${name}=1&a=1`)]).toEqual([name, 'https://example.test/?a=1'])
    for (const name of ['utm', 'ref', 'ga', 'xutm_source']) expect(canonicalUrl(`https://example.test/?${name}=1`)).toContain(name)
  })

  it('keeps what may be another page: trailing slash, www, scheme, plus sign, a name without value', () => {
    const pairs = [
      ['https://example.test/a', 'https://example.test/a/'],
      ['https://example.test/', 'https://www.example.test/'],
      ['https://example.test/', 'http://example.test/'],
      ['https://example.test/?a=b+c', 'https://example.test/?a=b%20c'],
      ['https://example.test/?a', 'https://example.test/?a='],
      ['https://example.test//a', 'https://example.test/a'],
    ]
    for (const [a, b] of pairs) expect(canonicalUrl(a!)).not.toBe(canonicalUrl(b!))
  })

  it('does not make an escape out of a lone percent sign and a decoded digit', () => {
    expect(canonicalUrl('http://example.test/%%34%31')).toBe('http://example.test/%%341')
    expect(canonicalUrl('http://example.test/%4%31')).toBe('http://example.test/%4%31')
    expect(canonicalUrl('http://example.test/%%7e')).toBe('http://example.test/%~')
  })

  it('refuses text that is no absolute URL, and leaves a URL object as it was', () => {
    expect(() => canonicalUrl('/a')).toThrow(/absolute URL/)
    const url = new URL('http://user@example.test/?b=1&a=2#x')
    canonicalUrl(url)
    expect(url.href).toBe('http://user@example.test/?b=1&a=2#x')
  })
})
