import { MillraceError } from '../../kernel/errors.ts'
import { bareHost } from '../../url/registrable-domain.ts'

/** What is typed for a site. Shape: the host of what may be a URL, a host or a domain, as messages have it. Errors: USAGE. */
export function siteDomain(text: string): string {
  const url = text.includes('://') ? text : `http://${text}`
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new MillraceError('USAGE', `${JSON.stringify(text)} is no domain; write example.com, which has its hosts too`)
  return bareHost(new URL(url).hostname)
}

/** The same of what is to be found or kept. A `*` is a letter to URLs: `*.example.com` would be a host that nobody has. Errors: USAGE. */
export function existingDomain(text: string): string {
  const domain = siteDomain(text)
  if (!domain.includes('*')) return domain
  const hint = domain.replace(/^\*\./, '')
  throw new MillraceError('USAGE', `${JSON.stringify(text)} is no domain; write ${hint}, which covers all hosts below it`)
}

/**
 * Where the robots.txt of a site may lie. Shape: the origin of a URL that names a port; both usual ones of a host with a port; none
 * where there is no port, for `showSite` to know. The text is one that `siteDomain` takes.
 */
export function siteOrigins(text: string): readonly string[] {
  const hasScheme = text.includes('://')
  const url = new URL(hasScheme ? text : `http://${text}`)
  if (url.port === '') return []
  return hasScheme ? [url.origin] : [url.origin, `https://${url.host}`]
}

/**
 * What of the text counts for nothing, since a site is paced as a whole: `/path`, `:8080`. Shape: undefined where all of it counts. The
 * text is one that `siteDomain` takes.
 */
export function beyondSite(text: string): string | undefined {
  const url = new URL(text.includes('://') ? text : `http://${text}`)
  const port = url.port === '' ? '' : `:${url.port}`
  const path = url.pathname === '/' ? '' : url.pathname
  const beyond = `${port}${path}${url.search}${url.hash}`
  return beyond === '' ? undefined : beyond
}
