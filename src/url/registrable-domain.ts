import { getDomain } from 'tldts'

/**
 * The partition key of a URL: its registrable domain by the Public Suffix List, private suffixes included (`a.github.io` is a site of
 * its own). Hosts without one (a bare suffix, an IP address, localhost, a single label) are their own key.
 * Shape: lower-case ASCII, no dot at the end, IPv6 with its brackets.
 */
export function registrableDomain(url: string | URL): string {
  return registrableDomainOfHost(new URL(url).hostname)
}

/** The same of a text that somebody else wrote as a URL; undefined where it is none, or has no host. */
export function domainOfUrl(text: string): string | undefined {
  const domain = URL.canParse(text) ? registrableDomain(text) : ''
  return domain === '' ? undefined : domain
}

/** What `--domain` means: the registrable domain of the URL, or its host. Shape: false for what is no URL. */
export function isOfDomain(url: string, domain: string): boolean {
  const own = domainOfUrl(url)
  return own !== undefined && (own === domain || new URL(url).hostname === domain)
}

/**
 * Are the domains below the host sites of their own: it is an entry of the Public Suffix List (`co.uk`, `github.io`), or a single label,
 * which the list takes for one (`lan`). Shape: false for an address, and for localhost, which is a host to all.
 */
export function isSuffix(host: string): boolean {
  if (host === 'localhost' || !URL.canParse(`http://a.${host}/`)) return false
  return registrableDomainOfHost(`a.${host}`) === `a.${host}`
}

/** Shape: hostname as the WHATWG parser gives it. */
export function registrableDomainOfHost(hostname: string): string {
  const host = bareHost(hostname)
  const domain = getDomain(host, { allowPrivateDomains: true, extractHostname: false, validateHostname: false })
  // An empty label (`foo..com`) gives a domain that begins with a dot.
  return domain === null || domain === '' || domain.startsWith('.') ? host : domain
}

/** Host without the dot of a fully qualified name: `example.test.` and `example.test` are one site. */
export function bareHost(hostname: string): string {
  let end = hostname.length
  // No pattern: looking for dots at the end, it would begin anew at each dot of a host of dots.
  while (end > 0 && hostname[end - 1] === '.') end -= 1
  return hostname.slice(0, end === 0 ? undefined : end).toLowerCase()
}
