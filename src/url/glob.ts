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

/** A glob for URLs: one that begins with `/` is compared with path and query, any other with the whole URL. */
export function compileUrlGlob(pattern: string): (url: URL) => boolean {
  const glob = compileGlob(pattern)
  return pattern.startsWith('/') ? (url) => glob(url.pathname + url.search) : (url) => glob(url.href)
}

/** A glob for hosts, without case. `*.example.com` means example.com and all hosts under it; a name without `*` that host alone. */
export function compileHostGlob(pattern: string): Glob {
  const lower = pattern.toLowerCase()
  const glob = compileGlob(lower)
  const apex = lower.startsWith('*.') ? lower.slice(2) : undefined
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
