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

/** An address is good for so long: a site that moves is paced by its old one for a minute. */
const KEPT_MS = 60_000
const MAX_HOSTS = 10_000

/**
 * The address by which a site is paced where `politeness.key` is `ip`: the first that its name has. The request then goes to this one
 * and no other (`HttpRequest.address`), through the address guard as always. Shape: without brackets; a name without an address is the
 * failure that its request would be. Failures are not remembered.
 */
export function createAddressBook(options: AddressBookOptions): AddressOf {
  const { clock } = options
  const lookup = createHostLookup(options.resolve, options.lookup)
  const known = new Map<string, { readonly address: string; readonly untilMono: number }>()

  return async (url) => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0) return host
    const found = known.get(host)
    const startedMono = clock.mono()
    if (found !== undefined && found.untilMono > startedMono) return found.address
    try {
      const address = await firstAddress(lookup, host)
      known.delete(host)
      known.set(host, { address, untilMono: clock.mono() + KEPT_MS })
      const oldest = known.size > MAX_HOSTS ? known.keys().next().value : undefined
      if (oldest !== undefined) known.delete(oldest)
      return address
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
