import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns'
import { isIP } from 'node:net'
import { buildConnector } from 'undici'
import { compileHostGlob } from '../url/glob.ts'
import type { AddressPolicy } from './address-policy.ts'

/** A host that may not be connected to, with the address that decided. */
export class AddressRefused extends Error {
  readonly code = 'ADDRESS_REFUSED'

  constructor(hostname: string, address: string, range: string) {
    super(address === hostname ? `${address} is not public (${range})` : `${hostname} is at ${address}, which is not public (${range})`)
  }
}

export interface AddressGuardOptions {
  readonly policy: AddressPolicy
  /** Hosts to addresses, like curl --resolve; the first pattern that matches counts. The addresses are judged like any other. */
  readonly resolve: Readonly<Record<string, string>>
  readonly connectMs: number
  /** Called for each connection that stands. */
  readonly onConnected: (address: string) => void
  /** For tests; the system's resolver where not given. */
  readonly lookup?: LookupAll
}

export type LookupAll = (hostname: string, callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void) => void

/**
 * A connector for undici that every connection goes through, whatever asked for it: a page, a hop of a redirect, robots.txt.
 *
 * The check sits in the look-up of the connection itself, over all addresses of the answer, so that the address which was judged is
 * the one that is connected to: a name that answers otherwise the second time gains nothing. A host that is an address is never
 * looked up, and is judged before. Host header and TLS name stay those of the URL.
 */
export function createAddressGuard(options: AddressGuardOptions): buildConnector.connector {
  const { policy, connectMs, onConnected } = options
  const overrides = Object.entries(options.resolve).map(([pattern, address]) => ({ matches: compileHostGlob(pattern), address }))
  const lookupAll: LookupAll = options.lookup ?? ((hostname, callback) => systemLookup(hostname, { all: true, verbatim: true }, callback))

  const resolveHost: LookupAll = (hostname, callback) => {
    const override = overrides.find(({ matches }) => matches(hostname))?.address
    if (override === undefined) lookupAll(hostname, callback)
    else callback(null, [{ address: override, family: isIP(override) }])
  }

  const guardedLookup = (hostname: string, asked: LookupOptions, callback: LookupCallback): void => {
    resolveHost(hostname, (error, addresses) => {
      if (error !== null) return callback(error, asked.all === true ? [] : '')
      for (const { address } of addresses) {
        const range = policy(address)
        if (range !== undefined) return callback(new AddressRefused(hostname, address, range), asked.all === true ? [] : '')
      }
      const first = addresses[0]
      if (first === undefined) return callback(Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' }), '')
      if (asked.all === true) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }

  const connect = buildConnector({
    timeout: connectMs,
    lookup: guardedLookup,
    autoSelectFamily: true,
    allowH2: false,
  } as buildConnector.BuildOptions)
  return (opts, callback) => {
    const hostname = opts.hostname.replace(/^\[|\]$/g, '')
    const range = isIP(hostname) === 0 ? undefined : policy(hostname)
    if (range !== undefined) {
      // Never synchronously: undici is not ready for an answer before it has returned.
      queueMicrotask(() => callback(new AddressRefused(hostname, hostname, range), null))
      return
    }
    connect({ ...opts, hostname }, (...result) => {
      const [error, socket] = result
      if (error === null && socket?.remoteAddress !== undefined) onConnected(socket.remoteAddress)
      callback(...result)
    })
  }
}

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void
