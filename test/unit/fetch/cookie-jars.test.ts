import { afterEach, describe, expect, it, vi } from 'vitest'
import { CookieJars } from '../../../src/fetch/cookie-jars.ts'
import type { Hop } from '../../../src/message/generated/types.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'

const hop = (url: string, ...setCookies: string[]): Hop => ({ url, status: 302, location: 'x', setCookies })
const alone = { crawlId: null, redirects: [] }
const crawl = (crawlId: string) => ({ crawlId, redirects: [] })
const open = (keep: 'none' | 'crawl', maxJars?: number) => {
  const seen = recordingObserver()
  return { seen, jars: new CookieJars({ keep, observer: seen.observer, ...(maxJars === undefined ? {} : { maxJars }) }) }
}
const at = (url: string): URL => new URL(url)

afterEach(() => {
  vi.useRealTimers()
})

describe('cookies within a chain of redirects', () => {
  const { jars } = open('none')
  const sent = (redirects: readonly Hop[], target: string, own?: string) => jars.headerFor({ crawlId: null, redirects }, at(target), own)

  it('C047: go to the next hop in the place of those that the task asked with', () => {
    expect(sent([hop('http://a.test/a', 'sid=2; Path=/')], 'http://a.test/b', 'sid=1; lang=en')).toBe('lang=en; sid=2')
    expect(sent([hop('http://a.test/a', 'sid=2; Domain=a.test; Path=/')], 'http://a.test/b', 'sid=1')).toBe('sid=2')
    expect(sent([hop('http://a.test/a', 'sid=x; Max-Age=0')], 'http://a.test/b', 'sid=1')).toBeUndefined()
  })

  it('of one name all go where they match, the longer path first, whoever set them', () => {
    const both = ['sid=b; Path=/', 'sid=a; Path=/shop', 'x=1; Path=/']
    expect(sent([hop('http://a.test/', ...both)], 'http://a.test/shop/1', 'mine=1; sid=own; mine=2')).toBe(
      'mine=1; mine=2; sid=a; sid=b; x=1',
    )
    expect(sent([hop('http://a.test/', ...both)], 'http://a.test/else')).toBe('sid=b; x=1')
    const { jars } = open('crawl')
    const headerFor = (redirects: readonly Hop[]) => jars.headerFor({ crawlId: 'one', redirects }, at('http://a.test/shop/1'), undefined)
    jars.learn(crawl('one'), at('http://a.test/'), both)
    expect(headerFor([])).toBe('sid=a; sid=b; x=1')
    // What the chain was told counts for the cookie that it was told of.
    expect(headerFor([hop('http://a.test/', 'sid=c; Path=/')])).toBe('sid=a; x=1; sid=c')
  })

  it('leave the header of a task as it is where nobody set any', () => {
    expect(sent([hop('http://a.test/')], 'http://a.test/b', 'a=1;b="2";;c')).toBe('a=1;b="2";;c')
    expect(sent([], 'http://a.test/b')).toBeUndefined()
  })

  it.each([
    ['back on the host that set them, after another', 'a=1', 'http://x.test/', 'http://x.test/again', 'a=1'],
    ['to no other host', 'a=1', 'http://x.test/', 'http://y.test/', undefined],
    ['to no subdomain without Domain', 'a=1', 'http://x.test/', 'http://www.x.test/', undefined],
    ['to subdomains with Domain', 'a=1; Domain=x.test', 'http://www.x.test/', 'http://b.x.test/', 'a=1'],
    ['to no path beside theirs', 'a=1; Path=/p', 'http://x.test/p', 'http://x.test/px', undefined],
    ['below their path', 'a=1; Path=/p', 'http://x.test/', 'http://x.test/p/q', 'a=1'],
    ['by https alone where they are Secure', 'a=1; Secure', 'https://x.test/', 'http://x.test/', undefined],
    ['and plain http sets no Secure ones', 'a=1; Secure', 'http://x.test/', 'https://x.test/', undefined],
    ['unless they have expired', 'a=1; Expires=Wed, 21 Oct 2020 07:28:00 GMT', 'http://x.test/', 'http://x.test/', undefined],
    ['unless their age is none', 'a=1; Max-Age=0', 'http://x.test/', 'http://x.test/', undefined],
    ['with a date that holds a comma', 'a=1; Expires=Wed, 21 Oct 2099 07:28:00 GMT', 'http://x.test/', 'http://x.test/', 'a=1'],
    ['never for a public suffix', 'a=1; Domain=co.uk', 'http://x.co.uk/', 'http://x.co.uk/', undefined],
    ['never for a private suffix', 'a=1; Domain=github.io', 'http://x.github.io/', 'http://x.github.io/', undefined],
    ["never for another's domain", 'a=1; Domain=y.test', 'http://x.test/', 'http://y.test/', undefined],
    ['never with a prefix that does not hold', '__Host-a=1; Path=/', 'https://x.test/', 'https://x.test/', undefined],
    ['with octets above 127 as they came', 'a=caf\xe9', 'http://x.test/', 'http://x.test/', 'a=caf\xe9'],
    ['on an address', 'a=1', 'http://127.0.0.1:81/', 'http://127.0.0.1:82/', 'a=1'],
    ['on a host with a dot at its end', 'a=1', 'http://x.test./', 'http://x.test./', 'a=1'],
  ])('go %s', (_about, setCookie, from, to, expected) => {
    expect(sent([hop(from, setCookie), hop('http://between.test/')], to)).toBe(expected)
  })
})

