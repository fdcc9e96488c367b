import { Agent, fetch } from 'undici'
import type { TlsMaterial } from '../kernel/tls-fault.ts'

/**
 * The platform's `fetch` with certificates of one's own, which that can't take. For what belongs to the installation (a schema registry):
 * no address guard, no pace.
 */
export function installationFetch(tls: TlsMaterial): typeof globalThis.fetch {
  const dispatcher = new Agent({ connect: { ...tls } })
  return ((url: string, init: Parameters<typeof fetch>[1]) => fetch(url, { ...init, dispatcher })) as unknown as typeof globalThis.fetch
}
