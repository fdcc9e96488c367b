import { MillraceError } from '../kernel/errors.ts'
import { bareHost } from './registrable-domain.ts'

/** Names of parameters that tell where a visitor came from, and never what the page is. Compared without case. */
export const TRACKING_PARAMETERS: ReadonlySet<string> = new Set([
  'gclid',
  'gbraid',
  'wbraid',
  'dclid',
  'fbclid',
  'msclkid',
  'yclid',
  'mc_cid',
  'mc_eid',
  'igshid',
  '_ga',
  '_gl',
])

const TRACKING_PREFIX = 'utm_'

/**
 * The identity of a URL for deduplication and keys. It is never what goes on the wire: a site may care for the order of its query
 * parameters, so the URL is fetched as it was found.
 *
 * Rules, in order: what the WHATWG parser does (lower-case scheme and host, punycode, default port, dot segments); no credentials,
 * no fragment, no dot after the host; percent-encoding with upper-case hex, unreserved characters decoded, `%25` and everything else
 * left alone; tracking parameters and empty pieces of the query dropped, the rest sorted by name with the order of repeated names
 * kept; an empty query dropped. Kept as they are: path case, trailing slash, `www.`, http beside https, `+` beside `%20`.
 *
 * A rule that changes gives URLs another identity: what was claimed under the one before is fetched once more.
 *
 * Shape: canonicalUrl(canonicalUrl(x)) = canonicalUrl(x).
 * Errors: TASK_URL_INVALID for text that is no absolute URL; a URL object never fails.
 */
export function canonicalUrl(url: string | URL): string {
  const target = parsed(url)
  target.username = ''
  target.password = ''
  target.hash = ''
  const host = bareHost(target.hostname)
  if (host !== target.hostname) target.hostname = host
  target.pathname = normalisePercent(target.pathname)
  target.search = canonicalQuery(target.search)
  return target.href
}

function parsed(url: string | URL): URL {
  try {
    return new URL(typeof url === 'string' ? url : url.href)
  } catch (cause) {
    throw new MillraceError('TASK_URL_INVALID', `can't make a canonical form of ${JSON.stringify(url)}: expected an absolute URL`, {
      cause,
    })
  }
}

function canonicalQuery(search: string): string {
  if (search.length < 2) return ''
  const pieces = search
    .slice(1)
    .split('&')
    .filter((piece) => piece !== '')
    .map((piece) => {
      const text = normalisePercent(piece)
      const end = text.indexOf('=')
      return { name: end === -1 ? text : text.slice(0, end), text }
    })
    .filter(({ name }) => !isTracking(name))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  // With its `?`: the setter would take the first one of a query that begins with another.
  return pieces.length === 0 ? '' : `?${pieces.map(({ text }) => text).join('&')}`
}

function isTracking(name: string): boolean {
  const lower = name.toLowerCase()
  return lower.startsWith(TRACKING_PREFIX) || TRACKING_PARAMETERS.has(lower)
}

/**
 * Upper-case hex, unreserved characters decoded (RFC 3986 section 6.2.2). A decoded hex digit right behind a lone `%` would make a
 * new escape out of two harmless pieces (`%%34` -> `%4`), so there it stays encoded.
 */
export function normalisePercent(text: string): string {
  if (!text.includes('%')) return text
  let out = ''
  /** The last two characters of `out`: whoever looks at the end of a text that grows copies it each time. */
  let end = ''
  const add = (piece: string): void => {
    out += piece
    end = `${end}${piece}`.slice(-2)
  }
  let from = 0
  for (const match of text.matchAll(/%[0-9a-fA-F]{2}/g)) {
    add(text.slice(from, match.index))
    from = match.index + 3
    const char = String.fromCharCode(Number.parseInt(match[0].slice(1), 16))
    const decodes = /[A-Za-z0-9\-._~]/.test(char) && !(/[0-9A-Fa-f]/.test(char) && /%[0-9A-Fa-f]?$/.test(end))
    add(decodes ? char : match[0].toUpperCase())
  }
  return out + text.slice(from)
}
