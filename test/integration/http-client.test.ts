import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HttpClient } from '../../src/fetch/http-client.ts'
import type { HttpLimits, HttpRequest, HttpResponse, HttpResult } from '../../src/fetch/http-exchange.ts'
import { systemClock } from '../../src/kernel/clock.ts'

const limits: HttpLimits = { connectMs: 10_000, headersMs: 20_000, idleMs: 20_000, totalMs: 60_000, maxBodyBytes: 1000 }
let port = 0
const client = new HttpClient({ resolve: { '*.site.test': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock })
const routes = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>()
const server = createServer((request, response) => routes.get(request.url ?? '')?.(request, response))

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})

afterAll(async () => {
  await client.close()
  server.closeAllConnections()
  server.close()
})

function ask(
  target: string,
  options: { limits?: Partial<HttpLimits>; keep?: boolean; signal?: AbortSignal; onBody?: HttpRequest['onBody'] } = {},
  by = client,
): Promise<HttpResult> {
  return by.request({
    url: new URL(target.startsWith('/') ? `http://a.site.test:${port}${target}` : target),
    method: 'GET',
    headers: { 'user-agent': 'test', 'accept-encoding': 'gzip, deflate, br' },
    limits: { ...limits, ...options.limits },
    ...(options.onBody === undefined ? {} : { onBody: options.onBody }),
    keepBody: () => options.keep ?? true,
    signal: options.signal ?? new AbortController().signal,
  })
}

async function answered(target: string, options: Parameters<typeof ask>[1] = {}): Promise<HttpResponse> {
  const result = await ask(target, options)
  if (result.kind !== 'response') throw new Error(`${result.reason}: ${result.detail}`)
  return result
}

function serve(path: string, headers: Record<string, string | string[]>, body: Buffer | string, status = 200): string {
  routes.set(path, (_, response) => response.writeHead(status, headers).end(body))
  return path
}

/** A server that writes these bytes to whoever connects, and what it does then. */
async function raw(bytes: string, then: (socket: Socket) => void = (socket) => socket.end()): Promise<{ url: string; close: () => void }> {
  const sockets = new Set<Socket>()
  const tcp: Server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write(Buffer.from(bytes, 'latin1'), () => then(socket)))
  })
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://raw.site.test:${(tcp.address() as AddressInfo).port}/`,
    close: () => {
      for (const socket of sockets) socket.destroy()
      tcp.close()
    },
  }
}

describe('one request', () => {
  it('gives status, headers as received, body and address', async () => {
    const response = await answered(serve('/plain', { 'Content-Type': 'text/html; charset=utf-8', 'X-Two': ['1', '2'] }, 'hello', 404))
    expect(response).toMatchObject({
      status: 404,
      contentType: 'text/html',
      truncated: null,
      encoding: 'identity',
      remoteAddress: '127.0.0.1',
    })
    expect(response.decoded.toString()).toBe('hello')
    expect(response.headers.filter(({ name }) => name === 'X-Two').map(({ value }) => value)).toEqual(['1', '2'])
  })

  it('keeps header octets above 127 as latin1', async () => {
    const site = await raw('HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n')
    const result = (await ask(site.url)) as HttpResponse
    expect(result.headers).toContainEqual({ name: 'Location', value: '/caf\xe9' })
    site.close()
  })

  it.each([
    ['gzip', gzipSync('hello gzip'), 'gzip'],
    ['GZIP', gzipSync('hello gzip'), 'gzip'],
    ['x-gzip', gzipSync('hello gzip'), 'gzip'],
    ['br', brotliCompressSync('hello gzip'), 'br'],
    ['deflate', deflateSync('hello gzip'), 'deflate'],
    ['deflate', deflateRawSync('hello gzip'), 'deflate'],
    ['deflate, gzip', gzipSync(deflateSync('hello gzip')), 'identity'],
    ['utf-8', Buffer.from('hello gzip'), 'identity'],
    ['gzip', Buffer.from('hello gzip'), 'identity'],
  ])('decodes content-encoding %s', async (coding, body, encoding) => {
    const response = await answered(serve('/coded', { 'content-encoding': coding }, body))
    expect(response.decoded.toString()).toBe('hello gzip')
    expect(response).toMatchObject({ encoding, truncated: null })
  })

  it('says that a coding was cut, and keeps what it gave', async () => {
    const response = await answered(serve('/cut', { 'content-encoding': 'gzip' }, gzipSync('hello gzip').subarray(0, -6)))
    expect(response.truncated).toBe('encoding')
    expect('hello gzip'.startsWith(response.decoded.toString())).toBe(true)
  })

  it.each([
    [999, null],
    [1000, null],
    [1001, 'size'],
  ])('cuts a body of %i bytes at a limit of 1000: %s', async (size, truncated) => {
    const text = 'x'.repeat(size)
    const plain = await answered(serve('/size', {}, text))
    const packed = await answered(serve('/size-gzip', { 'content-encoding': 'gzip' }, gzipSync(text)))
    expect([plain.truncated, packed.truncated]).toEqual([truncated, truncated])
    expect([plain.decoded.length, packed.decoded.length]).toEqual([Math.min(size, 1000), Math.min(size, 1000)])
  })

  it('does not unpack a bomb', async () => {
    const response = await answered(serve('/bomb', { 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(50_000_000))), {
      limits: { maxBodyBytes: 100_000 },
    })
    expect(response).toMatchObject({ truncated: 'size' })
    expect(response.decoded.length).toBe(100_000)
  })

  it('says that a body ended before its length', async () => {
    const site = await raw('HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort')
    const result = (await ask(site.url)) as HttpResponse
    expect(result).toMatchObject({ kind: 'response', truncated: 'network' })
    expect(result.decoded.toString()).toBe('short')
    site.close()
  })

  it('takes no more than the length that was promised', async () => {
    const site = await raw('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloEXTRA')
    expect(((await ask(site.url)) as HttpResponse).decoded.toString()).toBe('hello')
    site.close()
  })

  it('leaves a body alone that is not kept', async () => {
    const response = await answered(serve('/image', { 'content-type': 'image/png' }, 'PNG'), { keep: false })
    expect(response).toMatchObject({ truncated: 'type', contentType: 'image/png' })
    expect(response.body.length).toBe(0)
  })
})

