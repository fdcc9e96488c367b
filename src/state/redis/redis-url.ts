import { MillraceError } from '../../kernel/errors.ts'
import { percentDecoded } from '../../kernel/percent-decoded.ts'
import type { TlsNames } from '../../kernel/tls-fault.ts'
import type { TlsFiles } from '../../machine/tls-files.ts'

/** Where a Redis is: one server, or the sentinels that know which server leads. */
export interface RedisAddress {
  /** The URL without user, password and query, for people. */
  readonly location: string
  readonly username?: string
  readonly password?: string
  readonly db: number
  readonly tls: boolean
  /** Named in the query. */
  readonly files: TlsFiles
  readonly target:
    | { readonly kind: 'server'; readonly host: string; readonly port: number }
    | {
        readonly kind: 'sentinel'
        readonly name: string
        readonly sentinels: readonly { readonly host: string; readonly port: number }[]
        readonly sentinelPassword?: string
      }
}

/** The query is taken off first: an `@` in it (a passphrase, a path) ends no password. */
const FORM = /^(redis|rediss|redis\+sentinel|rediss\+sentinel):\/\/(?:([^?#]*)@)?([^@/?#]+)(\/[^@?#]*)?(?:\?([^#]*))?$/i

const TLS_NAMES = ['ca', 'cert', 'key', 'passphrase'] as const

/** How the files of an address are named to whoever has written it. */
export const REDIS_TLS_NAMES: TlsNames = {
  ca: '`ca` of the redis URL',
  cert: '`cert` of the redis URL',
  key: '`key` of the redis URL',
  passphrase: '`passphrase` of the redis URL',
}

const EXPECTED =
  'expected redis://[user:password@]host[:port][/db], rediss:// for TLS (with ?ca=FILE&cert=FILE&key=FILE where the usual CAs are not enough), or ' +
  'redis+sentinel://[user:password@]host:port,host:port/NAME[?db=0&sentinelPassword=…]'

/**
 * Shape: ports default to 6379, of sentinels to 26379; user and password are percent-decoded. Errors: CONFIG_INVALID, without the password.
 */
export function parseRedisUrl(url: string): RedisAddress {
  const invalid = (what: string): MillraceError => new MillraceError('CONFIG_INVALID', `redis: ${redactRedisUrl(url)} ${what}; ${EXPECTED}`)
  const match = FORM.exec(url.trim())
  if (match === null) throw invalid('is no address of a Redis')
  const scheme = (match[1] ?? '').toLowerCase()
  const path = (match[4] ?? '').replace(/^\/+|\/+$/g, '')
  const isSentinel = scheme.endsWith('+sentinel')
  const query = parseQuery(match[5] ?? '', ['db', ...TLS_NAMES, ...(isSentinel ? ['sentinelPassword'] : [])], invalid)
  const hosts = (match[3] ?? '').split(',').map((host) => parseHost(host, isSentinel ? 26_379 : 6_379, invalid))
  const dbText = isSentinel ? (query.get('db') ?? '0') : path || (query.get('db') ?? '0')
  if (!/^\d{1,5}$/.test(dbText)) throw invalid('names a database that is no number')
  const tls = scheme.startsWith('rediss')
  const location = `${match[1]}://${match[2] === undefined ? '' : '***@'}${match[3]}${match[4] ?? ''}`
  const base = { location, ...credentials(match[2], invalid), db: Number(dbText), tls, files: tlsFiles(query, tls, invalid) }
  const sentinelPassword = query.get('sentinelPassword')
  if (isSentinel) {
    if (path === '') throw invalid('lacks the name of the master that the sentinels watch')
    const target = { kind: 'sentinel', name: decode(path, invalid), sentinels: hosts } as const
    return { ...base, target: sentinelPassword === undefined ? target : { ...target, sentinelPassword } }
  }
  const host = hosts[0]
  if (host === undefined || hosts.length > 1) throw invalid('names several servers; a cluster is not supported')
  return { ...base, target: { kind: 'server', ...host } }
}

/**
 * The URL as it may be shown: user, password and query are left out, whatever its form. With an `@` behind the `?` alone nobody knows
 * whether a password has that `?`, so that it begins before it: then nothing is shown.
 */
export function redactRedisUrl(url: string): string {
  const text = url.trim()
  const scheme = /^[a-z+]{1,20}:\/\//i.exec(text)?.[0] ?? ''
  const [head = '', ...tail] = text.slice(scheme.length).split(/(?=[?#])/)
  const at = head.lastIndexOf('@')
  if (tail.some((part) => part.includes('@'))) return `${scheme}***`
  return `${scheme}${at === -1 ? '' : '***@'}${head.slice(at + 1)}`
}

/**
 * Undone by percent alone: a `+` is one, as in a path. What is not known is refused, since it would be passed over (`CA=…`), and not
 * repeated: it may be the rest of a password.
 */
function parseQuery(text: string, known: readonly string[], invalid: (what: string) => MillraceError): ReadonlyMap<string, string> {
  const query = new Map<string, string>()
  for (const part of text.split('&').filter((each) => each !== '')) {
    const [name = '', ...value] = part.split('=')
    if (!known.includes(name) || query.has(name))
      throw invalid(`has more behind the ? than each of ${known.join(', ')} once (write %3F for a question mark in a password)`)
    query.set(name, decode(value.join('='), invalid))
  }
  return query
}

function parseHost(text: string, defaultPort: number, invalid: (what: string) => MillraceError): { host: string; port: number } {
  const match = /^(?:\[([0-9a-f:.%]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/i.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = match?.[3] === undefined ? defaultPort : Number(match[3])
  if (host === undefined || port < 1 || port > 65_535) throw invalid('names a host or port that can not be')
  return { host, port }
}

function credentials(text: string | undefined, invalid: (what: string) => MillraceError): { username?: string; password?: string } {
  if (text === undefined || text === '') return {}
  const colon = text.indexOf(':')
  const username = colon === -1 ? text : text.slice(0, colon)
  return {
    ...(username === '' ? {} : { username: decode(username, invalid) }),
    ...(colon === -1 ? {} : { password: decode(text.slice(colon + 1), invalid) }),
  }
}

function tlsFiles(query: ReadonlyMap<string, string>, isTls: boolean, invalid: (what: string) => MillraceError): TlsFiles {
  const named = TLS_NAMES.filter((name) => query.has(name))
  if (named.length > 0 && !isTls) throw invalid(`names ${named.join(', ')} and is not asked by TLS`)
  if (query.has('cert') !== query.has('key')) throw invalid('names one of cert and key, which go together')
  if (query.has('passphrase') && !query.has('key')) throw invalid('names a passphrase and no key')
  return Object.fromEntries(named.map((name) => [name, query.get(name) ?? '']))
}

function decode(text: string, invalid: (what: string) => MillraceError): string {
  const plain = percentDecoded(text)
  // The text itself may be the password: it is not repeated.
  if (plain === undefined) throw invalid('holds a % that begins no escape (write %25 for a percent sign)')
  return plain
}
