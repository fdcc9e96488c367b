import { isIP } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import { failureReason } from './failure-reason.ts'
import type { HttpFailure } from './http-exchange.ts'
import { createHostLookup, type LookupAll } from './resolve.ts'

export interface AddressBookOptions {
  /** Hosts to addresses, like curl --resolve. */
  readonly resolve: Readonly<Record<string, string>>
  /** Where hosts are; the system's own look-up where not given. */
  readonly lookup?: LookupAll
  readonly clock: Clock
}

export type AddressOf = (url: URL) => Promise<string | HttpFailure>

/**
 * The address by which a site is paced where `politeness.key` is `ip`: the first that its name has. The request then goes to this one
 * and no other (`HttpRequest.address`), through the address guard as always. Shape: without brackets; a name without an address is the
 * failure that its request would be. Nothing is remembered here: `lookup` does that.
 */
export function createAddressBook(options: AddressBookOptions): AddressOf {
  const { clock } = options
  const lookup = createHostLookup(options.resolve, options.lookup)

  return async (url) => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0) return host
    const startedMono = clock.mono()
    try {
      return await firstAddress(lookup, host)
    } catch (error) {
      return { kind: 'failure', ...failureReason(error), totalMs: clock.mono() - startedMono }
    }
  }
}

function firstAddress(lookup: LookupAll, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    lookup(host, (error, addresses) => {
      const [first] = addresses
      if (error === null && first !== undefined) resolve(first.address)
      else reject(error ?? Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' }))
    })
  })
}
