import { MillraceError } from '../kernel/errors.ts'
import { percentDecoded } from '../kernel/percent-decoded.ts'

/** A proxy as an operator names it. */
export interface ForwardProxy {
  readonly scheme: 'http' | 'https' | 'socks5'
  readonly host: string
  readonly port: number
  /** Decoded; undefined: none are sent. */
  readonly credentials: { readonly username: string; readonly password: string } | undefined
  /** Scheme, host and port: for people, without credentials. */
  readonly label: string
  /** What tells two proxies apart, credentials included: never printed. */
  readonly id: string
}

const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1_080 } as const

/** Shape: `scheme://user:password@host:port`, user and password percent-encoded. Errors: CONFIG_INVALID, without the credentials. */
export function parseProxyUrl(text: string): ForwardProxy {
  if (!URL.canParse(text)) throw invalid(hidden(text), 'is no URL')
  const url = new URL(text)
  const scheme = url.protocol.slice(0, -1)
  if (scheme !== 'http' && scheme !== 'https' && scheme !== 'socks5') throw invalid(hidden(text), `has the scheme ${scheme}`)
  // The scheme socks5 is not special to URL parsers: host in brackets and lower case are ours to see to.
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === '') throw invalid(hidden(text), 'names no host')
  if ((url.pathname !== '' && url.pathname !== '/') || url.search !== '' || url.hash !== '') {
    throw invalid(hidden(text), 'has a path, and a proxy has none')
  }
  const port = url.port === '' ? DEFAULT_PORTS[scheme] : Number(url.port)
  const label = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
  const credentials =
    url.username === '' && url.password === ''
      ? undefined
      : { username: decoded(url.username, label), password: decoded(url.password, label) }
  if (scheme === 'socks5' && credentials !== undefined) {
    const lengths = [credentials.username, credentials.password].map((part) => Buffer.byteLength(part))
    if (lengths.some((length) => length === 0 || length > 255)) throw invalid(label, 'needs a user and a password of 1 to 255 bytes each')
  }
  return { scheme, host, port, credentials, label, id: `${label} ${credentials?.username ?? ''}:${credentials?.password ?? ''}` }
}

function decoded(text: string, label: string): string {
  const plain = percentDecoded(text)
  if (plain === undefined) throw invalid(label, 'has a user or password whose percent-encoding is broken')
  return plain
}

function hidden(text: string): string {
  return JSON.stringify(text.replace(/^([^/@]*:\/\/)?.*@/, '$1***@'))
}

function invalid(shown: string, what: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `proxies: ${shown} ${what}; write http://, https:// or socks5://[user:password@]host:port`)
}
