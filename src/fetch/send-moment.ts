import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'

/** What is to be told of one request as it leaves. */
export interface Leaving {
  /** `socket`: the connection that it leaves by. */
  readonly onSent: (socket: object) => void
  readonly beforeSent?: () => Promise<void>
}

/**
 * When a request really goes on the wire. undici tells it on its diagnostics channels: the request is made within the call that asks for
 * it, which is how the two are brought together, and its headers are written once a connection stands.
 */
const waiting = new WeakMap<object, Leaving>()
let asking: Leaving | undefined
let isSubscribed = false

/** Runs `send`, which must make its request before it returns, and calls `onSent` of the request when that is written. */
export function notingSend<T>(leaving: Leaving, send: () => T): T {
  if (!isSubscribed) {
    isSubscribed = true
    subscribe('undici:request:create', (message) => {
      if (asking !== undefined) waiting.set((message as { request: object }).request, asking)
    })
    subscribe('undici:client:sendHeaders', (message) => {
      const { request, socket } = message as { request: object; socket: object }
      waiting.get(request)?.onSent(socket)
      waiting.delete(request)
    })
  }
  asking = leaving
  try {
    return send()
  } finally {
    asking = undefined
  }
}

/**
 * A connector whose connection, once it stands, is held until the request that it was made for may leave (`beforeSent`): undici asks for a
 * connection within the call that makes the request. One that it makes again later, since the former broke, is not held.
 */
export function connectingInTurn(connect: buildConnector.connector, onReady: (socket: object) => void): buildConnector.connector {
  return (options, callback) => {
    const beforeSent = asking?.beforeSent
    connect(options, (...result) => {
      const [error, socket] = result
      if (error !== null) return callback(error, null)
      const ready = (): void => {
        onReady(socket)
        if (socket.destroyed) callback(closedMeanwhile(), null)
        else if (speaksFirst(socket)) {
          socket.destroy()
          callback(unasked(), null)
        } else callback(null, socket)
      }
      if (beforeSent === undefined) return ready()
      beforeSent().then(ready, (reason: Error) => {
        socket.destroy()
        callback(reason, null)
      })
    })
  }
}

/**
 * A server that is no HTTP greets whoever connects. undici, given bytes before its request is written, closes the connection and makes
 * another one, and so on for ever: no deadline ends that. In HTTP/2 servers do speak first.
 */
function speaksFirst(socket: Socket | TLSSocket): boolean {
  return socket.readableLength > 0 && !('alpnProtocol' in socket && socket.alpnProtocol === 'h2')
}

function unasked(): Error {
  return Object.assign(new Error('it sent something before it was asked'), { code: 'HPE_UNEXPECTED_CONTENT' })
}

function closedMeanwhile(): Error {
  return Object.assign(new Error('the connection was closed before anything was sent'), { code: 'ECONNRESET' })
}
