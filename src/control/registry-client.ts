import { parseRegistryUrl } from '../config/registry-url.ts'
import { MillraceError } from '../kernel/errors.ts'
import { createRegistryClient, type FetchJson, type RegistryPort } from '../message/registry.ts'

const TIMEOUT_MS = 10_000

/** The registry of the configuration; credentials in its URL are sent as basic authentication, and nowhere else. Errors: CONFIG_INVALID. */
export function registryOf(configured: string | undefined): RegistryPort | undefined {
  if (configured === undefined) return undefined
  const address = parseRegistryUrl(configured)
  if (typeof address === 'string') throw new MillraceError('CONFIG_INVALID', address)
  const { url, credentials } = address
  const basic = credentials && Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')
  return createRegistryClient({ url, fetchJson, headers: basic === undefined ? {} : { authorization: `Basic ${basic}` } })
}

/** A registry is part of the installation, not a site: no address guard, no pace, the platform's own fetch. Errors: what the network does; for an answer that is no registry's. */
const fetchJson: FetchJson = async (url, init) => {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
  const text = await response.text()
  // A gateway before the registry answers errors in HTML: their status says enough.
  return { status: response.status, body: response.ok || isJson(response) ? parsed(text, response) : undefined }
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