describe('a request that fails', () => {
  it('ends at the total deadline, however slowly bytes drip', async () => {
    routes.set('/drip', (_, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('x'), 100)
      response.on('close', () => clearInterval(timer))
    })
    expect(await ask('/drip', { limits: { totalMs: 700 } })).toMatchObject({ kind: 'failure', reason: 'total-timeout' })
  })

  it('ends when the body stands still, and when no headers come', async () => {
    routes.set('/still', (_, response) => {
      response.writeHead(200).write('x')
    })
    routes.set('/silent', () => undefined)
    expect(await ask('/still', { limits: { idleMs: 300 } })).toMatchObject({ reason: 'body-timeout' })
    expect(await ask('/silent', { limits: { headersMs: 300 } })).toMatchObject({ reason: 'headers-timeout' })
  })

  it('says whether nobody listens, the connection was cut, or the answer is no HTTP', async () => {
    const cut = await raw('', (socket) => socket.resetAndDestroy())
    const garbage = await raw('SSH-2.0-OpenSSH_9.2\r\n\r\n')
    expect(await ask('http://127.0.0.1:1/')).toMatchObject({ reason: 'connect-refused' })
    expect(await ask(cut.url)).toMatchObject({ reason: 'connection-reset' })
    expect(await ask(garbage.url)).toMatchObject({ reason: 'protocol-error' })
    expect(await ask(`https://a.site.test:${port}/`)).toMatchObject({ reason: 'tls-failed' })
    cut.close()
    garbage.close()
  })

  it('rejects with the reason of its signal, and with nothing else', async () => {
    routes.set('/hang', () => undefined)
    const stop = new AbortController()
    const pending = ask('/hang', { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
  })
})

describe('a server that closes a connection when it is used again', () => {
  it('is asked on a connection of its own each time, once it has done so', async () => {
    const tcp = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        socket.once('data', () => socket.destroy())
      })
    })
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
    const kinds: string[] = []
    for (let times = 0; times < 8; times += 1) {
      const result = await ask(`http://closing.site.test:${(tcp.address() as AddressInfo).port}/${times}`)
      kinds.push(result.kind === 'response' ? String(result.status) : result.reason)
      // undici gives a connection free one turn of the loop after its answer.
      await new Promise((resolve) => setImmediate(resolve))
    }
    tcp.close()
    expect(kinds).toEqual(['200', 'connection-reset', ...Array.from({ length: 6 }, () => '200')])
  })
})

