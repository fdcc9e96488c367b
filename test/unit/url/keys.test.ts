import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { canonicalUrl } from '../../../src/url/canonical-url.ts'
import { murmur2, partitionFor } from '../../../src/url/partition.ts'
import { politenessKey } from '../../../src/url/politeness-key.ts'
import { bareHost, domainOfUrl, isOfDomain, isSuffix, registrableDomain } from '../../../src/url/registrable-domain.ts'
import { growth } from '../../support/growth.ts'

const vectors = JSON.parse(readFileSync(new URL('../../../schemas/vectors.json', import.meta.url), 'utf8'))

describe('partition of a key', () => {
  // org.apache.kafka.common.utils.UtilsTest.testMurmur2
  it.each([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ])('hashes %s as Java does', (key, hash) => {
    expect(murmur2(Buffer.from(key))).toBe(hash)
  })

  it('C153: puts example.test on partition 4 of 12', () => {
    expect(partitionFor('example.test', 12)).toBe(4)
  })

  it.each(vectors.partition as { key: string; partitions: number; partition: number }[])(
    'puts $key of $partitions on $partition',
    (vector) => {
      expect(partitionFor(vector.key, vector.partitions)).toBe(vector.partition)
      expect(partitionFor(Buffer.from(vector.key), vector.partitions)).toBe(vector.partition)
    },
  )

  it('refuses a number of partitions that is none', () => {
    for (const count of [0, -1, 1.5, Number.NaN]) expect(() => partitionFor('a', count)).toThrow(RangeError)
  })
})

describe('keys of a site', () => {
  it('C140: gives one domain, politeness key and partition however the host is written', () => {
    const urls = ['http://Example.TEST/', 'http://example.test./', 'http://example.test:8080/a']
    expect(new Set(urls.map(registrableDomain))).toEqual(new Set(['example.test']))
    expect(new Set(urls.map((url) => politenessKey(new URL(url), 'host')))).toEqual(new Set(['example.test']))
    const idn = ['http://bücher.example.test/', 'http://xn--bcher-kva.example.test/', 'http://BÜCHER.example.test./']
    expect(new Set(idn.map((url) => politenessKey(new URL(url), 'host')))).toEqual(new Set(['xn--bcher-kva.example.test']))
    expect(new Set(idn.map(registrableDomain))).toEqual(new Set(['example.test']))
  })

  it.each([
    ['http://a.b.example.co.uk/', 'example.co.uk'],
    ['http://a.b.github.io/', 'b.github.io'],
    ['http://github.io/', 'github.io'],
    ['http://co.uk/', 'co.uk'],
    ['http://localhost:3000/', 'localhost'],
    ['http://127.0.0.1/', '127.0.0.1'],
    ['http://0x7f.1/', '127.0.0.1'],
    ['http://[::1]/', '[::1]'],
    ['http://intranet/', 'intranet'],
    ['http://a_b.example.com/', 'example.com'],
    ['http://foo..com/', 'foo..com'],
  ])('%s belongs to %s', (url, domain) => {
    expect(registrableDomain(url)).toBe(domain)
  })

  it.each([
    ['com', true],
    ['co.uk', true],
    ['github.io', true],
    ['example.com', false],
    ['localhost', false],
    ['lan', true],
    ['xn--p1ai', true],
    ['ck', true],
    ['www.ck', false],
    ['shop.example.com', false],
    ['127.0.0.1', false],
    ['[::1]', false],
  ])('%s has sites of their own below it: %s', (host, expected) => {
    expect(isSuffix(host)).toBe(expected)
  })

  it('is the host, or the registrable domain where a policy says so', () => {
    const url = new URL('https://shop.example.co.uk/a')
    expect(politenessKey(url, 'host')).toBe('shop.example.co.uk')
    expect(politenessKey(url, 'ip')).toBe('shop.example.co.uk')
    expect(politenessKey(url, 'domain')).toBe('example.co.uk')
  })
})

describe('the domain of what may be no URL', () => {
  it.each(['', '/page', 'shop.example/page', 'http://', 'not a url', 'javascript:alert(1)', 'data:,x'])('%j has none', (text) => {
    expect(domainOfUrl(text)).toBeUndefined()
    expect(isOfDomain(text, '')).toBe(false)
  })

  it('is that of the URL where it is one', () => {
    expect(domainOfUrl('https://www.shop.example/page')).toBe('shop.example')
  })
})

it('a host of many dots costs what it is long', () => {
  expect(growth((size) => bareHost(`a${'.'.repeat(size)}b.example`), 20_000)).toBeLessThan(9)
  expect(growth((size) => canonicalUrl(`http://a${'.'.repeat(size)}b.example/`), 20_000)).toBeLessThan(9)
})

it('a URL of many escapes costs what it is long', () => {
  expect(growth((size) => canonicalUrl(`http://a.example/${'%41'.repeat(size)}`), 10_000)).toBeLessThan(7)
})
