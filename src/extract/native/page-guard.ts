import type { NativeNode } from './native-parser.ts'

/**
 * What the two parsers are known to read differently, found by comparing their trees on real pages, on pages that were damaged at
 * random and on random tags. A page that has one of these is read by the default parser. The guards look at the text, so they also
 * refuse what only looks like it (in a script); they never have to be exact in that direction.
 */

/** Character references to a carriage return, a byte order mark and the Kelvin sign. */
const ODD_REFERENCE = /&#(?:0*(?:13|65279|8490)(?!\d)|x0*(?:d|feff|212a)(?![\da-f]))/i

/**
 * White space for one and not for the other: next line, byte order mark. A letter k for one: the Kelvin sign. Left out or not in `<svg>`:
 * NUL.
 */
const ODD_CHARACTERS = ['\u0000', '\u0085', '\ufeff', '\u212a'] as const

/** Tags that a `<select>` holds in both; newer rules let the native one keep others. */
const IN_SELECT: ReadonlySet<string> = new Set(['option', 'optgroup', 'hr'])

/** Formatting that was left open is opened again before each of these, and by one parser before `<svg>`: see `foreignIsAlike`. */
const REOPENING = 'a|abbr|b|button|cite|em|i|label|small|span|strong|u'
const REOPENING_TAG = new RegExp(`^<(?:${REOPENING})(?:\\s[^<>]*)?>$`, 'i')
const REOPENING_NAMES: ReadonlySet<string> = new Set(REOPENING.split('|'))

/** HTML may stand in these within `<svg>` and `<math>`. An end tag of HTML ends what is open around them in one parser only. */
const HTML_WITHIN: ReadonlySet<string> = new Set(['desc', 'title', 'foreignobject', 'mi', 'mo', 'mn', 'ms', 'mtext', 'annotation-xml'])

/** As much of a name as tells them apart: `annotation-xml`, and what begins with it. */
const LONGEST_NAME = 15

/** Text in these is put elsewhere. */
const NO_TEXT: ReadonlySet<string> = new Set(['table', 'tbody', 'thead', 'tfoot', 'tr', 'colgroup', 'head', 'html', 'frameset'])

/** Attributes that get a namespace in `<svg>` and `<math>`, but for the one that drawing programs write. */
const NAMESPACED_ATTRIBUTE = /xlink:|xml:(?!space)/i

/**
 * Start tags of a page. No more elements than that can be open but for what tables open by themselves, so all of it stays below the limit
 * of the default parser (MAX_OPEN_ELEMENTS); and a selector of the native one takes 0.3 s where this many elements stand within each other.
 */
const MAX_TAGS = 4_000

const HTML = 'http://www.w3.org/1999/xhtml'

/** What the text of a page tells of the checks that its tree needs. */
export interface TextFindings {
  readonly hasSelect: boolean
  readonly hasForeign: boolean
}

/**
 * Why the parsers may read a text differently, or what is left to be seen in its tree. Shape: a decoded text, which has no lone
 * surrogates. Cost: one pass over the tags.
 */
export function textFindings(text: string): TextFindings | string {
  for (const character of ODD_CHARACTERS) if (text.includes(character)) return 'an odd white space or letter'
  if (text.includes('&#') && ODD_REFERENCE.test(text)) return 'a reference to an odd character'
  let tagCount = 0
  let tableCount = 0
  let hasSelect = false
  let foreignAt = -1
  let inSelect = false
  let htmlWithin: string | undefined
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', at + 1)) {
    const isEnd = text.charCodeAt(at + 1) === 0x2f
    const letter = text.charCodeAt(at + (isEnd ? 2 : 1)) | 0x20
    if (letter < 0x61 || letter > 0x7a) continue
    if (!isEnd) tagCount += 1
    // Only tags that begin so are of interest: i, m, s, t; within a select and after an `<svg>` all are.
    if (!inSelect && foreignAt === -1 && letter !== 0x73 && letter !== 0x74 && letter !== 0x6d && letter !== 0x69) continue
    const name = tagName(text, at + (isEnd ? 2 : 1))
    if (htmlWithin !== undefined) {
      if (!isEnd || name !== htmlWithin) return `a tag in <${htmlWithin}>`
      htmlWithin = undefined
    } else if (foreignAt !== -1 && !isEnd && HTML_WITHIN.has(name)) htmlWithin = name
    if (inSelect && name !== 'select' && !IN_SELECT.has(name)) return 'an element in <select>'
    if (name.startsWith('template') || name.startsWith('isindex')) return `<${name}>`
    if (name === 'select') {
      inSelect = !isEnd
      hasSelect = true
    } else if (isEnd) continue
    else if (name.startsWith('table')) tableCount += 1
    else if (name.startsWith('svg') || name.startsWith('math')) {
      if (foreignAt === -1) foreignAt = at
      if (!followsSafely(text, at)) return `<${name}> after a tag that does not reopen formatting`
    }
  }
  if (tagCount + 3 * tableCount > MAX_TAGS) return 'too many tags'
  const hasForeign = foreignAt !== -1
  if (hasForeign && NAMESPACED_ATTRIBUTE.test(text.slice(foreignAt))) return 'attributes with a namespace'
  // Where HTML stands within `<svg>` (`<foreignObject>`) it is text to one and a comment to the other.
  if (hasForeign && text.includes('<![CDATA[', foreignAt)) return 'a CDATA section'
  return { hasSelect, hasForeign }
}

/** What is left to be seen in the tree. Shape: undefined where nothing differs. */
export function treeDifference(document: NativeNode, { hasSelect, hasForeign }: TextFindings): string | undefined {
  if (hasSelect && document.querySelectorAll('select *').some(({ localName }) => !IN_SELECT.has(localName ?? ''))) {
    return 'an element in <select>'
  }
  if (hasForeign && !document.querySelectorAll('svg, math').every(foreignIsAlike)) return '<svg> where formatting may have been left open'
  return undefined
}

/**
 * Whether no formatting waits to be opened again where an `<svg>` begins: the native parser forgets to. It does not where text stands
 * before it, and in an element whose own start has opened it.
 */
function foreignIsAlike(element: NativeNode): boolean {
  const { parentNode: parent } = element
  if (parent === null || parent.nodeType !== 1) return false
  if (parent.namespaceURI !== HTML) return true
  let before = element.previousSibling
  while (before !== null && before.nodeType === 8) before = before.previousSibling
  if (before === null) return REOPENING_NAMES.has(parent.localName ?? '')
  return before.nodeType === 3 && !NO_TEXT.has(parent.localName ?? '')
}

/** The same, of the text: what was moved in the tree later on can't be seen there. */
function followsSafely(text: string, at: number): boolean {
  return text[at - 1] !== '>' || REOPENING_TAG.test(text.slice(text.lastIndexOf('<', at - 1), at))
}

function tagName(text: string, start: number): string {
  let end = start
  while (end < start + LONGEST_NAME && isNamePart(text.charCodeAt(end))) end += 1
  return text.slice(start, end).toLowerCase()
}

/** Names end at white space, `/` and `>`; what else may stand in one is no matter here. */
function isNamePart(code: number): boolean {
  return code > 0x20 && code !== 0x2f && code !== 0x3e
}
