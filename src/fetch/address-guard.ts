import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import { buildConnector } from 'undici'
import type { AddressPolicy } from './address-policy.ts'
import type { LookupAll } from './resolve.ts'

/** A host that may not be connected to, with the address that decided. */
export class AddressRefused extends Error {
  readonly code = 'ADDRESS_REFUSED'

  constructor(hostname: string, address: string, range: string) {
    super(
      address === hostname
        ? `${address} is not public (${range}); allow it with fetch.allowAddresses`
        : `${hostname} is at ${address}, which is not public (${range}); allow it with fetch.allowAddresses`,
    )
  }
}

export interface AddressGuardOptions {
  readonly policy: AddressPolicy
  /** Where hosts are. What it gives is judged like any other address. */
  readonly lookup: LookupAll
  readonly connectMs: number
  /** Called for each connection that stands. */
  readonly onConnected: (address: string) => void
}

/** Node gives each of several addresses 250 ms by itself, too little for the other side of the world. */
const ATTEMPT_MS = 2_000

/**
 * A connector for undici that every connection goes through, whatever asked for it: a page, a hop of a redirect, robots.txt.
 *
 * The check sits in the look-up of the connection itself, over all addresses of the answer, so that the address which was judged is
 * the one that is connected to: a name that answers otherwise the second time gains nothing. A host that is an address is never
 * looked up, and is judged before. Host header and TLS name stay those of the URL.
 */
export function createAddressGuard(options: AddressGuardOptions): buildConnector.connector {
  const { policy, lookup, connectMs, onConnected } = options

  const guardedLookup = (hostname: string, asked: LookupOptions, callback: LookupCallback): void => {
    const refuse = (error: Error): void => callback(error, asked.all === true ? [] : '')
    lookup(hostname, (error, addresses) => {
      if (error !== null) return refuse(error)
      for (const { address } of addresses) {
        const range = policy(address)
        if (range !== undefined) return refuse(new AddressRefused(hostname, address, range))
      }
      if (asked.all === true) return callback(null, addresses)
      const [first] = addresses
      callback(null, first?.address ?? '', first?.family ?? 0)
    })
  }

  const connect = buildConnector({
    timeout: connectMs,
    lookup: guardedLookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.min(ATTEMPT_MS, connectMs),
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
