import { headerText, type MessageHeaders } from '../kafka/message.ts'
import type { Page } from '../message/generated/types.ts'
import { HEADER, ONLY_STAGE } from '../message/header-names.ts'
import { compileHostGlob, compileUrlGlob } from '../url/glob.ts'
import type { MatchDefinition } from './language/definition.ts'

/** What of a page decides whether an extractor reads it; the body is never unpacked for it. */
export type MatchedPage = Pick<Page, 'finalUrl' | 'status' | 'contentType' | 'truncated' | 'extractors' | 'sitemapLevel'>

/** HTML, and pages that name no type, which browsers take for HTML as well. */
const HTML_TYPES: readonly string[] = ['text/html', 'application/xhtml+xml']

/**
 * Compiles the conditions of one extractor. A page whose task names extractors goes to those and to no others, whatever their hosts
 * and paths; status and type count in any case. Shape: a sitemap, and a body that was not kept for its type, or could not be decoded, match
 * nothing.
 */
export function compileMatch(name: string, match: MatchDefinition): (page: MatchedPage) => boolean {
  const hosts = match.hosts.map(compileHostGlob)
  const paths = match.paths.map(compileUrlGlob)
  const types = match.types.map((type) => type.toLowerCase())
  const inStatus = statusCheck(match.status)
  return (page) => {
    if (page.sitemapLevel > 0) return false
    if (!inStatus(page.status) || page.truncated === 'type' || page.truncated === 'undecoded') return false
    if (types.length === 0 ? page.contentType !== null && !HTML_TYPES.includes(page.contentType) : !hasType(page.contentType, types)) {
      return false
    }
    if (page.extractors.length > 0) return page.extractors.includes(name)
    if (hosts.length === 0 && paths.length === 0) return true
    if (!URL.canParse(page.finalUrl)) return false
    const url = new URL(page.finalUrl)
    if (hosts.length > 0 && !hosts.some((host) => host(url.hostname))) return false
    return paths.length === 0 || paths.some((path) => path(url))
  }
}

/** False for a page that was put back on html for another stage, or another extractor. */
export function isMeantFor(headers: MessageHeaders, extractor: string): boolean {
  const only = headerText(headers, HEADER.only)
  return only === undefined || only === ONLY_STAGE.extract || only === extractor
}

function statusCheck(wanted: MatchDefinition['status']): (status: number) => boolean {
  if (wanted.length === 0) return (status) => status >= 200 && status < 300
  return (status) =>
    wanted.some((one) =>
      typeof one === 'number' ? one === status : one.endsWith('xx') ? one[0] === String(status)[0] : one === String(status),
    )
}

function hasType(contentType: string | null, types: readonly string[]): boolean {
  return contentType !== null && types.includes(contentType)
}
