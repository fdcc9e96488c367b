import { withEncodedQuery } from '../message/charset.ts'
import { TagReader } from '../message/tag-reader.ts'

export interface MetaRefresh {
  /** Units: ms. */
  readonly delayMs: number
  /** As the page gives it; absolute where the page has a base. */
  readonly location: string
}

/** A page says it in its head; what lies further down is not looked at. */
const MAX_CHARACTERS = 65_536
/**
 * What stands within these is text to a browser with scripts, or a document of its own. `<noscript>` most of all: it would lead to the
 * page for browsers without scripts, which browsers and other crawlers pass by.
 */
const HIDING: ReadonlySet<string> = new Set(['noscript', 'template', 'iframe', 'noembed', 'noframes', 'xmp'])

/**
 * The declarative refresh of a page: `<meta http-equiv=refresh>`, the first that can be read. Not within comments and scripts. Shape:
 * `charset` is that in which the text stood; undefined where there is none, or where it only reloads. Source: HTML standard, "shared
 * declarative refresh steps".
 */
export function metaRefresh(html: string, pageUrl: URL, charset: string): MetaRefresh | undefined {
  const text = html.slice(0, MAX_CHARACTERS)
  if (!/http-equiv/i.test(text)) return undefined
  let found: MetaRefresh | undefined
  let base: string | undefined
  /** The element that hides what stands in it; undefined outside of one. */
  let hider: string | undefined
  let depth = 0
  const reader = new TagReader(['href', 'http-equiv', 'content'], {
    onOpen(name, attributes) {
      if (hider === undefined && HIDING.has(name)) hider = name
      // Templates may stand in one another; within the others all is text.
      if (name === hider && (name === 'template' || depth === 0)) depth += 1
      if (hider !== undefined) return
      if (name === 'base' && !reader.isForeign) base ??= attributes.get('href')
      if (name !== 'meta' || attributes.get('http-equiv')?.trim().toLowerCase() !== 'refresh') return
      found ??= parseRefresh(attributes.get('content') ?? '')
    },
    onClose(name) {
      if (name !== hider) return
      depth -= 1
      if (depth === 0) hider = undefined
    },
  })
  reader.write(text)
  reader.end()
  if (found === undefined || found.location === '') return undefined
  const location = withEncodedQuery(found.location, charset)
  return { ...found, location: base === undefined ? location : againstBase(location, base, pageUrl) }
}

/** The base of a page is itself relative to the page. One that is no URL is none. */
function againstBase(location: string, base: string, pageUrl: URL): string {
  if (!URL.canParse(base, pageUrl.href)) return location
  const { href } = new URL(base, pageUrl.href)
  return URL.canParse(location, href) ? new URL(location, href).href : location
}

/** Undefined: not readable. An empty location: a reload, which stands all the same against a refresh further down. */
function parseRefresh(content: string): MetaRefresh | undefined {
  const time = /^\s*(\d+|(?=\.))[\d.]*(.*)$/s.exec(content)
  if (time === null) return undefined
  const behind = time[2] ?? ''
  if (behind !== '' && !/^[;,\s]/.test(behind)) return undefined
  const rest = behind.replace(/^\s*[;,]?\s*/, '')
  return { delayMs: Number(time[1]) * 1_000, location: unquoted(rest.replace(/^url\s*=\s*/i, '')).trim() }
}

function unquoted(text: string): string {
  const quote = text[0]
  if (quote !== '"' && quote !== "'") return text
  const end = text.indexOf(quote, 1)
  return text.slice(1, end === -1 ? undefined : end)
}
