import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import { errorText } from '../kernel/errors.ts'
import type { ForwardProxy } from './proxy-url.ts'
import { connectMessage, greeting, METHOD, meaningOf, passwordMessage, restOfReply } from './socks5.ts'

/**
 * What went wrong between us and the target. By the proxy's fault: nobody is there (`PROXY_DOWN`), it hangs up or talks nonsense
 * (`PROXY_FAILED`), wants other credentials (`PROXY_AUTH`). By its fault or the target's, which can't be told apart: it did not come
 * through (`PROXY_UNREACHED`; 5xx), or not in time (`PROXY_TIMEOUT`). By its rules, while it works: it does not want to (`PROXY_REFUSED`;
 * 4xx, as where it allows CONNECT to port 443 alone). By the target's: `ECONNREFUSED`, as SOCKS alone tells.
 */
export class TunnelError extends Error {
  readonly code: 'PROXY_DOWN' | 'PROXY_FAILED' | 'PROXY_AUTH' | 'PROXY_REFUSED' | 'PROXY_UNREACHED' | 'PROXY_TIMEOUT' | 'ECONNREFUSED'

  constructor(code: TunnelError['code'], proxy: ForwardProxy, what: string, cause?: unknown) {
    super(`proxy ${proxy.label}: ${what}`, { cause })
    this.code = code
  }
}

export interface TunnelTarget {
  /** An address that was checked; the proxy is given no name to resolve. */
  readonly address: string
  readonly port: number
}

/** Longest head of an answer to CONNECT. */
const MAX_HEAD_BYTES = 16_384

/**
 * A connection to the target through a proxy, ready for TLS or HTTP. `signal` ends it at any moment. The proxy's own address is the
 * operator's choice: it may be private.
 */
export async function openTunnel(
  proxy: ForwardProxy,
  target: TunnelTarget,
  options: { readonly signal: AbortSignal; readonly secureContext?: SecureContext },
): Promise<Socket> {
  const socket = await connectToProxy(proxy, options)
  const onAbort = (): void => void socket.destroy(options.signal.reason instanceof Error ? options.signal.reason : undefined)
  options.signal.addEventListener('abort', onAbort, { once: true })
  try {
    if (proxy.scheme === 'socks5') await socksHandshake(socket, proxy, target)
    else await httpConnect(socket, proxy, target)
    return socket
  } catch (error) {
    socket.destroy()
    if (error instanceof TunnelError || options.signal.aborted) throw error
    throw new TunnelError('PROXY_FAILED', proxy, errorText(error), error)
  } finally {
    options.signal.removeEventListener('abort', onAbort)
  }
}

function connectToProxy(
  proxy: ForwardProxy,
  { signal, secureContext }: { readonly signal: AbortSignal; readonly secureContext?: SecureContext },
): Promise<Socket> {
  const { host, port } = proxy
  return new Promise((resolve, reject) => {
    const isTls = proxy.scheme === 'https'
    const trust = secureContext === undefined ? {} : { secureContext }
    const socket = isTls ? connectTls({ host, port, ...trust, servername: servername(host) }) : connectTcp({ host, port })
    socket.setNoDelay(true)
    const fail = (error: unknown): void => {
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      reject(new TunnelError('PROXY_DOWN', proxy, errorText(error), error))
    }
    const onAbort = (): void => fail(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', fail)
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      signal.removeEventListener('abort', onAbort)
      socket.off('error', fail)
      // Between the steps of the handshake nobody else listens.
      socket.on('error', () => undefined)
      resolve(socket)
    })
  })
}

/** TLS has no names for addresses. */
function servername(host: string): string {
  return /^[\d.]+$|:/.test(host) ? '' : host
}

