import { createAddressPolicy } from '../../fetch/address-policy.ts'
import type { HttpExchange } from '../../fetch/http-exchange.ts'
import type { Observer } from '../../kernel/observe.ts'

/** Strangers should be able to see who asks; on private addresses nobody minds. Said once. */
export function warnOnPublic(exchange: HttpExchange, observer: Observer): HttpExchange {
  const isPublic = createAddressPolicy([])
  let warned = false
  return {
    async request(request) {
      const result = await exchange.request(request)
      const address = result.kind === 'response' ? result.remoteAddress : null
      if (!warned && address !== null && isPublic(address) === undefined) {
        warned = true
        observer.emit('UserAgentMissing')
      }
      return result
    },
    proxiesBackInMs: (url) => exchange.proxiesBackInMs(url),
  }
}
