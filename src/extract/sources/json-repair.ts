/**
 * JSON of a page that is not quite JSON, repaired where a repair has one meaning: comments and wrappers, commas too many or too few,
 * several values in a row, values that are missing, raw control characters and needless escapes in strings.
 *
 * Shape: the texts of its values, in order; whether each is JSON now is for its parser to say. Undefined: a string does not end, or may
 * have ended too early, at a quote of its own that nobody escaped.
 * Cost: one pass, no recursion.
 */
export function repairedJson(text: string): readonly string[] | undefined {
  const values = new ValueTexts()
  let before: Before | undefined
  for (let at = 0; at < text.length; ) {
    const skipped = skip(text, at, values.isInside)
    if (skipped > at) {
      if (before !== undefined && mayBeOfString(text, at, skipped, before)) return undefined
      at = skipped
      continue
    }
    const character = text[at] ?? ''
    const isString = character === '"'
    if (before !== undefined && values.isInside && mayGoOn(text, at, before)) return undefined
    // Behind all that was open it may be the rest of a string: `"see "}" x"}`.
    if (!STRUCTURE.has(character) && values.hasEnded) return undefined
    if (isString) {
      const end = endOfString(text, at)
      if (end === undefined) return undefined
      values.scalar(repairedString(text.slice(at, end)))
      at = end
    } else if (STRUCTURE.has(character)) {
      values.structure(character)
      at += 1
    } else {
      const word = matchAt(WORD, text, at) ?? character
      values.scalar(NO_VALUES.has(word) ? 'null' : word)
      at += word.length
    }
    if (!STRUCTURE.has(character)) before = { end: at, isString, isSeparated: false }
    else before = before === undefined || character === ':' ? undefined : { ...before, isSeparated: true }
  }
  return values.end()
}

/** The scalar before that is no key. */
interface Before {
  /** Just behind it. */
  readonly end: number
  readonly isString: boolean
  /** By a comma, a bracket or a brace. */
  readonly isSeparated: boolean
}

/** A comment with a quote in it, right behind a string: in `"see "//x",` it may be the rest of that string. */
function mayBeOfString(text: string, at: number, end: number, { isString, isSeparated, end: behindString }: Before): boolean {
  if (!isString || !text.slice(at, end).includes('"')) return false
  return !isSeparated || !LINE_END.test(text.slice(behindString, at))
}

/** A value behind another one on the same line, with no comma between: in `["a "5" b"]` it may all be one string. A key may follow. */
function mayGoOn(text: string, at: number, { isString: wasString, isSeparated, end }: Before): boolean {
  const character = text[at] ?? ''
  const isString = character === '"'
  if (isSeparated || !(wasString || isString) || (STRUCTURE.has(character) && character !== '{' && character !== '[')) return false
  if (LINE_END.test(text.slice(end, at))) return false
  return !isString || matchAt(KEY, text, at) === undefined
}

const LINE_END = /[\r\n]/
const KEY = /"(?:[^"\\]|\\.)+"\s*:/sy