describe('cookies of a crawl', () => {
  it('are kept from page to page of that crawl, and of no other', () => {
    const { jars } = open('crawl')
    jars.learn(crawl('one'), at('http://www.a.test/login'), ['sid=1; Path=/', 'all=2; Domain=a.test; Path=/'])
    expect(jars.headerFor(crawl('one'), at('http://www.a.test/page'), undefined)).toBe('sid=1; all=2')
    expect(jars.headerFor(crawl('one'), at('http://shop.a.test/'), undefined)).toBe('all=2')
    expect(jars.headerFor(crawl('two'), at('http://www.a.test/page'), undefined)).toBeUndefined()
    expect(jars.headerFor(alone, at('http://www.a.test/page'), undefined)).toBeUndefined()
    expect(jars.headerFor(crawl('one'), at('http://www.a.test/page'), 'sid=0; mine=3')).toBe('mine=3; sid=1; all=2')
  })

  it('are not kept where nobody asked for them', () => {
    const { jars } = open('none')
    jars.learn(crawl('one'), at('http://a.test/'), ['sid=1'])
    expect(jars.headerFor(crawl('one'), at('http://a.test/'), undefined)).toBeUndefined()
  })

  it('C069: that break the rules are counted and passed over', () => {
    for (const keep of ['none', 'crawl'] as const) {
      const { jars, seen } = open(keep)
      jars.learn(crawl('one'), at('http://a.test/'), ['=v', 'novalue', 'a=1; Domain=other.test', 'good=1', `big=${'x'.repeat(5_000)}`])
      expect(jars.headerFor(crawl('one'), at('http://a.test/'), undefined)).toBe(keep === 'crawl' ? 'good=1' : undefined)
      expect(seen.count('CookiesRefused', { count: 4 })).toBe(1)
    }
  })

  it('are bounded: what was used longest ago makes room, of a jar and of the jars', () => {
    const { jars } = open('crawl', 2)
    for (let index = 0; index < 60; index += 1) jars.learn(crawl('one'), at('http://a.test/'), [`c${index}=1`])
    const header = jars.headerFor(crawl('one'), at('http://a.test/'), undefined) ?? ''
    expect(header.split('; ')).toEqual(Array.from({ length: 50 }, (_, index) => `c${index + 10}=1`))
    jars.learn(crawl('two'), at('http://a.test/'), ['x=1'])
    jars.learn(crawl('three'), at('http://a.test/'), ['x=1'])
    expect(jars.headerFor(crawl('one'), at('http://a.test/'), undefined)).toBeUndefined()
    expect(jars.headerFor(crawl('three'), at('http://a.test/'), undefined)).toBe('x=1')
  })

  it('are kept while they are sent, however many others the pages set', () => {
    vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ['Date'] })
    const { jars } = open('crawl')
    const page = (index: number) => at(`http://a.test/p/${index}`)
    jars.learn(crawl('one'), at('http://a.test/login'), ['sid=1; Path=/', 'set-again=0; Path=/set'])
    for (let index = 0; index < 60; index += 1) {
      vi.advanceTimersByTime(1_000)
      expect(jars.headerFor(crawl('one'), page(index), undefined)).toBe('sid=1')
      jars.learn(crawl('one'), page(index), [`seen=1; Path=/p/${index}`, `set-again=${index}; Path=/set`])
    }
    expect(jars.headerFor(crawl('one'), page(9), undefined)).toBe('sid=1')
    expect(jars.headerFor(crawl('one'), page(59), undefined)).toBe('seen=1; sid=1')
    expect(jars.headerFor(crawl('one'), at('http://a.test/set'), undefined)).toBe('set-again=59; sid=1')
  })

  it('make no header that no server takes', () => {
    const { jars } = open('crawl')
    for (let index = 0; index < 40; index += 1) jars.learn(crawl('one'), at('http://a.test/'), [`c${index}=${'x'.repeat(1_000)}`])
    expect((jars.headerFor(crawl('one'), at('http://a.test/'), undefined) ?? '').length).toBeLessThan(16_384)
  })
})

it('of an answer with thousands of cookies a hundred are looked at, and the others count as refused', () => {
  const { jars, seen } = open('none')
  const many = Array.from({ length: 13_000 }, (_, index) => `c${index}=1`)
  jars.learn(alone, at('http://a.test/'), many)
  expect(seen.count('CookiesRefused', { count: 12_900 })).toBe(1)
})