describe('a body that is held back', () => {
  const large = { maxBodyBytes: 8_000_000, idleMs: 1_000 }
  const held = () => heldFrom(0)
  /** Goes on until it would have so many bytes. */
  const heldFrom = (least: number) => {
    let goOn = (): void => undefined
    let begun = (): void => undefined
    const hasBegun = new Promise<void>((resolve) => (begun = resolve))
    const room = new Promise<void>((resolve) => (goOn = resolve))
    const pieces: number[] = []
    const onBody = (bytes: number): Promise<void> | undefined => {
      pieces.push(bytes)
      if (bytes < least) return undefined
      begun()
      return room
    }
    return { onBody, hasBegun, pieces, goOn: () => goOn() }
  }

  it('is whole when it is read on, however long that took: its server is not late', async () => {
    serve('/large', {}, Buffer.alloc(6_000_000, 'x'))
    const { onBody, hasBegun, pieces, goOn } = held()
    const waiting = answered('/large', { limits: large, onBody })
    await hasBegun
    // Of a body that does stand still the same time is over now.
    const silent = await raw('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf', () => undefined)
    expect(await ask(silent.url, { limits: large })).toMatchObject({ reason: 'body-timeout' })
    silent.close()
    expect(pieces).toHaveLength(1)
    goOn()
    expect((await waiting).body).toHaveLength(6_000_000)
    expect(pieces.at(-1)).toBe(6_000_000)
  })

  it('can be given up while it comes, and counts as one that timed out', async () => {
    const silent = await raw('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf', () => undefined)
    const onBody = (_bytes: number, giveUp?: () => void): undefined => giveUp?.() as undefined
    const failed = await ask(silent.url, { limits: { ...large, idleMs: 60_000, totalMs: 60_000 }, onBody })
    expect(failed).toMatchObject({ kind: 'failure', reason: 'body-timeout', detail: expect.stringContaining('too slowly') })
    silent.close()
  })

  it('has its deadline without the time that it was held back', async () => {
    serve('/large', {}, Buffer.alloc(6_000_000, 'x'))
    const short = { ...large, totalMs: 4_000, idleMs: 30_000 }
    const { onBody, hasBegun, goOn } = held()
    const waiting = answered('/large', { limits: short, onBody })
    await hasBegun
    const silent = await raw('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf', () => undefined)
    expect(await ask(silent.url, { limits: short })).toMatchObject({ reason: 'total-timeout' })
    silent.close()
    goOn()
    expect((await waiting).body).toHaveLength(6_000_000)
  })

  it.each([
    ['gzip', gzipSync(Buffer.alloc(6_000_000, 'x'))],
    ['br', brotliCompressSync(Buffer.alloc(6_000_000, 'x'))],
    ['deflate', deflateSync(Buffer.alloc(6_000_000, 'x'))],
  ])('is not unpacked before there is room for what that gives: %s', async (coding, packed) => {
    serve(`/packed-${coding}`, { 'content-encoding': coding }, packed)
    const { onBody, hasBegun, pieces, goOn } = heldFrom(5_000_000)
    const waiting = answered(`/packed-${coding}`, { limits: { ...large, totalMs: 6_000 }, onBody })
    await hasBegun
    const silent = await raw('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf', () => undefined)
    expect(await ask(silent.url, { limits: large })).toMatchObject({ reason: 'body-timeout' })
    silent.close()
    goOn()
    const { body, decoded, encoding, truncated } = await waiting
    expect([body.length, decoded.length, encoding, truncated]).toEqual([packed.length, 6_000_000, coding, null])
    expect(pieces.filter((bytes) => bytes >= 6_000_000)).toHaveLength(1)
  })

  it('is told of once where it is packed as pages are, and of no more than such pages have', async () => {
    const page = Buffer.from(Array.from({ length: 900 }, (_, index) => `<li>${index} ${(index * 7_919) % 1_000}</li>`).join(''))
    for (const [coding, packed] of [
      ['gzip', gzipSync(page)],
      ['br', brotliCompressSync(page)],
    ] as const) {
      serve('/page', { 'content-encoding': coding }, packed)
      const told: number[] = []
      const { decoded } = await answered('/page', { limits: large, onBody: (bytes) => void told.push(bytes) })
      expect(decoded.equals(page)).toBe(true)
      expect(told.filter((bytes) => bytes > packed.length)).toHaveLength(1)
      expect(Math.max(...told)).toBeLessThanOrEqual(131_072)
    }
  })

  it('is whole where the end of its gzip tells less than it has', async () => {
    const page = Buffer.alloc(3_000_000, 'x')
    const members = Buffer.concat([gzipSync(page), gzipSync(Buffer.from('end'))])
    serve('/members', { 'content-encoding': 'gzip' }, members)
    const told: number[] = []
    const { decoded } = await answered('/members', { limits: large, onBody: (bytes) => void told.push(bytes) })
    expect(decoded.length).toBeGreaterThanOrEqual(3_000_000)
    expect(Math.max(...told)).toBe(members.length + large.maxBodyBytes)
  })

  it('ends with the stage', async () => {
    serve('/large', {}, Buffer.alloc(6_000_000, 'x'))
    const stop = new AbortController()
    const { onBody, hasBegun } = held()
    const waiting = ask('/large', { limits: large, onBody, signal: stop.signal })
    await hasBegun
    stop.abort()
    await expect(waiting).rejects.toThrow()
  })
})

