import type { Config } from '../config/options.ts'
import { createAddressPolicy } from '../fetch/address-policy.ts'
import { createHostLookup } from '../fetch/resolve.ts'
import { proxyRules } from './proxy-rules.ts'
import { readCertificates } from './read-certificates.ts'

/**
 * What fetch reads out of its options when it starts, read beforehand: addresses, proxies and certificates are text to the configuration.
 * Errors: CONFIG_INVALID, CONFIG_UNREADABLE, those with which fetch would not start.
 */
export async function checkFetchConfig(config: Config): Promise<void> {
  createAddressPolicy(config['fetch.allowAddresses'])
  createHostLookup(config['fetch.resolve'])
  proxyRules(config)
  const caFile = config['fetch.tls.ca']
  if (caFile !== undefined) await readCertificates(caFile)
}
