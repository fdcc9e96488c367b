import { randomBytes } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readAnswer } from '../../src/fetch/answer.ts'
import { HttpClient } from '../../src/fetch/http-client.ts'
import type { HttpLimits, HttpResponse, HttpResult } from '../../src/fetch/http-exchange.ts'
import { buildPage } from '../../src/fetch/page-message.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { decideCharset, decodeText } from '../../src/message/charset.ts'
import { unpackPageBody } from '../../src/message/page-body.ts'
import { newUrlTask } from '../../src/message/url-task.ts'
import { eventually } from '../support/eventually.ts'
import { expectInTime } from '../support/in-time.ts'
import { answer, honest, MisbehavingSite } from '../support/misbehaving-site.ts'

const limits: HttpLimits = { connectMs: 10_000, headersMs: 20_000, idleMs: 20_000, totalMs: 60_000, maxBodyBytes: 100_000 }
const options = { resolve: { '*.test': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock } as const
const client = new HttpClient(options)
let site: MisbehavingSite

beforeAll(async () => {
  site = await MisbehavingSite.open()
})
afterAll(async () => {
  await client.close()
  await site.close()
})

interface Asking {
  readonly host?: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly limits?: Partial<HttpLimits>
  readonly keep?: boolean
  readonly signal?: AbortSignal
  /** The site of all tests where not given. */
  readonly of?: MisbehavingSite
}

function ask(path: string, more: Asking = {}, by = client): Promise<HttpResult> {
  return by.request({
    url: new URL((more.of ?? site).url(path, more.host)),
    method: more.method ?? 'GET',
    headers: { 'user-agent': 'test', ...more.headers },
    limits: { ...limits, ...more.limits },
    keepBody: () => more.keep ?? true,
    signal: more.signal ?? new AbortController().signal,
  })
}

async function answered(path: string, more: Asking = {}): Promise<HttpResponse & { readonly text: string }> {
  const result = await ask(path, more)
  if (result.kind !== 'response') throw new Error(`${path}: ${result.reason}, ${result.detail}`)
  return { ...result, text: result.decoded.toString('latin1') }
}

const field = (response: HttpResponse, name: string): string[] =>
  response.headers.filter((header) => header.name === name).map(({ value }) => value)

describe('an answer that is odd', () => {
  it.each([
    ['/honest', { status: 200, text: 'hello', truncated: null, contentType: 'text/html' }],
    ['/no-length', { text: 'until the end', truncated: null }],
    ['/http-1.0', { text: 'old', truncated: null }],
    ['/chunks', { text: 'hello!', truncated: null }],
    ['/no-reason', { status: 200, text: 'ok' }],
    ['/status-999', { status: 999, text: 'go away' }],
    ['/early-hints', { status: 200, text: 'after hints' }],
    ['/large-header', { status: 200, text: 'large' }],
    ['/no-content-with-body', { status: 204, text: '', truncated: null, wireBytes: 0 }],
    ['/not-modified', { status: 304, text: '', truncated: null, wireBytes: 0 }],
  ] as const)('is read: %s', async (path, expected) => {
    expect(await answered(path, { host: 'odd.test' })).toMatchObject(expected)
  })

  it('C059: ended early is never a whole page', async () => {
    expect(await answered('/less-than-promised')).toMatchObject({ truncated: 'network', text: 'short', wireBytes: 5 })
    expect(await answered('/reset-in-body')).toMatchObject({ truncated: 'network' })
    expect(await answered('/chunks-cut')).toMatchObject({ truncated: 'network', text: 'hellowor' })
    expect(await answered('/chunks-broken')).toMatchObject({ truncated: 'network', text: 'hello' })
  })

  it('C078: in pieces that part a character is read as one', async () => {
    const { decoded, contentType, truncated } = await answered('/split-character')
    const { charset } = decideCharset(decoded, contentType)
    expect([decodeText(decoded, charset), charset, truncated]).toEqual(['你好', 'UTF-8', null])
  })

  it('C061: with more bytes than promised keeps them out of the next answer', async () => {
    const host = 'extra.test'
    expect(await answered('/more-than-promised', { host })).toMatchObject({ text: 'hello', truncated: null })
    expect(await answered('/honest', { host })).toMatchObject({ status: 200, text: 'hello' })
    const [first, second] = site.requests.slice(-2)
    expect(second?.connection).not.toBe(first?.connection)
  })

  it('C063: with repeated headers keeps each of them, in order and as sent', async () => {
    const response = await answered('/two-types')
    expect(field(response, 'Content-Type')).toEqual(['text/html', 'text/html; charset=gbk'])
    expect(response.headers.filter(({ name }) => name.toLowerCase() === 'set-cookie')).toEqual([
      { name: 'Set-Cookie', value: 'a=1; Expires=Wed, 21 Oct 2027 07:28:00 GMT' },
      { name: 'set-cookie', value: 'b=2' },
    ])
    expect(response.contentType).toBe('text/html')
  })

  it('C063: with repeated Content-Type headers becomes a page in the charset that one of them names', async () => {
    const response = await answered('/two-types')
    const finalUrl = new URL(site.url('/two-types'))
    const task = newUrlTask({ url: finalUrl.href })
    const page = await buildPage({ task, finalUrl, response, robots: null, policy: null, fetchedAt: 0, totalMs: response.totalMs })
    expect(page).toMatchObject({ contentType: 'text/html', charset: 'GBK', charsetSource: 'header' })
    const body = await unpackPageBody(page)
    expect(body.ok && decodeText(body.bytes, page.charset)).toBe('中文')
  })

  it('C044: with octets above 127 in a header keeps them', async () => {
    expect(field(await answered('/latin1-header'), 'X-Name')).toEqual(['caf\xe9'])
    expect(field(await answered('/latin1-location'), 'Location')).toEqual(['/caf\xe9'])
  })

  it('to HEAD has no body, whatever it promises', async () => {
    expect(await answered('/head-length', { method: 'HEAD', host: 'head.test' })).toMatchObject({ status: 200, text: '', truncated: null })
    expect(await answered('/honest', { host: 'head.test' })).toMatchObject({ text: 'hello' })
  })

  it('that nobody keeps ends when its head is there, however slowly the rest drips', async () => {
    const response = await answered('/drip-body', { host: 'drip.test', keep: false })
    expect(response).toMatchObject({ status: 200, truncated: 'type', text: '' })
    expectInTime(response.totalMs, limits.totalMs / 2)
  })

  it('that never ends is cut at the cap, and the connection with it', async () => {
    const host = 'endless.test'
    expect(await answered('/endless-body', { host })).toMatchObject({ truncated: 'size', wireBytes: 100_000 })
    const mine = site.requests.at(-1)?.connection
    expect(await answered('/honest', { host })).toMatchObject({ text: 'hello' })
    expect(site.requests.at(-1)?.connection).not.toBe(mine)
    expect(await answered('/endless-body', { keep: false })).toMatchObject({ truncated: 'type', text: '' })
  })
})

describe('an answer that is no HTTP', () => {
  it.each([
    ['/garbage', 'protocol-error'],
    ['/bytes', 'protocol-error'],
    ['/bad-header', 'protocol-error'],
    ['/nul-in-header', 'protocol-error'],
    ['/huge-header', 'protocol-error'],
    ['/endless-headers', 'protocol-error'],
    ['/two-lengths', 'protocol-error'],
    ['/equal-lengths', 'protocol-error'],
    ['/status-000', 'protocol-error'],
    ['/folded', 'protocol-error'],
    ['/line-feeds', 'protocol-error'],
    ['/length-and-chunks', 'protocol-error'],
    ['/negative-length', 'protocol-error'],
    ['/switches-protocol', 'protocol-error'],
    ['/continues', 'protocol-error'],
    ['/nothing', 'connection-reset'],
    ['/reset', 'connection-reset'],
    ['/half-a-head', 'connection-reset'],
  ])('is a failure with its reason: %s', async (path, reason) => {
    expect(await ask(path)).toMatchObject({ kind: 'failure', reason, detail: expect.stringMatching(/./) })
  })

  it('says which line it could not take', async () => {
    expect(await ask('/continues')).toMatchObject({ detail: expect.stringContaining('100 Continue, which nobody had asked for') })
    expect(await ask('/switches-protocol')).toMatchObject({ detail: expect.stringContaining('(101)') })
    expect(await ask('/bad-header')).toMatchObject({ detail: expect.stringContaining('Invalid header token') })
    expect(await ask('/equal-lengths')).toMatchObject({ detail: expect.stringContaining('that field came twice') })
    expect(await ask('/status-000')).toMatchObject({ detail: expect.stringContaining('a status below 100') })
    expect(await ask('/huge-header')).toMatchObject({ detail: expect.stringMatching(/header/i) })
  })

  it('and a request that can not be written is one as well', async () => {
    for (const more of [
      { method: 'GE T' },
      { headers: { 'x-bad': 'a\nb' } },
      { headers: { 'bad name': '1' } },
      { headers: { expect: '100-continue' } },
    ]) {
      expect(await ask('/honest', more)).toMatchObject({ kind: 'failure', reason: 'protocol-error' })
    }
  })
})

describe('an answer that takes its time', () => {
  it('C065: is given up, whatever it waits for', async () => {
    const lies = [
      ['/silent', 'headers-timeout', { headersMs: 1_000 }],
      ['/half-a-head-then-silent', 'headers-timeout', { headersMs: 1_000 }],
      ['/body-then-silent', 'body-timeout', { idleMs: 1_000 }],
      ['/drip-body', 'total-timeout', { totalMs: 600 }],
      ['/drip-head', 'total-timeout', { totalMs: 600 }],
    ] as const
    const results = await Promise.all(lies.map(([path, , more]) => ask(path, { limits: more })))
    expect(results.map((result) => result.kind === 'failure' && result.reason)).toEqual(lies.map(([, reason]) => reason))
    expect(results.filter(({ totalMs }) => totalMs >= limits.totalMs)).toEqual([])
  })

  it('is heard by its head where it asks for patience, is a wall or leads elsewhere', async () => {
    const heads = [
      ['/patience-then-silent', { idleMs: 300 }, { kind: 'retry', reason: 'http-429', retryAfterMs: 60_000, backsOff: true }],
      ['/patience-drips', { totalMs: 600 }, { kind: 'retry', reason: 'http-503', retryAfterMs: 60_000, backsOff: true }],
      ['/wall-drips', { totalMs: 600 }, { kind: 'retry', reason: 'challenge', challengedBy: 'cloudflare' }],
      ['/gone-drips', { totalMs: 600 }, { kind: 'retry', reason: 'truncated', keep: { status: 404 } }],
      ['/elsewhere-drips', { totalMs: 600 }, { kind: 'hop' }],
    ] as const
    const asked = { method: 'GET', headers: {}, body: null, chain: [], now: 0 }
    const answers = await Promise.all(
      heads.map(async ([path, more]) => readAnswer(await ask(path, { limits: more }), { ...asked, target: new URL(site.url(path)) })),
    )
    expect(answers).toMatchObject(heads.map(([, , expected]) => expected))
    // A worker that is told to stop hears nothing more.
    const stop = new AbortController()
    const stopped = ask('/patience-then-silent', { signal: stop.signal, host: 'stopped.test' })
    await eventually(() => site.requests.some(({ head }) => head.includes('stopped.test')), { what: 'the request' })
    stop.abort(new Error('stopped'))
    await expect(stopped).rejects.toThrow('stopped')
  })

  it('is given up where TLS does not come to stand', async () => {
    const { createServer } = await import('node:net')
    const server = createServer((socket) => socket.on('error', () => undefined))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const asked = client.request({
      url: new URL(`https://silent-tls.test:${port}/`),
      method: 'GET',
      headers: {},
      limits: { ...limits, connectMs: 300 },
      keepBody: () => true,
      signal: new AbortController().signal,
    })
    expect(await asked).toMatchObject({ kind: 'failure', reason: 'connect-timeout' })
    server.close()
  })

  it('is given up while it is connected', async () => {
    const slow = new HttpClient({ ...options, lookup: () => undefined, resolve: {} })
    const asked = slow.request({
      url: new URL('http://slow-dns.test/'),
      method: 'GET',
      headers: {},
      limits: { ...limits, totalMs: 200 },
      keepBody: () => true,
      signal: new AbortController().signal,
    })
    expect(await asked).toMatchObject({ kind: 'failure', reason: 'total-timeout' })
    await slow.close()
  })
})

describe('a coded answer', () => {
  it.each(['/gzip', '/gzip-loud', '/x-gzip', '/br', '/deflate', '/deflate-raw', '/gzip-404', '/deflate-then-gzip', '/gzip-twice'])(
    'C080, C082, C089: is decoded: %s',
    async (path) => expect(await answered(path)).toMatchObject({ text: 'hello gzip', truncated: null }),
  )

  it('stays as received where one coding decodes to its end', async () => {
    const { body, encoding, decoded } = await answered('/gzip')
    expect([encoding, body.equals(decoded), body[0]]).toEqual(['gzip', false, 0x1f])
    expect(await answered('/deflate-then-gzip')).toMatchObject({ encoding: 'identity' })
  })

  it('C084: that was cut keeps what it gave, and says so', async () => {
    const { truncated, text, encoding } = await answered('/gzip-cut')
    expect([truncated, encoding, 'hello gzip'.startsWith(text)]).toEqual(['encoding', 'identity', true])
    expect(await answered('/gzip-broken')).toMatchObject({ truncated: 'undecoded', encoding: 'identity' })
  })

  it.each(['/gzip-label-only', '/utf-8-coding', '/none-coding'])('C086: passes as it is where the label is wrong: %s', async (path) => {
    const expected = { text: '<html>plain</html>', encoding: 'identity', truncated: null, mislabelled: true }
    expect(await answered(path)).toMatchObject(expected)
  })

  it('is read where it is empty, or something follows it', async () => {
    expect(await answered('/gzip-empty')).toMatchObject({ text: '', truncated: null })
    expect(await answered('/gzip-with-tail')).toMatchObject({ text: 'hello gzip', truncated: null, encoding: 'identity' })
  })

  it('C089: of more layers than anybody needs is not unpacked', async () => {
    const { body, truncated, wireBytes } = await answered('/six-codings')
    expect([truncated, body.length, body[0]]).toEqual(['undecoded', wireBytes, 0x1f])
  })

  it('is no bomb', async () => {
    for (const path of ['/bomb', '/bomb-in-bomb']) {
      const { truncated, decoded } = await answered(path)
      expect([truncated, decoded.length]).toEqual(['size', 100_000])
    }
  })

  it('C182: is measured decoded, one byte at a time', async () => {
    for (const [length, truncated] of [
      [999, null],
      [1_000, null],
      [1_001, 'size'],
    ] as const) {
      site.lie('/measured', (socket) => void socket.write(honest('x'.repeat(length))))
      expect(await answered('/measured', { limits: { maxBodyBytes: 1_000 } })).toMatchObject({ truncated })
    }
  })

  it('C182: is whole where packing made it longer than the limit', async () => {
    for (const [length, truncated] of [
      [1_024, null],
      [1_025, 'size'],
    ] as const) {
      const body = randomBytes(length)
      site.lie('/grown', (socket) => void socket.write(honest(gzipSync(body), ['Content-Encoding: gzip'])))
      const answer = await answered('/grown', { limits: { maxBodyBytes: 1_024 } })
      expect([answer.truncated, answer.decoded.equals(body.subarray(0, 1_024))]).toEqual([truncated, true])
    }
  })
})

describe('a request', () => {
  it('says what it was told to say, to the host of its URL', async () => {
    await answered('/honest?b=2&a=1', { host: 'said.test', headers: { 'Accept-Encoding': 'gzip, deflate, br' } })
    const head = site.requests.at(-1)?.head ?? ''
    expect(head.split('\r\n')[0]).toBe('GET /honest?b=2&a=1 HTTP/1.1')
    expect(head).toContain(`host: said.test:${site.port}`)
    expect(head).toContain('Accept-Encoding: gzip, deflate, br')
  })

  it('C190: has the headers that it is given and no others', async () => {
    await answered('/honest', { host: 'bare.test' })
    const names = (site.requests.at(-1)?.head ?? '')
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(':', 1)[0])
    expect(names.sort()).toEqual(['connection', 'host', 'user-agent'])
  })

  it('C045: follows no redirect by itself', async () => {
    const before = site.requests.length
    expect(await answered('/a/b/c', { host: 'hop.test' })).toMatchObject({ status: 301 })
    expect(await answered('/inward', { host: 'hop.test' })).toMatchObject({ status: 302 })
    expect(site.requests.length - before).toBe(2)
  })

  it('is made once, also when the connection breaks', async () => {
    const before = site.requests.length
    await ask('/reset', { host: 'once.test' })
    await ask('/nothing', { host: 'once.test' })
    expect(site.requests.length - before).toBe(2)
  })

  it('goes to the next address of a host where the first does not answer', async () => {
    const addresses = [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ]
    const many = new HttpClient({
      ...options,
      resolve: {},
      allowAddresses: ['127.0.0.0/8', '::1'],
      lookup: (_, callback) => callback(null, addresses),
    })
    expect(await ask('/honest', { host: 'two-homes.test' }, many)).toMatchObject({ status: 200, remoteAddress: '127.0.0.1' })
    expect(site.requests.at(-1)?.head).toContain('host: two-homes.test')
    await many.close()
  })

  it('names the host of its URL in TLS, wherever it connects', async () => {
    let hello = Buffer.alloc(0)
    const { createServer } = await import('node:net')
    const server = createServer((socket) =>
      socket
        .on('error', () => undefined)
        .once('data', (bytes) => {
          hello = bytes
          socket.destroy()
        }),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const url = new URL(`https://secure.name.test:${port}/`)
    const result = await client.request({
      url,
      method: 'GET',
      headers: {},
      limits,
      keepBody: () => true,
      signal: new AbortController().signal,
    })
    expect(result).toMatchObject({ kind: 'failure' })
    expect(hello.toString('latin1')).toContain('secure.name.test')
    server.close()
  })

  it('uses a connection again, and gives up a few at the bound', async () => {
    const few = new HttpClient({ ...options, maxOrigins: 2 })
    const before = site.connections.made
    for (let times = 0; times < 3; times += 1) {
      await ask('/honest', { host: 'again.test' }, few)
      // undici gives a connection free one turn of the loop after its answer.
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(site.connections.made - before).toBe(1)
    const opened = site.connections.open
    for (let index = 0; index < 10; index += 1) await ask('/honest', { host: `h${index}.test` }, few)
    await eventually(() => site.connections.open <= opened + 1)
    await few.close()
  })

  it('is refused by a client that is closed, and cut off by its close', async () => {
    const closing = new HttpClient(options)
    const open = ask('/silent', {}, closing)
    await eventually(() => site.requests.at(-1)?.path === '/silent')
    await closing.close()
    expect(await open).toMatchObject({ kind: 'failure', reason: 'connection-reset' })
    expect(await ask('/honest', {}, closing)).toMatchObject({ kind: 'failure' })
  })

  it('rejects at once where its signal was aborted before', async () => {
    await expect(ask('/honest', { signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow('too late')
  })
})

describe('a client that is lied to', () => {
  it('keeps no timer and no listener, and no connection that is idle for ten seconds, whatever the site offers', async () => {
    const lied = new HttpClient(options)
    const own = await MisbehavingSite.open()
    own.lie('/kept', String(honest('hello', ['Keep-Alive: timeout=600'])))
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const warnings: string[] = []
    const onWarning = (warning: Error): unknown => warnings.push(warning.name)
    process.on('warning', onWarning)
    const stop = new AbortController()
    // None of them ends by a deadline; one that is not taken back stays for longer than the test.
    const long = { connectMs: 120_000, headersMs: 120_000, idleMs: 120_000, totalMs: 120_000 }
    const asking = { of: own, signal: stop.signal, limits: long }
    const paths = [
      '/honest',
      '/less-than-promised',
      '/reset',
      '/garbage',
      '/gzip-cut',
      '/endless-body',
      '/bomb',
      '/chunks-broken',
      '/huge-header',
      '/loop',
    ]
    const results: HttpResult[] = []
    for (let round = 0; round < 10; round += 1) {
      const asked = paths.flatMap((path) => [1, 2, 3].map((index) => ask(path, { ...asking, host: `l${index}.test` }, lied)))
      results.push(...(await Promise.all(asked)))
    }
    expect(results).toHaveLength(300)
    expect(results.filter(({ kind }) => kind === 'response')).toHaveLength(210)
    expect(await ask('/kept', { ...asking, host: 'kept.test' }, lied)).toMatchObject({ kind: 'response' })
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
    // An aborted request leaves nothing either.
    const pending = ask('/silent', { ...asking, host: 'l1.test' }, lied)
    stop.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
    expect(own.connections.open).toBeGreaterThan(0)
    // While the client is open: its close would take all of it away.
    await eventually(() => own.connections.open === 0, { timeoutMs: 40_000, what: 'an idle client to let go of its connections' })
    await eventually(() => timers() <= before, { what: 'the timers of before' })
    await lied.close()
    await own.close()
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })

  it('reads the next answer after any lie', async () => {
    site.lie('/after', (socket) => void socket.write(answer(['HTTP/1.1 200 OK', 'Content-Length: 5'], 'after')))
    for (const path of [
      '/chunks',
      '/gzip-label-only',
      '/no-content-with-body',
      '/not-modified',
      '/two-lengths',
      '/bad-header',
      '/chunks-cut',
    ]) {
      await ask(path, { host: 'after.test' })
      expect((await answered('/after', { host: 'after.test' })).text, path).toBe('after')
    }
  })
})