describe('the address guard', () => {
  const strict = new HttpClient({
    resolve: { 'pinned.test': '10.0.0.7' },
    allowAddresses: [],
    clock: systemClock,
    lookup: (hostname, callback) => {
      const answers: Record<string, string[]> = { 'mixed.test': ['93.184.216.34', '127.0.0.1'], 'private.test': ['192.168.1.1'] }
      const found = answers[hostname] ?? []
      if (found.length === 0) callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), [])
      else
        callback(
          null,
          found.map((address) => ({ address, family: 4 })),
        )
    },
  })
  afterAll(() => strict.close())

  it.each([
    'http://127.0.0.1/',
    'http://0x7f.1/',
    'http://2130706433/',
    'http://0177.0.0.1/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[fe80::1]/',
    'http://0.0.0.0/',
    'http://169.254.169.254/latest/meta-data/',
    'http://１２７.0.0.1/',
    'http://private.test/',
    'http://mixed.test/',
    'http://pinned.test/',
  ])('C188: refuses %s before it connects', async (target) => {
    expect(await ask(target, {}, strict)).toMatchObject({ kind: 'failure', reason: 'address-refused' })
  })

  it('tells a name that does not exist from one that is refused', async () => {
    expect(await ask('http://nowhere.test/', {}, strict)).toMatchObject({ reason: 'dns-not-found' })
  })

  it('C188: connects to the address that it judged, though the name answers otherwise from then on, and judges it for the next connection', async () => {
    const connectedTo: (string | undefined)[] = []
    const everywhere = createServer((_, response) => response.setHeader('connection', 'close').end('page'))
    everywhere.on('connection', ({ localAddress }) => connectedTo.push(localAddress))
    await new Promise<void>((resolve) => everywhere.listen(0, '0.0.0.0', resolve))
    let asked = 0
    const rebinding = new HttpClient({
      resolve: {},
      allowAddresses: ['127.0.0.2/32'],
      clock: systemClock,
      lookup: (_, callback) => {
        asked += 1
        callback(null, [{ address: asked === 1 ? '127.0.0.2' : '127.0.0.1', family: 4 }])
      },
    })
    const target = `http://rebind.test:${(everywhere.address() as AddressInfo).port}/`
    expect(await ask(target, {}, rebinding)).toMatchObject({ kind: 'response', remoteAddress: '127.0.0.2' })
    expect(asked).toBe(1)
    expect(await ask(target, {}, rebinding)).toMatchObject({ kind: 'failure', reason: 'address-refused' })
    expect([asked, connectedTo]).toEqual([2, ['127.0.0.2']])
    await rebinding.close()
    everywhere.close()
  })
})

it('names the connection of its own request, also where another one was made meanwhile to another address', async () => {
  const addresses = ['127.0.0.1', '127.0.0.2']
  let release = (): void => undefined
  const [own, other] = ['/first', '/second']
  const both = createServer((request, response) => {
    if (request.url === own) release = () => response.end('first')
    else response.end('second')
  })
  await new Promise<void>((resolve) => both.listen(0, '0.0.0.0', resolve))
  const target = (path: string): string => `http://many.test:${(both.address() as AddressInfo).port}${path}`
  const many = new HttpClient({
    resolve: {},
    allowAddresses: ['127.0.0.0/8'],
    lookup: (_, callback) => callback(null, [{ address: addresses.shift() ?? '', family: 4 }]),
    clock: systemClock,
  })
  const asked = new Promise((resolve) => both.once('request', resolve))
  const first = ask(target(own), {}, many)
  await asked
  expect(await ask(target(other), {}, many)).toMatchObject({ remoteAddress: '127.0.0.2' })
  release()
  expect(await first).toMatchObject({ remoteAddress: '127.0.0.1' })
  await many.close()
  both.close()
})
