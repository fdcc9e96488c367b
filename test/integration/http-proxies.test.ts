import { createServer, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { HttpClient, type HttpClientOptions } from '../../src/fetch/http-client.ts'
import type { HttpLimits, HttpResult } from '../../src/fetch/http-exchange.ts'
import { paceReport } from '../../src/fetch/pace-report.ts'
import { parseProxyUrl } from '../../src/fetch/proxy-url.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { eventually } from '../support/eventually.ts'
import { recordingObserver } from '../support/kafka-fixture.ts'
import { TEST_CERTIFICATE } from '../support/test-certificate.ts'
import { TestProxy } from '../support/test-proxy.ts'

const limits: HttpLimits = { connectMs: 10_000, headersMs: 20_000, idleMs: 20_000, totalMs: 60_000, maxBodyBytes: 100_000 }
const closing: (() => Promise<unknown> | unknown)[] = []
const asked: { readonly host: string | undefined; readonly names: readonly string[] }[] = []
let httpPort = 0
let httpsPort = 0

beforeAll(async () => {
  const answer = createServer((request, response) => {
    asked.push({ host: request.headers.host, names: Object.keys(request.headers) })
    response.end(`hello ${request.url}`)
  })
  const secure = createHttpsServer(TEST_CERTIFICATE, (request, response) => response.end(`secret ${request.headers.host}`))
  const open = (server: Server): Promise<number> =>
    new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
  httpPort = await open(answer)
  httpsPort = await open(secure)
  return () => {
    for (const server of [answer, secure]) {
      server.closeAllConnections()
      server.close()
    }
  }
})
afterEach(async () => {
  asked.length = 0
  for (const close of closing.splice(0).reverse()) await close()
})

function clientBy(urls: readonly string[], more: Partial<HttpClientOptions> = {}) {
  const seen = recordingObserver()
  const proxies = urls.map(parseProxyUrl)
  const client = new HttpClient({
    resolve: { '*.site.test': '127.0.0.1' },
    allowAddresses: ['127.0.0.0/8'],
    ca: TEST_CERTIFICATE.cert,
    proxiesOf: () => proxies,
    clock: systemClock,
    observer: seen.observer,
    ...more,
  })
  closing.push(() => client.close())
  const ask = (url: string, own: Partial<HttpLimits> = {}): Promise<HttpResult> =>
    client.request({
      url: new URL(url),
      method: 'GET',
      headers: { 'user-agent': 'test' },
      limits: { ...limits, ...own },
      keepBody: () => true,
      signal: new AbortController().signal,
    })
  return { ask, seen }
}

async function opened(proxy: Promise<TestProxy>): Promise<TestProxy> {
  const one = await proxy
  closing.push(() => one.close())
  return one
}

const text = (result: HttpResult): string => (result.kind === 'response' ? result.decoded.toString() : `${result.reason}: ${result.detail}`)

describe('a request through a proxy', () => {
  it.each([
    ['http', () => TestProxy.http(), undefined],
    ['https', () => TestProxy.http({ tls: TEST_CERTIFICATE }), undefined],
    ['socks5', () => TestProxy.socks5(), undefined],
    ['socks5', () => TestProxy.socks5('us@er:p:w=1'), 'us%40er:p%3Aw=1@'],
  ] as const)('goes to the checked address by %s, for http and https, with the name of its URL', async (scheme, create, given) => {
    const proxy = await opened(create())
    const user: string = given ?? ''
    const { ask } = clientBy([`${scheme}://${user}${scheme === 'https' ? 'localhost' : '127.0.0.1'}:${proxy.port}`])
    const plain = await ask(`http://a.site.test:${httpPort}/x`)
    expect(text(plain)).toBe('hello /x')
    expect(plain).toMatchObject({ remoteAddress: '127.0.0.1' })
    expect(text(await ask(`https://b.site.test:${httpsPort}/`))).toBe(`secret b.site.test:${httpsPort}`)
    expect(proxy.tunnels.map(({ target }) => target)).toEqual([`127.0.0.1:${httpPort}`, `127.0.0.1:${httpsPort}`])
    expect(asked).toEqual([{ host: `a.site.test:${httpPort}`, names: ['host', 'connection', 'user-agent'] }])
  })

  it('uses its tunnel again', async () => {
    const proxy = await opened(TestProxy.http())
    const { ask } = clientBy([`http://127.0.0.1:${proxy.port}`])
    for (let times = 0; times < 3; times += 1) {
      expect(text(await ask(`http://a.site.test:${httpPort}/`))).toBe('hello /')
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(proxy.tunnels).toHaveLength(1)
  })

  it('C067: names its user and password decoded once', async () => {
    const proxy = await opened(TestProxy.http())
    const { ask } = clientBy([`http://us%40er:p%3Aw=1@127.0.0.1:${proxy.port}`])
    await ask(`http://a.site.test:${httpPort}/`)
    const basic = Buffer.from('us@er:p:w=1').toString('base64')
    expect(proxy.tunnels).toEqual([{ target: `127.0.0.1:${httpPort}`, authorization: `Basic ${basic}` }])
  })

  it('C188: is refused for an address that is not public, named or literal, before the proxy is asked', async () => {
    const proxy = await opened(TestProxy.http())
    let lookups = 0
    const { ask } = clientBy([`http://127.0.0.1:${proxy.port}`], {
      resolve: {},
      allowAddresses: [],
      lookup: (hostname, callback) => {
        lookups += 1
        const addresses = hostname === 'mixed.test' ? ['93.184.216.34', '10.0.0.1'] : ['127.0.0.1']
        callback(
          null,
          addresses.map((address) => ({ address, family: 4 })),
        )
      },
    })
    for (const host of ['private.test', 'mixed.test', '127.0.0.1', '[::1]', '[64:ff9b::a00:1]', '169.254.169.254', '0x7f.1']) {
      expect(await ask(`http://${host}/`)).toMatchObject({ kind: 'failure', reason: 'address-refused' })
    }
    expect(lookups).toBe(2)
    expect(proxy.tunnels).toEqual([])
  })

  it('says that a name does not exist as it does without', async () => {
    const { ask } = clientBy(['http://127.0.0.1:1'], {
      lookup: (_, callback) => callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []),
    })
    expect(await ask('http://nowhere.else/')).toMatchObject({ reason: 'dns-not-found' })
  })

  it('tells a proxy that works from a target that does not', async () => {
    const [http, socks] = [await opened(TestProxy.http()), await opened(TestProxy.socks5())]
    for (const [url, reason, says] of [
      [`http://127.0.0.1:${http.port}`, 'connect-refused', 'does not connect to'],
      [`socks5://127.0.0.1:${socks.port}`, 'connect-refused', 'can not reach'],
    ] as const) {
      const { ask, seen } = clientBy([url])
      expect(text(await ask(`http://b.site.test:${httpPort}/`))).toBe('hello /')
      expect(await ask('http://a.site.test:1/')).toMatchObject({ reason, detail: expect.stringContaining(says) })
      expect(seen.count('ProxyTakenOut')).toBe(0)
      expect(text(await ask(`http://a.site.test:${httpPort}/`))).toBe('hello /')
    }
  })
})

describe('a proxy that does not work', () => {
  it('is left out, and the others take its sites; none left is a failure that names them, never a direct request', async () => {
    const [good, bad] = [await opened(TestProxy.http()), await TestProxy.http()]
    const goodLabel = `http://127.0.0.1:${good.port}`
    const urls = [good, bad].map(({ port }) => `http://user:secret@127.0.0.1:${port}`)
    await bad.close()
    const { ask, seen } = clientBy(urls)
    const hosts = Array.from({ length: 12 }, (_, index) => `http://h${index}.site.test:${httpPort}/`)
    const first: HttpResult[] = []
    for (const host of hosts) first.push(await ask(host))
    const failed = first.filter(({ kind }) => kind === 'failure')
    expect(failed).toEqual([expect.objectContaining({ reason: 'proxy-down' })])
    expect(seen.count('ProxyTakenOut', { reason: 'proxy-down' })).toBe(1)
    for (const host of hosts) expect(text(await ask(host))).toBe('hello /')
    await good.close()
    // It is closed, and was not to be closed twice.
    closing.shift()
    asked.length = 0
    await eventually(async () => text(await ask(hosts[0] ?? '')).startsWith('proxies-out'))
    const last = await ask(hosts[0] ?? '')
    expect(last).toMatchObject({
      kind: 'failure',
      reason: 'proxies-out',
      detail: expect.stringContaining(goodLabel),
    })
    expect(asked).toEqual([])
    expect(JSON.stringify([...first, last, ...seen.events])).not.toContain('secret')
  })

  it('by its credentials says so', async () => {
    const http = await opened(TestProxy.http({ status: () => 407 }))
    const socks = await opened(TestProxy.socks5('a:b'))
    for (const url of [
      `http://u:wrongword@127.0.0.1:${http.port}`,
      `socks5://u:wrongword@127.0.0.1:${socks.port}`,
      `socks5://127.0.0.1:${socks.port}`,
    ]) {
      const { ask, seen } = clientBy([url])
      const result = await ask(`http://a.site.test:${httpPort}/`)
      expect(result).toMatchObject({ reason: 'proxy-auth', detail: expect.stringMatching(/fetch\.proxies/) })
      expect(seen.count('ProxyTakenOut', { reason: 'proxy-auth', forMs: 60_000 })).toBe(1)
      expect(JSON.stringify([result, seen.events])).not.toContain('wrongword')
    }
  })

  it.each([502, 503, 504])('that connects to no target (%i) is left out after three sites, which are not blamed', async (status) => {
    const proxy = await opened(TestProxy.http({ status: () => status }))
    const { ask, seen } = clientBy([`http://127.0.0.1:${proxy.port}`])
    for (const host of ['a', 'a', 'b', 'c']) {
      expect(seen.count('ProxyTakenOut')).toBe(0)
      const result = await ask(`http://${host}.site.test:${httpPort}/`)
      expect(result).toMatchObject({ reason: 'proxy-unreached', detail: expect.stringContaining(`status ${status}`) })
      expect(paceReport(result)).toEqual({ kind: 'none' })
    }
    expect(seen.count('ProxyTakenOut', { reason: 'proxy-unreached' })).toBe(1)
    expect(await ask('http://d.site.test/')).toMatchObject({ reason: 'proxies-out' })
  })

  it.each([502, 503, 504])('for one site (%i) and works for others stays, and that site is blamed', async (status) => {
    let now = 200
    const proxy = await opened(TestProxy.http({ status: () => now }))
    const { ask, seen } = clientBy([`http://127.0.0.1:${proxy.port}`])
    expect(text(await ask(`http://a.site.test:${httpPort}/`))).toBe('hello /')
    now = status
    for (const host of ['b', 'b', 'c', 'd', 'e', 'f']) {
      const result = await ask(`http://${host}.site.test:${httpPort}/`)
      // Several in a row may be an outage that begins: they are not blamed.
      expect(paceReport(result)).toEqual(host === 'b' || host === 'c' ? { kind: 'failure', failure: 'connect' } : { kind: 'none' })
    }
    expect(seen.count('ProxyTakenOut')).toBe(0)
    now = 200
    expect(text(await ask(`http://g.site.test:${httpPort}/`))).toBe('hello /')
  })

  it('that refuses any number of sites (403) lives: it stays, and they are not blamed', async () => {
    const proxy = await opened(TestProxy.http({ status: () => 403 }))
    const { ask, seen } = clientBy([`http://127.0.0.1:${proxy.port}`])
    for (const host of ['a', 'b', 'c', 'd', 'e']) {
      const result = await ask(`http://${host}.site.test:${httpPort}/`)
      expect(result).toMatchObject({ reason: 'proxy-refused', detail: expect.stringContaining('status 403') })
      expect(paceReport(result)).toEqual({ kind: 'none' })
    }
    expect(seen.count('ProxyTakenOut')).toBe(0)
  })

  it('that says yes and hangs up is left out after three sites', async () => {
    const { createServer: createTcpServer } = await import('node:net')
    const liar = createTcpServer((socket) =>
      socket
        .on('error', () => undefined)
        .once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n')
          socket.once('data', () => socket.end())
        }),
    )
    await new Promise<void>((resolve) => liar.listen(0, '127.0.0.1', resolve))
    closing.push(() => liar.close())
    const { ask, seen } = clientBy([`http://127.0.0.1:${(liar.address() as AddressInfo).port}`])
    for (const host of ['a', 'a', 'b', 'c']) {
      expect(seen.count('ProxyTakenOut')).toBe(0)
      const result = await ask(`http://${host}.site.test/`)
      expect(result).toMatchObject({ reason: 'proxy-reset', detail: expect.stringContaining('proxy http://127.0.0.1:') })
      // Its sites are not parked for it.
      expect(paceReport(result)).toEqual({ kind: 'none' })
    }
    expect(seen.count('ProxyTakenOut')).toBe(1)
    expect(await ask('http://d.site.test/')).toMatchObject({ reason: 'proxies-out' })
  })

  it('that is no proxy, or says nothing, is a failure in time', async () => {
    const { createServer: createTcpServer } = await import('node:net')
    const garbage = createTcpServer((socket) => socket.on('error', () => undefined).once('data', () => socket.end('SSH-2.0\r\n\r\n')))
    const silent = createTcpServer((socket) => socket.on('error', () => undefined))
    const site = createTcpServer((socket) =>
      socket.on('error', () => undefined).once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\n<html>')),
    )
    for (const server of [garbage, silent, site]) {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      closing.push(() => server.close())
    }
    const port = (server: typeof garbage): number => (server.address() as AddressInfo).port
    for (const scheme of ['http', 'socks5']) {
      expect(await clientBy([`${scheme}://127.0.0.1:${port(garbage)}`]).ask('http://a.site.test/')).toMatchObject({
        reason: 'proxy-failed',
      })
    }
    expect(await clientBy([`http://127.0.0.1:${port(site)}`]).ask('http://a.site.test/')).toMatchObject({ reason: 'proxy-failed' })
    const { ask, seen } = clientBy([`http://127.0.0.1:${port(silent)}`])
    const results = await Promise.all([1, 2, 3].map((index) => ask(`http://h${index}.site.test/`, { connectMs: 1_000 })))
    expect(results.map((result) => result.kind === 'failure' && result.reason)).toEqual(['proxy-timeout', 'proxy-timeout', 'proxy-timeout'])
    expect(seen.count('ProxyTakenOut', { reason: 'proxy-timeout' })).toBe(1)
  })
})

describe('a certificate that the operator trusts', () => {
  it('is taken from fetch.tls.ca, and no other is', async () => {
    expect(text(await clientBy([]).ask(`https://a.site.test:${httpsPort}/`))).toContain('secret')
    const strict = clientBy([], { ca: undefined })
    expect(await strict.ask(`https://a.site.test:${httpsPort}/`)).toMatchObject({ reason: 'tls-failed' })
    const other = clientBy([], { resolve: { 'other.test': '127.0.0.1' } })
    expect(await other.ask(`https://other.test:${httpsPort}/`)).toMatchObject({ reason: 'tls-failed' })
  })
})
