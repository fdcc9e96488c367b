import { createRegistryClient, type FetchJson, type RegistryPort } from '../message/registry.ts'

const TIMEOUT_MS = 10_000

/** The registry of the configuration; credentials in its URL are sent as basic authentication, and nowhere else. */
export function registryOf(configured: string | undefined): RegistryPort | undefined {
  if (configured === undefined) return undefined
  const url = new URL(configured)
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  const headers: Record<string, string> =
    url.username === '' ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
  url.username = ''
  url.password = ''
  return createRegistryClient({ url: url.href, fetchJson, headers })
}

/** A registry is part of the installation, not a site: no address guard, no pace, the platform's own fetch. */
const fetchJson: FetchJson = async (url, init) => {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
  const text = await response.text()
  // A gateway before the registry answers errors in HTML: their status says enough.
  return { status: response.status, body: response.ok || isJson(response) ? parsed(text) : undefined }
}

function isJson({ headers }: Response): boolean {
  return /\bjson\b/.test(headers.get('content-type') ?? '')
}

function parsed(text: string): unknown {
  return text === '' ? undefined : JSON.parse(text)
}