const STRUCTURE: ReadonlySet<string> = new Set('{}[],:;')
const WORD = /[^\s",:;{}[\]/<]+/y
/** What templates write for a value that they do not have. */
const NO_VALUES: ReadonlySet<string> = new Set(['undefined', 'NaN'])

/** Puts tokens together again, with a comma wherever one value follows another inside, and nowhere else. */
class ValueTexts {
  readonly #done: string[] = []
  #parts: string[] = []
  #depth = 0
  #last: 'nothing' | 'value' | 'comma' | 'colon' = 'nothing'

  get isInside(): boolean {
    return this.#depth > 0
  }

  /** True between values, and behind the last one. */
  get hasEnded(): boolean {
    return this.#depth === 0 && this.#done.length > 0
  }

  scalar(text: string): void {
    this.#begin()
    this.#parts.push(text)
    this.#endValue()
  }

  structure(character: string): void {
    if (character === '{' || character === '[') {
      this.#begin()
      this.#parts.push(character)
      this.#depth += 1
      this.#last = 'nothing'
    } else if (this.#depth === 0) {
      // Between values, and behind the last one, whatever separates them means nothing.
      if (character === ':') this.scalar(character)
    } else if (character === ',') {
      if (this.#last === 'colon') this.scalar('null')
      if (this.#last === 'value') this.#last = 'comma'
    } else if (character === ':' || character === ';') {
      this.#parts.push(character)
      this.#last = 'colon'
    } else {
      if (this.#last === 'colon') this.#parts.push('null')
      this.#parts.push(character)
      this.#depth -= 1
      this.#endValue()
    }
  }

  end(): readonly string[] {
    if (this.#parts.length > 0) this.#done.push(this.#parts.join(''))
    return this.#done
  }

  #begin(): void {
    if (this.#last === 'value' || this.#last === 'comma') this.#parts.push(',')
  }

  #endValue(): void {
    this.#last = 'value'
    if (this.#depth > 0) return
    this.#done.push(this.#parts.join(''))
    this.#parts = []
    this.#last = 'nothing'
  }
}

/** White space of any kind, the mark at the beginning of a file included. */
const SPACE = /[\s\u200b]+/y
const WRAPPER = /<!\[CDATA\[|\]\]>|-->|<!\]\]>|\*\//y
/** A comment that does nothing but hide a wrapper from scripts: `// <![CDATA[`, `/*]]>`. */
const HIDING = /\/[/*][ \t]*>?(?=<!|\]\]>|-->)/y
const LINE_COMMENT = /\/\/[^\n\r]*/y
/** Of a wrapper: where its first value begins. */
const MAX_WRAPPER = 1_000

/** Where the next token may begin: behind white space, a comment or a part of a wrapper. */
function skip(text: string, at: number, isInside: boolean): number {
  const skipped = matchAt(SPACE, text, at) ?? matchAt(WRAPPER, text, at) ?? matchAt(HIDING, text, at) ?? matchAt(LINE_COMMENT, text, at)
  if (skipped !== undefined) return at + skipped.length
  if (text.startsWith('/*', at)) return behind(text, '*/', at + 2)
  if (!text.startsWith('<!--', at)) return at
  // Around the values it is a wrapper, within them and before them it is a comment.
  const [before] = text.slice(at, at + MAX_WRAPPER).split(/[{[]/, 1)
  const isWrapper = !isInside && before !== undefined && before.length < MAX_WRAPPER && !before.includes('-->')
  return isWrapper ? at + 4 : behind(text, '-->', at + 4)
}

/** Shape: the end of the text where `mark` is not found. */
function behind(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from)
  return found === -1 ? text.length : found + mark.length
}

function matchAt(sticky: RegExp, text: string, at: number): string | undefined {
  sticky.lastIndex = at
  return sticky.exec(text)?.[0]
}

/** Shape: just behind the closing quote. */
function endOfString(text: string, start: number): number | undefined {
  const mark = /["\\]/g
  mark.lastIndex = start + 1
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    if (found[0] === '"') return mark.lastIndex
    mark.lastIndex += 1
  }
  return undefined
}

const CONTROL = `[${String.fromCharCode(0)}-${String.fromCharCode(31)}]`
/** In this order: the end of a line that goes on, `\x41`, any other escape, a character that JSON allows as an escape alone. */
const ESCAPE_OR_CONTROL = new RegExp(`\\\\\\r?\\n|\\\\x([\\da-fA-F]{2})|\\\\([^])|${CONTROL}`, 'g')

function repairedString(quoted: string): string {
  return quoted.replace(ESCAPE_OR_CONTROL, (part: string, hex: string | undefined, escaped: string | undefined) => {
    if (hex !== undefined) return `\\u00${hex}`
    if (escaped === undefined) return part.startsWith('\\') ? '' : inJson(part)
    // A letter or a digit may have meant something; every other character means itself.
    return /["\\/\da-zA-Z]/.test(escaped) ? part : inJson(escaped)
  })
}

function inJson(character: string): string {
  return JSON.stringify(character).slice(1, -1)
}

const ENTITIES: Readonly<Record<string, string>> = {
  quot: '"',
  '#34': '"',
  '#x22': '"',
  apos: "'",
  '#39': "'",
  '#x27': "'",
  amp: '&',
  lt: '<',
  gt: '>',
}

/** JSON that a template has escaped for HTML, which scripts do not undo; undefined: it does not look so. */
export function withoutEntities(text: string): string | undefined {
  if (!/^\W*&(?:quot|#34|#x22);/.test(text.slice(0, 200))) return undefined
  return text.replace(/&(#?\w{2,4});/g, (reference, name: string) => ENTITIES[name.toLowerCase()] ?? reference)
}
