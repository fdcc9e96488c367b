import { subscribe } from 'node:diagnostics_channel'

/**
 * When a request really goes on the wire. undici tells it on its diagnostics channels: the request is made within the call that asks for
 * it, which is how the two are brought together, and its headers are written once a connection stands.
 */
const waiting = new WeakMap<object, () => void>()
let asking: (() => void) | undefined
let isSubscribed = false

/** Runs `send`, which must make its request before it returns, and calls `onSent` when that is written. */
export function notingSend<T>(onSent: () => void, send: () => T): T {
  if (!isSubscribed) {
    isSubscribed = true
    subscribe('undici:request:create', (message) => {
      if (asking !== undefined) waiting.set((message as { request: object }).request, asking)
    })
    subscribe('undici:client:sendHeaders', (message) => {
      const { request } = message as { request: object }
      waiting.get(request)?.()
      waiting.delete(request)
    })
  }
  asking = onSent
  try {
    return send()
  } finally {
    asking = undefined
  }
}
