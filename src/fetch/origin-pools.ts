import { isIP } from 'node:net'
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import { Pool } from 'undici'
import type { Clock } from '../kernel/clock.ts'
import { createAddressGuard } from './address-guard.ts'
import type { AddressPolicy } from './address-policy.ts'
import { createProxyConnector } from './proxy-connector.ts'
import type { ForwardProxy } from './proxy-url.ts'
import type { LookupAll } from './resolve.ts'
import { connectingInTurn } from './send-moment.ts'

export interface OriginPoolsOptions {
  readonly policy: AddressPolicy
  readonly lookup: LookupAll
  readonly maxOrigins: number
  readonly http2: boolean
  /** Certificates, PEM, that are trusted beside the usual ones. */
  readonly ca?: string | undefined
  readonly clock: Clock
}

/** One of several to an origin: they may lead to different addresses. */
export interface Connection {
  readonly address: string
  /** When it stood, and its first request could leave. */
  readyMono: number
}

/** Connections to one origin, by one way. */
export interface OriginPool {
  readonly pool: Pool
  inFlight: number
  /** What is known of its connections. */
  readonly connections: WeakMap<object, Connection>
  /** Until then no connection is used a second time. */
  singleUseUntilMono: number
}

/** An idle connection is kept for this long, even where the server offers more. */
const KEEP_ALIVE_MS = 10_000
/** Header fields together; more is an attack. */
const MAX_HEADER_BYTES = 262_144

/** The guard still judges it. */
function pinnedLookup(address: string): LookupAll {
  return (_, callback) => callback(null, [{ address, family: isIP(address) }])
}

/** A pool of connections per origin and way to it (direct, or through a proxy), bounded: the one that was idle for longest makes room. */
export class OriginPools {
  readonly #options: OriginPoolsOptions
  readonly #tls: { readonly secureContext: SecureContext } | undefined
  readonly #pools = new Map<string, OriginPool>()

  constructor(options: OriginPoolsOptions) {
    this.#options = options
    // Made once: the usual authorities are more than a hundred certificates.
    this.#tls = options.ca === undefined ? undefined : { secureContext: createSecureContext({ ca: [...rootCertificates, options.ca] }) }
  }

  /** `pinned`: the only address that is connected to, or that a proxy is sent to. */
  of(origin: string, connectMs: number, proxy: ForwardProxy | undefined, pinned?: string): OriginPool {
    const key = `${origin} ${connectMs} ${pinned ?? ''} ${proxy?.id ?? ''}`
    const known = this.#pools.get(key)
    if (known !== undefined) {
      this.#pools.delete(key)
      this.#pools.set(key, known)
      return known
    }
    this.#makeRoom()
    const { policy, lookup, http2, clock } = this.#options
    const connections = new WeakMap<object, Connection>()
    const guard = {
      policy,
      lookup: pinned === undefined ? lookup : pinnedLookup(pinned),
      connectMs,
      tls: this.#tls,
      allowH2: http2,
      onConnected: (address: string, socket: object) => connections.set(socket, { address, readyMono: clock.mono() }),
    }
    const connect = proxy === undefined ? createAddressGuard(guard) : createProxyConnector({ ...guard, proxy, clock })
    const onReady = (socket: object): void => {
      const connection = connections.get(socket)
      if (connection !== undefined) connection.readyMono = clock.mono()
    }
    const pool = new Pool(origin, {
      connect: connectingInTurn(connect, onReady),
      allowH2: http2,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    const created: OriginPool = { pool, inFlight: 0, connections, singleUseUntilMono: 0 }
    this.#pools.set(key, created)
    return created
  }

  /** Open requests end as failures. */
  async close(): Promise<void> {
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map(({ pool }) => pool.destroy()))
  }

  /** The map is in order of use; pools with requests in flight stay, so the bound gives way to them. */
  #makeRoom(): void {
    for (const [key, { pool, inFlight }] of this.#pools) {
      if (this.#pools.size < this.#options.maxOrigins) return
      if (inFlight > 0) continue
      this.#pools.delete(key)
      // Nothing is in flight: destroying it ends idle sockets alone.
      void pool.destroy()
    }
  }
}
