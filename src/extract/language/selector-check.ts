import { isTraversal, parse, type Selector } from 'css-what'

/** Selectors between commas, each a list of parts and combinators. */
type Parts = readonly Selector[]

/**
 * What the parser of selectors lets pass and matches nothing. Errors: thrown, in words for the author; of syntax none: those are the
 * parser's.
 */
export function checkSelector(text: string): void {
  const selectors = parsed(text)
  for (const parts of selectors) checkParts(parts)
  if (selectors.length > 0) checkNames(text)
}

/** What `:contains` looks for may hold anything, a single quote too, and so may escapes and quoted texts. */
const OPAQUE = /(?<=:i?contains\()(?:\\[\s\S]|\((?:\\[\s\S]|[^)\\])*\)|[^)\\])+|\\[\s\S]|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'/gi
const BRACKETS = /\[[^\]]*\]/g
const NAME = '[\\w\\-\\u00b0-\\uffff]'
const ODD_NAME = new RegExp(`[.#](?!${NAME})`)
const ODD_ATTRIBUTE = new RegExp(`^\\[\\s*(?![\\s*|]|${NAME})`)

/** The parser takes any character for the first of a name: in `.a..b` a class `.b`. */
function checkNames(text: string): void {
  const bare = text.replace(OPAQUE, 'x')
  for (const [brackets] of bare.matchAll(BRACKETS)) {
    if (ODD_ATTRIBUTE.test(brackets)) throw new Error(`${brackets} has no name of an attribute`)
    if (/=\s*\]$/.test(brackets)) throw new Error(`${brackets} has no value; an empty one is written ""`)
  }
  const at = ODD_NAME.exec(bare.replace(BRACKETS, ''))
  if (at !== null) throw new Error(`no name stands behind ${at[0]}`)
}

function checkParts(parts: Parts): void {
  for (const [index, part] of parts.entries()) {
    const before = parts[index - 1]
    if (part.type === 'tag' && ((before !== undefined && !isTraversal(before)) || !/^[a-z]/i.test(part.name))) {
      throw new Error(`unexpected ${JSON.stringify(part.name)}; within a name each character like : ( @ / is written behind a backslash`)
    }
    if (index === parts.length - 1 && isTraversal(part)) throw new Error('it ends in a combinator')
    if (part.type === 'pseudo' && Array.isArray(part.data)) for (const inner of part.data) checkParts(inner)
  }
}

/** Elements that a parser puts rows into. */
const ROW_PARENTS: ReadonlySet<string> = new Set(['tbody', 'thead', 'tfoot'])
/** Elements that end a paragraph. Source: HTML standard, "A start tag whose tag name is …" in body. */
const PARAGRAPH_ENDS: ReadonlySet<string> = new Set(
  (
    'address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 ' +
    'header hgroup hr li main menu nav ol p pre search section summary table ul'
  ).split(' '),
)

/** Why a selector that compiles will probably match nothing; undefined: nothing is seen. */
export function selectorDoubt(text: string): string | undefined {
  for (const parts of parsed(text)) {
    for (const [index, part] of parts.entries()) {
      const doubt = part.type === 'child' ? childDoubt(compoundBefore(parts, index), compoundBehind(parts, index)) : undefined
      if (doubt !== undefined) return `${JSON.stringify(text)}: ${doubt}`
    }
  }
  return undefined
}

function childDoubt(outer: Parts, inner: Parts): string | undefined {
  const [around, child] = [tagOf(outer), tagOf(inner)]
  const isScope = outer.length === 0 || outer.some((part) => part.type === 'pseudo' && part.name === 'scope')
  if (child === undefined || isScope) return undefined
  if (child === 'tr' && (around === undefined || !ROW_PARENTS.has(around))) {
    return `a parser puts <tr> into <tbody>, so this matches only where what is left of "> tr" is a tbody; write a space instead of ">"`
  }
  if ((child === 'td' || child === 'th') && around !== undefined && around !== 'tr') {
    return `a parser puts <${child}> into <tr>, so it is no child of <${around}>; write a space instead of ">"`
  }
  if (around === 'p' && PARAGRAPH_ENDS.has(child)) return `a parser ends <p> before <${child}>, which is never within it`
  return undefined
}

function compoundBefore(parts: Parts, index: number): Parts {
  const start = parts.slice(0, index).findLastIndex(isTraversal) + 1
  return parts.slice(start, index)
}

function compoundBehind(parts: Parts, index: number): Parts {
  const rest = parts.slice(index + 1)
  const end = rest.findIndex(isTraversal)
  return end === -1 ? rest : rest.slice(0, end)
}

/** Shape: lower case, as HTML has it. */
function tagOf(compound: Parts): string | undefined {
  const [part] = compound
  return part?.type === 'tag' ? part.name.toLowerCase() : undefined
}

function parsed(text: string): readonly Parts[] {
  try {
    return parse(text)
  } catch {
    // What does not parse here is named by whoever compiles it.
    return []
  }
}
