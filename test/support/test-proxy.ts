import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** One connection that was asked for. */
export interface Tunnelled {
  /** As it was named: an address and its port. */
  readonly target: string
  readonly authorization: string | undefined
}

interface Options {
  /** Status of the answer to CONNECT; 200 connects. */
  readonly status?: () => number
  /** Port of loopback that it connects to, whatever it is asked for. */
  readonly leadsTo?: number
  /** Of a proxy that is asked by TLS. */
  readonly tls?: { readonly key: string; readonly cert: string }
}

/** Proxies on loopback that do what they are asked, and say what that was. */
export class TestProxy {
  readonly tunnels: Tunnelled[] = []
  readonly #sockets = new Set<Socket>()
  readonly #server: Server | HttpServer

  private constructor(server: Server | HttpServer) {
    this.#server = server
    server.on('connection', (socket: Socket) => this.#keep(socket))
  }

  static async http({ status = () => 200, leadsTo, tls }: Options = {}): Promise<TestProxy> {
    const server = tls === undefined ? createHttpServer() : createHttpsServer(tls)
    const proxy = new TestProxy(server)
    server.on('request', (_, response) => response.writeHead(501).end())
    server.on('connect', (request, socket: Socket, head: Buffer) => {
      proxy.#keep(socket)
      const target = request.url ?? ''
      proxy.tunnels.push({ target, authorization: request.headers['proxy-authorization'] })
      if (status() !== 200) return socket.end(`HTTP/1.1 ${status()} No\r\nContent-Length: 0\r\n\r\n`)
      const at = target.lastIndexOf(':')
      const [host, port] = leadsTo === undefined ? [target.slice(0, at), Number(target.slice(at + 1))] : ['127.0.0.1', leadsTo]
      proxy.#join(socket, host, port, 'HTTP/1.1 200 Connected\r\nX: y\r\n\r\n', head)
    })
    return proxy.#open()
  }

  /** With a user the proxy insists on `user:word`. */
  static async socks5(credentials?: string): Promise<TestProxy> {
    const server = createServer()
    const proxy = new TestProxy(server)
    server.on('connection', (socket: Socket) => void proxy.#serveSocks(socket, credentials))
    return proxy.#open()
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get open(): number {
    return this.#sockets.size
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #serveSocks(socket: Socket, credentials: string | undefined): Promise<void> {
    const next = reader(socket)
    const [, count = 0] = await next(2)
    const methods = await next(count)
    const wanted = credentials === undefined ? 0 : 2
    if (!methods.includes(wanted)) return void socket.end(Buffer.from([5, 0xff]))
    socket.write(Buffer.from([5, wanted]))
    let authorization: string | undefined
    if (credentials !== undefined) {
      const [, userLength = 0] = await next(2)
      const user = (await next(userLength)).toString()
      const [wordLength = 0] = await next(1)
      authorization = `${user}:${(await next(wordLength)).toString()}`
      socket.write(Buffer.from([1, authorization === credentials ? 0 : 1]))
      if (authorization !== credentials) return void socket.end()
    }
    const [, , , kind] = await next(4)
    const bytes = await next(kind === 4 ? 16 : 4)
    const host = kind === 4 ? (bytes.toString('hex').match(/.{4}/g) ?? []).join(':') : [...bytes].join('.')
    const port = (await next(2)).readUInt16BE()
    this.tunnels.push({ target: `${host}:${port}`, authorization })
    this.#join(
      socket,
      host,
      port,
      Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]),
      Buffer.alloc(0),
      Buffer.from([5, 5, 0, 1, 0, 0, 0, 0, 0, 0]),
    )
  }

  #join(socket: Socket, host: string, port: number, hello: string | Buffer, head: Buffer, failure?: Buffer): void {
    const upstream = connect({ host, port })
    this.#keep(upstream)
    upstream.once('connect', () => {
      socket.write(hello)
      if (head.length > 0) upstream.write(head)
      socket.pipe(upstream).pipe(socket)
    })
    upstream.once('error', () => socket.end(failure ?? 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'))
    socket.once('close', () => upstream.destroy())
    upstream.once('close', () => socket.end())
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
  }

  async #open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }
}

/** Reads exactly so many bytes at a time. */
function reader(socket: Socket): (length: number) => Promise<Buffer> {
  return (length) =>
    new Promise((resolve) => {
      if (length === 0) return resolve(Buffer.alloc(0))
      const take = (): void => {
        const bytes = socket.read(length) as Buffer | null
        if (bytes === null) return
        socket.off('readable', take)
        resolve(bytes)
      }
      socket.on('readable', take)
      take()
    })
}
