import type { PolitenessKey } from '../kernel/brand.ts'
import { bareHost, registrableDomainOfHost } from './registrable-domain.ts'

/** What counts as one site for pacing. `ip` queues by host as well; the address joins when it is resolved. */
export type PolitenessKeyKind = 'host' | 'domain' | 'ip'

/** Shape: lower-case ASCII host or registrable domain, without port and without a dot at the end. */
export function politenessKey(url: URL, kind: PolitenessKeyKind): PolitenessKey {
  return (kind === 'domain' ? registrableDomainOfHost(url.hostname) : bareHost(url.hostname)) as PolitenessKey
}
