import { Parser } from 'htmlparser2'

export interface MetaRefresh {
  /** Units: ms. */
  readonly delayMs: number
  /** As the page gives it; absolute where the page has a base. */
  readonly location: string
}

/** A page says it in its head; what lies further down is not looked at. */
const MAX_CHARACTERS = 65_536

/**
 * The declarative refresh of a page: `<meta http-equiv=refresh>`, the first that counts. Not within comments, scripts, templates, and
 * not within `<noscript>`: it would lead to the page for browsers without scripts, which browsers and other crawlers pass by.
 * Shape: undefined where there is none, or where it only reloads. Source: HTML standard, "shared declarative refresh steps".
 */
export function metaRefresh(html: string): MetaRefresh | undefined {
  const text = html.slice(0, MAX_CHARACTERS)
  if (!/http-equiv/i.test(text)) return undefined
  let found: MetaRefresh | undefined
  let base: string | undefined
  let hidden = 0
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (name === 'noscript' || name === 'template') hidden += 1
        if (hidden > 0) return
        if (name === 'base') base ??= attributes.href
        if (name !== 'meta' || attributes['http-equiv']?.trim().toLowerCase() !== 'refresh') return
        found ??= parseRefresh(attributes.content ?? '')
      },
      onclosetag(name) {
        if ((name === 'noscript' || name === 'template') && hidden > 0) hidden -= 1
      },
    },
    { decodeEntities: true, lowerCaseTags: true, lowerCaseAttributeNames: true },
  )
  parser.end(text)
  if (found === undefined || base === undefined) return found
  return { ...found, location: URL.canParse(found.location, base) ? new URL(found.location, base).href : found.location }
}

function parseRefresh(content: string): MetaRefresh | undefined {
  const time = /^\s*(\d+|(?=\.))[\d.]*(.*)$/s.exec(content)
  if (time === null) return undefined
  const rest = /^\s*[;,\s]\s*(.*)$/s.exec(time[2] ?? '')?.[1] ?? ''
  const location = unquoted(rest.replace(/^url\s*=\s*/i, '')).trim()
  return location === '' ? undefined : { delayMs: Number(time[1]) * 1_000, location }
}

function unquoted(text: string): string {
  const quote = text[0]
  if (quote !== '"' && quote !== "'") return text
  const end = text.indexOf(quote, 1)
  return text.slice(1, end === -1 ? undefined : end)
}
