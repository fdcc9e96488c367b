import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'

/** One request as it stood on the wire. */
export interface LiedTo {
  readonly method: string
  readonly path: string
  /** Everything before the body, in latin1. */
  readonly head: string
  /** Which connection it came on; the first is 1. */
  readonly connection: number
}

/** What a path does with whoever asks for it. */
export type Lie = (socket: Socket, request: LiedTo) => void

/**
 * A site on loopback that speaks in bytes and lies in every way that sites are known to. Each path of `LIES` is one lie; `lie` adds
 * another. It answers any host, keeps connections open unless a lie ends them, and remembers what it was asked.
 */
export class MisbehavingSite {
  readonly requests: LiedTo[] = []
  readonly #lies = new Map<string, Lie>(Object.entries(LIES))
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  #connectionCount = 0

  private constructor() {
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static async open(): Promise<MisbehavingSite> {
    const site = new MisbehavingSite()
    await new Promise<void>((resolve) => site.#server.listen(0, '127.0.0.1', resolve))
    return site
  }

  url(path: string, host = 'liar.test'): string {
    return `http://${host}:${this.port}${path}`
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Connections that were ever made, and those that stand. */
  get connections(): { readonly made: number; readonly open: number } {
    return { made: this.#connectionCount, open: this.#sockets.size }
  }

  lie(path: string, lie: Lie | string): void {
    this.#lies.set(path, typeof lie === 'string' ? say(lie) : lie)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #serve(socket: Socket): void {
    this.#connectionCount += 1
    const connection = this.#connectionCount
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    // Whoever is lied to may hang up at any moment.
    socket.on('error', () => undefined)
    let received = ''
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1')
      for (let end = received.indexOf('\r\n\r\n'); end !== -1; end = received.indexOf('\r\n\r\n')) {
        const head = received.slice(0, end)
        received = received.slice(end + 4)
        const [method = '', path = ''] = head.split(' ', 2)
        const request = { method, path, head, connection }
        this.requests.push(request)
        const lie = this.#lies.get(path) ?? this.#lies.get(path.split('?', 1)[0] ?? '') ?? NOT_FOUND
        lie(socket, request)
      }
    })
  }
}

const CRLF = '\r\n'

/** Bytes of an answer: status line and headers as given, then the body; text is latin1. */
export function answer(head: readonly string[], body: Buffer | string = ''): Buffer {
  return Buffer.concat([
    Buffer.from(head.join(CRLF) + CRLF + CRLF, 'latin1'),
    typeof body === 'string' ? Buffer.from(body, 'latin1') : body,
  ])
}

/** An honest answer with a length. */
export function honest(body: Buffer | string, headers: readonly string[] = [], status = '200 OK'): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body
  return answer([`HTTP/1.1 ${status}`, `Content-Length: ${bytes.length}`, ...headers], bytes)
}

const say =
  (bytes: Buffer | string): Lie =>
  (socket) =>
    void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
const sayAndEnd =
  (bytes: Buffer | string): Lie =>
  (socket) =>
    void socket.end(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
const sayAndReset =
  (bytes: Buffer | string): Lie =>
  (socket) =>
    void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, () => socket.resetAndDestroy())

/** Writes a piece again and again until the other side hangs up. */
const repeat =
  (first: string, piece: string, everyMs: number): Lie =>
  (socket) => {
    socket.write(first)
    const timer = setInterval(() => socket.write(piece), everyMs)
    socket.on('close', () => clearInterval(timer))
  }

/** Writes as fast as the other side reads, for ever. */
const flood =
  (first: string, piece: Buffer): Lie =>
  (socket) => {
    socket.write(first)
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', more)
    more()
  }

const NOT_FOUND = say(honest('no such lie', [], '404 Not Found'))
const hello = 'hello gzip'
const coded = (coding: string, body: Buffer | string): Lie => say(honest(body, [`Content-Encoding: ${coding}`, 'Content-Type: text/html']))
const redirect = (status: number, location: string): Lie => say(honest('', [`Location: ${location}`], `${status} Moved`))

/** The lies that everybody may use, by path. */
export const LIES: Readonly<Record<string, Lie>> = {
  '/honest': say(honest('hello', ['Content-Type: text/html'])),

  // --- lengths and ends
  '/less-than-promised': sayAndEnd(answer(['HTTP/1.1 200 OK', 'Content-Type: text/html', 'Content-Length: 500'], 'short')),
  '/more-than-promised': say(answer(['HTTP/1.1 200 OK', 'Content-Length: 5'], 'helloEXTRA')),
  '/no-length': sayAndEnd(answer(['HTTP/1.1 200 OK', 'Content-Type: text/html'], 'until the end')),
  '/http-1.0': sayAndEnd(answer(['HTTP/1.0 200 OK', 'Content-Type: text/html'], 'old')),
  '/reset-in-body': sayAndReset(answer(['HTTP/1.1 200 OK', 'Content-Length: 500'], 'short')),
  '/two-lengths': say(answer(['HTTP/1.1 200 OK', 'Content-Length: 5', 'Content-Length: 7'], 'hello!!')),
  '/equal-lengths': say(answer(['HTTP/1.1 200 OK', 'Content-Length: 5', 'Content-Length: 5'], 'hello')),
  '/status-000': say(answer(['HTTP/1.1 000 Zero', 'Content-Length: 5'], 'hello')),
  '/folded': say(answer(['HTTP/1.1 200 OK', 'Content-Type: text/html;', ' charset=utf-8', 'Content-Length: 5'], 'hello')),
  '/line-feeds': sayAndEnd('HTTP/1.1 200 OK\nContent-Type: text/html\n\nhello'),
  '/length-and-chunks': say(answer(['HTTP/1.1 200 OK', 'Content-Length: 3', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n')),
  '/negative-length': say(answer(['HTTP/1.1 200 OK', 'Content-Length: -1'], 'hello')),
  '/chunks': say(answer(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n')),
  '/chunks-cut': sayAndEnd(answer(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\nff\r\nwor')),
  '/chunks-broken': sayAndEnd(answer(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\nzz\r\nworld\r\n')),
  // The second piece comes when the first one has been read: together they would be one.
  '/split-character': (socket) => {
    socket.write(
      answer(['HTTP/1.1 200 OK', 'Content-Type: text/html; charset=utf-8', 'Transfer-Encoding: chunked'], '4\r\n\xe4\xbd\xa0\xe5\r\n'),
    )
    setTimeout(() => socket.write(Buffer.from('2\r\n\xa5\xbd\r\n0\r\n\r\n', 'latin1')), 100)
  },
  '/nothing': (socket) => socket.end(),
  '/reset': (socket) => socket.resetAndDestroy(),
  '/endless-body': flood('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n', Buffer.alloc(65_536, 'x')),

  // --- heads
  '/no-reason': say(answer(['HTTP/1.1 200', 'Content-Length: 2'], 'ok')),
  '/status-999': say(honest('go away', [], '999 Request Denied')),
  '/early-hints': say(Buffer.concat([answer(['HTTP/1.1 103 Early Hints', 'Link: </a.css>']), honest('after hints')])),
  '/continues': say(Buffer.concat([answer(['HTTP/1.1 100 Continue']), honest('after all')])),
  '/switches-protocol': say(answer(['HTTP/1.1 101 Switching Protocols', 'Upgrade: chess', 'Connection: Upgrade'])),
  // The two characters of 中文, in GBK.
  '/two-types': say(
    honest(Buffer.from('d6d0cec4', 'hex'), [
      'Content-Type: text/html',
      'Content-Type: text/html; charset=gbk',
      'Set-Cookie: a=1; Expires=Wed, 21 Oct 2027 07:28:00 GMT',
      'set-cookie: b=2',
    ]),
  ),
  '/latin1-header': say(honest('', ['X-Name: caf\xe9', 'X-Empty:'])),
  '/huge-header': say(honest('', [`X-Huge: ${'h'.repeat(300_000)}`])),
  '/large-header': say(honest('large', [`Content-Security-Policy: ${'h'.repeat(200_000)}`])),
  '/endless-headers': flood('HTTP/1.1 200 OK\r\n', Buffer.from('X-More: yes\r\n'.repeat(100))),
  '/bad-header': say(honest('', ['X Bad Name: 1'])),
  '/nul-in-header': say(honest('', ['X-Nul: a\0b'])),
  '/garbage': sayAndEnd('SSH-2.0-OpenSSH_9.2\r\n\r\n'),
  '/bytes': sayAndEnd(Buffer.from(Array.from({ length: 300 }, (_, index) => (index * 7) % 256))),
  '/half-a-head': sayAndEnd('HTTP/1.1 200 OK\r\nContent-Ty'),

  // --- bodies where none may be
  '/no-content-with-body': say(answer(['HTTP/1.1 204 No Content', 'Content-Length: 4'], 'body')),
  '/not-modified': say(answer(['HTTP/1.1 304 Not Modified', 'ETag: "v1"', 'Content-Length: 400'])),
  '/head-length': say(answer(['HTTP/1.1 200 OK', 'Content-Type: text/html', 'Content-Length: 5000', 'Content-Encoding: gzip'])),

  // --- time
  '/silent': () => undefined,
  '/half-a-head-then-silent': say('HTTP/1.1 200 OK\r\nContent-Type: te'),
  '/body-then-silent': say(answer(['HTTP/1.1 200 OK', 'Content-Length: 500'], 'short')),
  '/patience-then-silent': say(answer(['HTTP/1.1 429 No', 'Retry-After: 60', 'Content-Length: 500'], 'short')),
  '/patience-drips': repeat('HTTP/1.1 503 No\r\nRetry-After: 60\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n', 50),
  '/wall-drips': repeat('HTTP/1.1 403 No\r\nCF-Mitigated: challenge\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n', 50),
  '/gone-drips': repeat('HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n', 50),
  '/elsewhere-drips': repeat('HTTP/1.1 302 Found\r\nLocation: /honest\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n', 50),
  '/drip-body': repeat('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n', 50),
  '/drip-head': repeat('HTTP/1.1 200 OK\r\nX: ', 'x', 50),

  // --- codings
  '/gzip': coded('gzip', gzipSync(hello)),
  '/gzip-loud': coded('GZIP', gzipSync(hello)),
  '/x-gzip': coded('x-gzip', gzipSync(hello)),
  '/br': coded('br', brotliCompressSync(hello)),
  '/deflate': coded('deflate', deflateSync(hello)),
  '/deflate-raw': coded('deflate', deflateRawSync(hello)),
  '/gzip-404': say(honest(gzipSync(hello), ['Content-Encoding: gzip'], '404 Not Found')),
  '/deflate-then-gzip': coded('deflate, gzip', gzipSync(deflateSync(hello))),
  '/gzip-twice': coded('gzip, gzip', gzipSync(gzipSync(hello))),
  '/gzip-cut': coded('gzip', gzipSync(hello).subarray(0, -6)),
  '/gzip-broken': coded('gzip', Buffer.concat([gzipSync('x'.repeat(5_000)).subarray(0, 12), Buffer.alloc(50, 0xff)])),
  '/gzip-with-tail': coded('gzip', Buffer.concat([gzipSync(hello), Buffer.from('tail')])),
  '/gzip-empty': coded('gzip', ''),
  '/gzip-label-only': coded('gzip', '<html>plain</html>'),
  '/utf-8-coding': coded('utf-8', '<html>plain</html>'),
  '/none-coding': coded('none', '<html>plain</html>'),
  '/six-codings': coded(
    'gzip, gzip, gzip, gzip, gzip, gzip',
    [1, 2, 3, 4, 5, 6].reduce<Buffer>((body) => gzipSync(body), Buffer.from(hello)),
  ),
  '/bomb': coded('gzip', gzipSync(Buffer.alloc(30_000_000))),
  '/bomb-in-bomb': coded('gzip, gzip', gzipSync(gzipSync(Buffer.alloc(30_000_000)))),

  // --- redirects
  '/a/b/c': redirect(301, 'd'),
  '/loop': redirect(301, '/loop'),
  '/latin1-location': redirect(302, '/caf\xe9'),
  '/bad-location': redirect(302, 'http://\xa0example.test/'),
  '/inward': redirect(302, 'http://169.254.169.254/latest/meta-data/'),
  '/busy': say(honest('', ['Retry-After: 2'], '429 Too Many Requests')),
}
