import { hostPattern } from '../kernel/host-pattern.ts'
import { normalisePercent } from './canonical-url.ts'

/**
 * A pattern in which `*` stands for any characters, `/` included, and everything else for itself (`?` begins a query, as in a URL).
 * Compared piece by piece and never by regular expression, so that no pattern and no URL can make it run away.
 */
export type Glob = (text: string) => boolean

export function compileGlob(pattern: string): Glob {
  const pieces = pattern.split('*')
  const first = pieces[0] ?? ''
  const last = pieces.at(-1) ?? ''
  if (pieces.length === 1) return (text) => text === pattern
  const middle = pieces.slice(1, -1).filter((piece) => piece !== '')
  return (text) => {
    if (!text.startsWith(first)) return false
    let at = first.length
    for (const piece of middle) {
      const found = text.indexOf(piece, at)
      if (found === -1) return false
      at = found + piece.length
    }
    return text.length - last.length >= at && text.endsWith(last)
  }
}

/**
 * A glob for URLs: one that begins with `/` is compared with path and query, any other with the whole URL. Neither side cares for the
 * case of percent-encoding, nor whether a character that needs none has one.
 */
export function compileUrlGlob(pattern: string): (url: URL) => boolean {
  const written = urlPattern(pattern) ?? pattern
  const glob = compileGlob(written)
  return written.startsWith('/') ? (url) => glob(normalisePercent(url.pathname + url.search)) : (url) => glob(normalisePercent(url.href))
}

/** What `urlPattern` takes, for whoever wrote something else. */
export const URL_PATTERN_EXPECTED = 'expected a pattern that begins with /, * or https://, without #'

/**
 * A glob for URLs as URLs are written: hosts in ASCII, paths percent-encoded. Shape: undefined where no URL could match it, as it begins
 * with neither `/`, `*` nor a scheme that is fetched, or has a fragment.
 */
export function urlPattern(text: string): string | undefined {
  if (text.includes('#')) return undefined
  if (text.startsWith('/')) return pathPattern(text)
  const [, scheme, host = '', port = '', rest = ''] = WHOLE_URL.exec(text) ?? []
  if (scheme === undefined) return text.startsWith('*') ? pathPattern(`/${text}`)?.slice(1) : undefined
  const hosts = hostPattern(host)
  // A URL has a path in any case; after a `*` it may be part of what that stands for.
  const path = rest.startsWith('/') || !host.endsWith('*') ? pathPattern(rest) : pathPattern(`/${rest}`)?.slice(1)
  if (hosts === undefined || path === undefined) return undefined
  const origin = `${scheme.toLowerCase()}://${hosts}${port}`
  return origin.replace(/^(https:.*):443$|^(http:.*):80$/, '$1$2') + path
}

const WHOLE_URL = /^(https?|http\*|\*):\/\/(\[[^\]]*\]|[^/?:]*)(:[\d*]+)?(.*)$/i

/** Path and query, as the parser of URLs gives them. */
function pathPattern(text: string): string | undefined {
  const whole = `http://host${text}`
  if (!URL.canParse(whole)) return undefined
  const { pathname, search } = new URL(whole)
  return normalisePercent(pathname + search)
}

/**
 * A glob for hosts, in any case and script. `*.example.com` means example.com and all hosts under it; a name without `*` that host alone.
 */
export function compileHostGlob(pattern: string): Glob {
  const written = hostPattern(pattern) ?? pattern.toLowerCase()
  const glob = compileGlob(written)
  const apex = written.startsWith('*.') ? written.slice(2) : undefined
  return (host) => {
    const name = host.toLowerCase().replace(/\.$/, '')
    return name === apex || glob(name)
  }
}

/** Does the one host pattern match every host that the other matches. */
export function coversHosts(wide: string, narrow: string): boolean {
  const glob = compileHostGlob(wide)
  // No host holds it, so that only a `*` can stand for it.
  const any = narrow.replaceAll('*', '\u0000')
  return glob(any) && (!narrow.startsWith('*.') || glob(narrow.slice(2).replaceAll('*', '\u0000')))
}
