import type { Config } from '../../config/options.ts'
import { createAddressPolicy } from '../../fetch/address-policy.ts'
import type { HttpClientOptions } from '../../fetch/http-client.ts'
import type { HttpLimits } from '../../fetch/http-exchange.ts'
import { createHostLookup } from '../../fetch/resolve.ts'
import { readCertificates } from '../../machine/tls-files.ts'
import { proxyRules } from './proxy-rules.ts'

/**
 * How sites are asked, by whoever asks one: through the same proxies, with the same trust. A client without these would be seen where no
 * other is. Errors: CONFIG_INVALID, CONFIG_UNREADABLE.
 */
export async function httpOptions(
  config: Config,
): Promise<Required<Pick<HttpClientOptions, 'resolve' | 'allowAddresses' | 'http2' | 'ca' | 'proxiesOf'>>> {
  const caFile = config['fetch.tls.ca']
  return {
    resolve: config['fetch.resolve'],
    allowAddresses: config['fetch.allowAddresses'],
    http2: config['fetch.http2'],
    ca: caFile === undefined ? undefined : readCertificates('fetch.tls.ca', caFile),
    proxiesOf: proxyRules(config),
  }
}

/** Deadlines and caps of one request. */
export function httpLimits(config: Config): HttpLimits {
  return {
    connectMs: config['fetch.timeouts.connect'],
    headersMs: config['fetch.timeouts.headers'],
    idleMs: config['fetch.timeouts.idle'],
    totalMs: config['fetch.timeouts.total'],
    maxBodyBytes: config['fetch.maxBodyBytes'],
  }
}

/**
 * What fetch reads out of its options when it starts, read beforehand: addresses, proxies and certificates are text to the configuration.
 * Errors: CONFIG_INVALID, CONFIG_UNREADABLE, those with which fetch would not start.
 */
export async function checkFetchConfig(config: Config): Promise<void> {
  const { allowAddresses, resolve } = await httpOptions(config)
  createAddressPolicy(allowAddresses)
  createHostLookup(resolve)
}
