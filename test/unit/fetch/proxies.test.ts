import { describe, expect, it } from 'vitest'
import { ProxyRing } from '../../../src/fetch/proxy-ring.ts'
import { type ForwardProxy, parseProxyUrl } from '../../../src/fetch/proxy-url.ts'
import { connectMessage, greeting, meaningOf, passwordMessage, restOfReply } from '../../../src/fetch/socks5.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

describe('the URL of a proxy', () => {
  it.each([
    ['http://proxy.example', 'http://proxy.example:80', undefined],
    ['https://Proxy.Example/', 'https://proxy.example:443', undefined],
    ['socks5://u:p@10.0.0.1', 'socks5://10.0.0.1:1080', { username: 'u', password: 'p' }],
    ['http://us%40er:p%3Aw=1@[::1]:3128', 'http://[::1]:3128', { username: 'us@er', password: 'p:w=1' }],
    ['http://user@proxy.example:8080', 'http://proxy.example:8080', { username: 'user', password: '' }],
    ['http://p%2540@x.example:1', 'http://x.example:1', { username: 'p%40', password: '' }],
  ])('is read: %s', (text, label, credentials) => expect(parseProxyUrl(text)).toMatchObject({ label, credentials }))

  it.each([
    'proxy.example:8080',
    'ftp://user:topsecret@proxy.example',
    'http://user:topsecret@',
    'http://user:topsecret@proxy.example/path',
    'http://user:topsecret@proxy.example:99999',
    'http://user:%zztopsecret@proxy.example',
    'socks5://topsecret@proxy.example',
    'socks4://proxy.example',
  ])('is refused without telling its secret: %s', (text) => {
    let said = ''
    try {
      parseProxyUrl(text)
    } catch (error) {
      said = String((error as Error).message)
      expect(error).toMatchObject({ code: 'CONFIG_INVALID' })
    }
    expect(said).toMatch(/^proxies: /)
    expect(said).not.toContain('topsecret')
  })
})

describe('the proxies of a site', () => {
  const proxies = ['a', 'b', 'c', 'd'].map((name) => parseProxyUrl(`http://${name}.example:1`))
  const sites = Array.from({ length: 400 }, (_, index) => `site${index}.example`)
  const open = () => {
    const clock = new ManualClock()
    const seen = recordingObserver()
    return { clock, seen, ring: new ProxyRing(clock, seen.observer) }
  }
  const byProxy = (ring: ProxyRing): Map<ForwardProxy | undefined, string[]> =>
    sites.reduce((map, site) => {
      const proxy = ring.pick(site, proxies)
      return map.set(proxy, [...(map.get(proxy) ?? []), site])
    }, new Map<ForwardProxy | undefined, string[]>())

  it('are spread evenly, the same for every worker, and in any order of the list', () => {
    const [one, other] = [open().ring, open().ring]
    const groups = byProxy(one)
    expect(groups.size).toBe(4)
    for (const group of groups.values()) expect(group.length).toBeGreaterThan(60)
    for (const site of sites) expect(other.pick(site, [...proxies].reverse())).toBe(one.pick(site, proxies))
  })

  it('change for those alone whose proxy is out, and change back', async () => {
    const { ring, clock, seen } = open()
    const before = byProxy(ring)
    const [lost] = proxies as [ForwardProxy]
    ring.failed(lost, 'proxy-failed', 'refused')
    const during = byProxy(ring)
    expect(during.has(lost)).toBe(false)
    for (const [proxy, group] of before) if (proxy !== lost) expect(during.get(proxy)).toEqual(expect.arrayContaining(group))
    await clock.advance(10_000)
    expect(byProxy(ring)).toEqual(before)
    ring.worked(lost)
    expect(seen.count('ProxyReturned')).toBe(1)
  })

  it('are out for longer with each failure, ten minutes at most, and requests that fail together count once', async () => {
    const { ring, clock, seen } = open()
    const [one] = proxies as [ForwardProxy]
    for (const forMs of [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 600_000]) {
      for (let times = 0; times < 5; times += 1) ring.failed(one, 'proxy-failed', 'refused')
      expect(ring.backInMs([one])).toBe(forMs)
      expect(ring.pick('x', [one])).toBeUndefined()
      await clock.advance(forMs)
    }
    expect(seen.count('ProxyTakenOut')).toBe(8)
    ring.worked(one)
    ring.failed(one, 'proxy-auth', '407')
    expect(ring.backInMs([one])).toBe(60_000)
  })

  it('that are out are told, with the time until the next try', async () => {
    const { ring, clock } = open()
    const [one, other] = proxies as [ForwardProxy, ForwardProxy]
    for (const host of ['a', 'b', 'c']) ring.suspected(one, 'proxy-timeout', host, 'late')
    ring.failed(other, 'proxy-auth', '407')
    await clock.advance(4_000)
    expect(ring.out()).toEqual([
      { proxy: one.label, reason: 'proxy-timeout', forMs: 6_000 },
      { proxy: other.label, reason: 'proxy-auth', forMs: 56_000 },
    ])
    await clock.advance(6_000)
    expect(ring.out().map(({ proxy }) => proxy)).toEqual([other.label])
  })

  it('are not judged by one target that does not answer', () => {
    const { ring } = open()
    const [one] = proxies as [ForwardProxy]
    for (let times = 0; times < 10; times += 1) ring.suspected(one, 'proxy-timeout', 'slow.example', 'late')
    ring.suspected(one, 'proxy-timeout', 'slower.example', 'late')
    expect(ring.pick('x', [one])).toBe(one)
    expect(ring.suspected(one, 'proxy-timeout', 'third.example', 'late')).toBe(true)
    expect(ring.pick('x', [one])).toBeUndefined()
  })

  it('are not judged by several dead targets either while others answer, which are told from an outage', async () => {
    const { ring, clock, seen } = open()
    const [one] = proxies as [ForwardProxy]
    for (let round = 0; round < 10; round += 1) {
      ring.worked(one)
      await clock.advance(1_000)
      const suspect = ['a', 'b', 'a', 'c', 'd'].map((host) => ring.suspected(one, 'proxy-unreached', host, '502'))
      expect(suspect).toEqual([false, false, false, true, true])
    }
    expect(seen.count('ProxyTakenOut')).toBe(0)
    await clock.advance(28_999)
    ring.suspected(one, 'proxy-unreached', 'a', '502')
    expect(ring.pick('x', [one])).toBe(one)
    await clock.advance(1)
    ring.suspected(one, 'proxy-unreached', 'a', '502')
    expect(ring.pick('x', [one])).toBeUndefined()
  })

  it('that were out are out again by one request, and cleared by one', async () => {
    const { ring, clock, seen } = open()
    const [one] = proxies as [ForwardProxy]
    ring.worked(one)
    ring.failed(one, 'proxy-failed', 'refused')
    await clock.advance(10_000)
    expect(ring.suspected(one, 'proxy-unreached', 'a', '502')).toBe(true)
    expect(ring.backInMs([one])).toBe(20_000)
    ring.worked(one)
    expect(ring.pick('x', [one])).toBe(one)
    expect(seen.count('ProxyReturned')).toBe(1)
    expect(ring.suspected(one, 'proxy-unreached', 'a', '502')).toBe(false)
  })
})

describe('SOCKS 5 in bytes', () => {
  it('is as RFC 1928 and 1929 have it', () => {
    expect([...greeting(false)]).toEqual([5, 1, 0])
    expect([...greeting(true)]).toEqual([5, 2, 0, 2])
    expect([...passwordMessage({ username: 'ü', password: 'pw' })]).toEqual([1, 2, 0xc3, 0xbc, 2, 112, 119])
    expect([...connectMessage('93.184.216.34', 443)]).toEqual([5, 1, 0, 1, 93, 184, 216, 34, 1, 187])
    expect([...connectMessage('2001:db8::1', 80)]).toEqual([5, 1, 0, 4, 0x20, 1, 0x0d, 0xb8, ...Array(11).fill(0), 1, 0, 80])
    expect([1, 3, 4, 9].map((kind) => restOfReply(Buffer.from([5, 0, 0, kind, 7])))).toEqual([5, 9, 17, undefined])
    expect([0, 1, 2, 3, 4, 5, 6, 7, 8, 200].map((reply) => meaningOf(reply).kind)).toEqual([
      'connected',
      'failed',
      'refused',
      'unreachable',
      'unreachable',
      'unreachable',
      'unreachable',
      'refused',
      'refused',
      'refused',
    ])
  })
})
