import { buildConnector } from 'undici'
import type { Clock } from '../kernel/clock.ts'
import { type AddressGuardOptions, resolveChecked } from './address-guard.ts'
import { openTunnel, TunnelError } from './proxy-tunnel.ts'
import type { ForwardProxy } from './proxy-url.ts'

export interface ProxyConnectorOptions extends AddressGuardOptions {
  readonly proxy: ForwardProxy
  readonly clock: Clock
}

/**
 * A connector for undici through one proxy. The guard holds as without: we resolve the host, refuse it where any address is not public,
 * and let the proxy connect to an address that was checked, by CONNECT (http targets too) or by SOCKS. The proxy learns no name it
 * could resolve otherwise; TLS and the Host header go through the tunnel with the name of the URL, as ever.
 */
export function createProxyConnector(options: ProxyConnectorOptions): buildConnector.connector {
  const { proxy, connectMs, onConnected, clock, tls, allowH2 } = options
  const upgrade = buildConnector({ timeout: connectMs, ...tls, allowH2 } as buildConnector.BuildOptions)

  const open = async ({ hostname, port, protocol }: buildConnector.Options) => {
    const addresses = await resolveChecked(hostname.replace(/^\[|\]$/g, ''), options)
    // Every proxy has IPv4, not every one IPv6.
    const chosen = addresses.find(({ family }) => family === 4) ?? addresses[0]
    const address = chosen?.address ?? ''
    const late = new AbortController()
    const disarm = clock.timer(connectMs, () => late.abort(new Error(`no connection after ${connectMs} ms`)))
    try {
      const target = { address, port: Number(port === '' || port === undefined ? DEFAULT_PORTS[protocol] : port) }
      const socket = await openTunnel(proxy, target, {
        signal: late.signal,
        ...(tls === undefined ? {} : { secureContext: tls.secureContext }),
      })
      return { socket, address }
    } catch (error) {
      if (error instanceof TunnelError || !late.signal.aborted) throw error
      throw new TunnelError('PROXY_TIMEOUT', proxy, `no connection to ${address} after ${connectMs} ms`, error)
    } finally {
      disarm()
    }
  }

  return (opts, callback) => {
    open(opts).then(
      ({ socket, address }) => {
        const done: buildConnector.Callback = (...result) => {
          const [error, connected] = result
          if (error === null) onConnected(address, connected)
          callback(...result)
        }
        if (opts.protocol === 'https:') upgrade({ ...opts, httpSocket: socket }, done)
        else done(null, socket)
      },
      (error: Error) => callback(error, null),
    )
  }
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }
