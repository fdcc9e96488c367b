import type { Config } from '../../config/options.ts'
import { parseRegistryUrl } from '../../config/registry-url.ts'
import { abortAfter } from '../../kernel/clock.ts'
import { causesOf, errorText, MillraceError } from '../../kernel/errors.ts'
import { openedOnce } from '../../kernel/opened-once.ts'
import type { Outage } from '../../kernel/outage.ts'
import { type TlsMaterial, tlsFault } from '../../kernel/tls-fault.ts'
import { createRegistryClient, type FetchJson, type RegistryPort } from '../../message/registry.ts'
import { tlsNames, tlsOf } from './tls-config.ts'

const TIMEOUT_MS = 10_000

/**
 * The registry of the configuration; credentials in its URL are sent as basic authentication, and nowhere else. Errors: CONFIG_INVALID,
 * CONFIG_UNREADABLE.
 */
export function registryOf(config: Config): RegistryPort | undefined {
  const configured = config['registry.url']
  if (configured === undefined) return undefined
  const address = parseRegistryUrl(configured)
  if (typeof address === 'string') throw new MillraceError('CONFIG_INVALID', address)
  const { url, credentials } = address
  const basic = credentials && Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')
  return createRegistryClient({
    url,
    fetchJson: jsonOver(tlsOf(config, 'registry')),
    headers: basic === undefined ? {} : { authorization: `Basic ${basic}` },
  })
}

/** The same, and what readers ask it, who repeat that until it answers, tells whether it is away. */
export function watchedRegistry(registry: RegistryPort, outage: Pick<Outage, 'watch'>): RegistryPort {
  return { ...registry, schemaById: (id) => outage.watch(() => registry.schemaById(id)) }
}

/**
 * A registry is part of the installation, not a site: no address guard, no pace, the platform's own fetch where it needs no certificates.
 * Errors: what the network does; for an answer that is no registry's.
 */
function jsonOver(tls: TlsMaterial): FetchJson {
  // Only where it is needed: a command has its answer sooner.
  const own = openedOnce(async () => (await import('../../fetch/installation-fetch.ts')).installationFetch(tls))
  const hasFiles = Object.keys(tls).length > 0
  return async (url, init) => {
    const response = await answer(hasFiles ? await own() : fetch, url, init, tls)
    const text = await response.text()
    // A gateway before the registry answers errors in HTML: their status says enough.
    return { status: response.status, body: response.ok || isJson(response) ? parsed(text, response) : undefined }
  }
}

/** `fetch` says of whatever went wrong that it failed; the rest is below. */
async function answer(ask: typeof fetch, url: string, init: Parameters<FetchJson>[1], tls: TlsMaterial): Promise<Response> {
  try {
    return await ask(url, { ...init, signal: abortAfter(TIMEOUT_MS) })
  } catch (cause) {
    const fault = tlsFault(cause, tls, tlsNames('registry'))
    throw new Error(fault ?? errorText([...causesOf(cause)].at(-1)), { cause })
  }
}

function isJson({ headers }: Response): boolean {
  return /\bjson\b/.test(headers.get('content-type') ?? '')
}

function parsed(text: string, { status, headers }: Response): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (cause) {
    const type = headers.get('content-type') ?? 'no type'
    throw new Error(`status ${status} with ${type} in place of JSON: is this the address of a schema registry?`, { cause })
  }
}