async function httpConnect(socket: Socket, proxy: ForwardProxy, { address, port }: TunnelTarget): Promise<void> {
  const authority = `${address.includes(':') ? `[${address}]` : address}:${port}`
  const { credentials } = proxy
  const basic = credentials === undefined ? '' : Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
  const head = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`, ...(basic === '' ? [] : [`Proxy-Authorization: Basic ${basic}`])]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  const answer = await readHead(socket, proxy)
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1] ?? 0)
  if (status >= 200 && status < 300) return
  if (status === 0) throw new TunnelError('PROXY_FAILED', proxy, 'its answer to CONNECT is no HTTP')
  if (status === 407) throw authError(proxy, 'status 407')
  throw new TunnelError(status < 500 ? 'PROXY_REFUSED' : 'PROXY_UNREACHED', proxy, `does not connect to ${authority} (status ${status})`)
}

function authError(proxy: ForwardProxy, how: string): TunnelError {
  const what =
    proxy.credentials === undefined ? 'wants a user and a password, and none are configured' : 'does not take the user and password'
  return new TunnelError('PROXY_AUTH', proxy, `${what} (${how}); correct its URL in fetch.proxies or politeness.rules`)
}

async function socksHandshake(socket: Socket, proxy: ForwardProxy, { address, port }: TunnelTarget): Promise<void> {
  const { credentials } = proxy
  socket.write(greeting(credentials !== undefined))
  const [version, method] = await readExactly(socket, 2)
  if (version !== 5) throw new TunnelError('PROXY_FAILED', proxy, 'its answer is not SOCKS 5')
  if (method === METHOD.password && credentials !== undefined) {
    socket.write(passwordMessage(credentials))
    const [, status] = await readExactly(socket, 2)
    if (status !== 0) throw authError(proxy, `SOCKS status ${status}`)
  } else if (method === METHOD.refused || method === METHOD.password) {
    throw authError(proxy, 'no method of SOCKS in common')
  } else if (method !== METHOD.none)
    throw new TunnelError('PROXY_FAILED', proxy, `it chose the SOCKS method ${method}, which was not offered`)
  socket.write(connectMessage(address, port))
  const reply = await readExactly(socket, 5)
  const meaning = meaningOf(reply[1] ?? 0xff)
  if (meaning.kind === 'unreachable') throw new TunnelError('ECONNREFUSED', proxy, `can not reach ${address}:${port} (${meaning.text})`)
  if (meaning.kind === 'refused') throw new TunnelError('PROXY_REFUSED', proxy, `does not connect to ${address}:${port} (${meaning.text})`)
  if (meaning.kind === 'failed') throw new TunnelError('PROXY_UNREACHED', proxy, `does not connect to ${address}:${port} (${meaning.text})`)
  const rest = reply[0] === 5 ? restOfReply(reply) : undefined
  if (rest === undefined) throw new TunnelError('PROXY_FAILED', proxy, 'its SOCKS reply can not be read')
  await readExactly(socket, rest)
}

/** Up to the empty line. Nothing may follow: whoever is behind the tunnel was not asked for anything yet. */
async function readHead(socket: Socket, proxy: ForwardProxy): Promise<string> {
  let head = Buffer.alloc(0)
  for (;;) {
    head = Buffer.concat([head, await readSome(socket)])
    const end = head.indexOf('\r\n\r\n')
    if (end !== -1) {
      if (head.length > end + 4) throw new TunnelError('PROXY_FAILED', proxy, 'its answer to CONNECT has a body, as if it were the site')
      return head.subarray(0, end).toString('latin1')
    }
    if (head.length > MAX_HEAD_BYTES)
      throw new TunnelError('PROXY_FAILED', proxy, `its answer to CONNECT is longer than ${MAX_HEAD_BYTES} bytes`)
  }
}

async function readExactly(socket: Socket, length: number): Promise<Buffer> {
  return readSome(socket, length)
}

/** What is there, or exactly so many bytes. Rejects where the connection ends before. */
function readSome(socket: Socket, length?: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const take = (): void => {
      const bytes = socket.read(length) as Buffer | null
      if (bytes === null) return
      const isShort = length !== undefined && bytes.length < length
      done(() => (isShort ? reject(new Error('it ended the connection')) : resolve(bytes)))
    }
    const done = (finish: () => void): void => {
      socket.off('readable', take)
      socket.off('close', onClose)
      socket.off('end', onClose)
      finish()
    }
    const onClose = (): void => done(() => reject(socket.errored ?? new Error('it ended the connection')))
    socket.on('readable', take)
    socket.once('close', onClose)
    socket.once('end', onClose)
    take()
  })
}
