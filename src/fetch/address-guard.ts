import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import type { SecureContext } from 'node:tls'
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
  /** Whom to trust beside the usual authorities. */
  readonly tls?: { readonly secureContext: SecureContext } | undefined
  readonly allowH2: boolean
  /** Called for each connection that stands. */
  readonly onConnected: (address: string, socket: object) => void
}

/** Node gives each of several addresses 250 ms by itself, too little for the other side of the world. */
const ATTEMPT_MS = 2_000

type Checking = Pick<AddressGuardOptions, 'policy' | 'lookup'>

/**
 * A connector for undici that every connection goes through, whatever asked for it: a page, a hop of a redirect, robots.txt.
 *
 * The check sits in the look-up of the connection itself, over all addresses of the answer, so that the address which was judged is
 * the one that is connected to: a name that answers otherwise the second time gains nothing. A host that is an address is never
 * looked up, and is judged before. Host header and TLS name stay those of the URL.
 */
export function createAddressGuard(options: AddressGuardOptions): buildConnector.connector {
  const { connectMs, onConnected, tls, allowH2 } = options

  const guardedLookup = (hostname: string, asked: LookupOptions, callback: LookupCallback): void => {
    lookupChecked(hostname, options, (error, addresses) => {
      if (error !== null) return callback(error, asked.all === true ? [] : '')
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
    ...tls,
    allowH2,
  } as buildConnector.BuildOptions)
  return (opts, callback) => {
    const hostname = opts.hostname.replace(/^\[|\]$/g, '')
    const refused = refusedLiteral(hostname, options)
    if (refused !== undefined) {
      // Never synchronously: undici is not ready for an answer before it has returned.
      queueMicrotask(() => callback(refused, null))
      return
    }
    connect({ ...opts, hostname }, (...result) => {
      const [error, socket] = result
      if (error === null && socket?.remoteAddress !== undefined) onConnected(socket.remoteAddress, socket)
      callback(...result)
    })
  }
}

/**
 * The same for whoever connects by other means: addresses of a host, or of a literal, all of them checked. Errors: AddressRefused; those of
 * the look-up.
 */
export function resolveChecked(hostname: string, checking: Checking): Promise<readonly LookupAddress[]> {
  const family = isIP(hostname)
  if (family !== 0) {
    const refused = refusedLiteral(hostname, checking)
    return refused === undefined ? Promise.resolve([{ address: hostname, family }]) : Promise.reject(refused)
  }
  return new Promise((resolve, reject) => {
    lookupChecked(hostname, checking, (error, addresses) => (error === null ? resolve(addresses) : reject(error)))
  })
}

function refusedLiteral(hostname: string, { policy }: Checking): AddressRefused | undefined {
  const range = isIP(hostname) === 0 ? undefined : policy(hostname)
  return range === undefined ? undefined : new AddressRefused(hostname, hostname, range)
}

function lookupChecked(
  hostname: string,
  { policy, lookup }: Checking,
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
): void {
  lookup(hostname, (error, addresses) => {
    if (error !== null) return callback(error, [])
    for (const { address } of addresses) {
      const range = policy(address)
      if (range !== undefined) return callback(new AddressRefused(hostname, address, range), [])
    }
    callback(null, addresses)
  })
}

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void
