/**
 * Finds the exported definition of a bundle, and keys in it, by its text: which object `export default` comes to, through the names
 * and calls that stand between. It reads what esbuild writes for a module; what it does not follow (a definition that is computed, or
 * spread from another) has no place.
 */
export function definitionOffset(code: string, path: readonly (string | number)[]): number | undefined {
  const start = exportedOffset(code)
  if (start === undefined) return undefined
  let at = openingOf(code, start)
  let found = start
  for (const key of path) {
    const value = at === undefined ? undefined : memberOf(code, at, key)
    if (value === undefined) break
    found = value.key
    at = openingOf(code, value.value)
  }
  return found
}

/** Where the text of the default export begins: its statement. */
function exportedOffset(code: string): number | undefined {
  const name = /^ {2}default: \(\) => ([\w$]+),?$/m.exec(code)?.[1]
  if (name !== undefined) return declarationOf(code, name)
  const assigned = [...code.matchAll(/^ *(?:module\.exports|exports\.default) = (?!__toCommonJS)/gm)].at(-1)
  return assigned === undefined ? undefined : assigned.index + (/^ */.exec(assigned[0])?.[0].length ?? 0)
}

function declarationOf(code: string, name: string): number | undefined {
  return new RegExp(`^(?:var|let|const) ${name.replaceAll('$', '\\$')} = `, 'm').exec(code)?.index
}

/** Names that stand for one another in a row; a ring of them ends. */
const MOST_NAMES = 8

/** The bracket that opens the object or list of a value, as a place in the text. Shape: at: where a statement or a value begins. */
function openingOf(code: string, at: number, names = MOST_NAMES): number | undefined {
  const rest = code.slice(at, at + 500)
  // A statement up to its value, and calls whose first argument is the definition: defineExtractor({ … }).
  const begin =
    /^(?:(?:var|let|const) [\w$]+ = |(?:module\.exports|exports\.default) = )?(?:[\w$.]+\(|\(0, [\w$.]+\)\()*/.exec(rest)?.[0].length ?? 0
  const first = code[at + begin]
  if (first === '{' || first === '[') return at + begin
  const name = /^[\w$]+(?=[;,)\s\]}])/.exec(rest.slice(begin))?.[0]
  const declared = name === undefined || names === 0 ? undefined : declarationOf(code, name)
  return declared === undefined ? undefined : openingOf(code, declared, names - 1)
}

interface Member {
  /** Where its key stands; of an item of a list, the item. */
  readonly key: number
  readonly value: number
}

const KEY = /^(?:(?:async |get |set )?(?:([A-Za-z_$][\w$]*)|"([^"\\]*)"|(\d+)))\s*(:\s*|\(|(?=[,}\s]))/

/** A key of the object, or an item of the list, that opens at a place. */
function memberOf(code: string, opening: number, key: string | number): Member | undefined {
  const isList = code[opening] === '['
  let item = 0
  let found: Member | undefined
  walk(code, opening + 1, (at) => {
    if (isList) {
      if (item === Number(key)) found ??= { key: at, value: at }
      item += 1
      return
    }
    const match = KEY.exec(code.slice(at, at + 300))
    if (match === null || String(key) !== (match[1] ?? match[2] ?? match[3])) return
    // The last of several is the one that counts. A short form (`schema,`) is its own value.
    found = { key: at, value: match[4] === '' ? at : at + match[0].length }
  })
  return found
}

/** Tells where each member of a bracket begins, until the bracket closes. Shape: from: one past the bracket. */
function walk(code: string, from: number, onMember: (at: number) => void): void {
  let depth = 0
  let isFresh = true
  for (const { at, char } of tokens(code, from)) {
    if (CLOSING.has(char)) {
      if (depth === 0) return
      depth -= 1
    } else if (isFresh) {
      isFresh = false
      onMember(at)
    }
    if (OPENING.has(char)) depth += 1
    if (char === ',' && depth === 0) isFresh = true
  }
}

const CLOSING = new Set(['}', ']', ')'])
const OPENING = new Set(['{', '[', '('])
const QUOTES = new Set(['"', "'", '`'])
/** A slash behind one of these begins a regular expression. */
const BEFORE_PATTERN = new Set([...'(,=:[!&|?{};+-*%<>~^', ''])
const WORD_BEFORE_PATTERN = /\b(?:return|typeof|case|in|of|do|else|void|delete|new|throw|yield|await)\s*$/

/** Characters of a code in their order, with texts and regular expressions told by their first one; spaces and comments are left out. */
function* tokens(code: string, from: number): Generator<{ readonly at: number; readonly char: string }> {
  let last = ''
  for (let at = from; at < code.length; ) {
    const char = code[at] ?? ''
    const comment = commentEnd(code, at)
    if (comment !== undefined || /\s/.test(char)) {
      at = comment ?? at + 1
      continue
    }
    yield { at, char }
    const isPattern = char === '/' && (BEFORE_PATTERN.has(last) || WORD_BEFORE_PATTERN.test(code.slice(Math.max(0, at - 20), at)))
    last = char
    if (QUOTES.has(char)) at = textEnd(code, at)
    else at = isPattern ? patternEnd(code, at) : at + 1
  }
}

function commentEnd(code: string, at: number): number | undefined {
  const close = code.startsWith('//', at) ? '\n' : code.startsWith('/*', at) ? '*/' : undefined
  if (close === undefined) return undefined
  const found = code.indexOf(close, at + 2)
  return found === -1 ? code.length : found + close.length
}

/** One past the closing quote. What a template has in braces is stepped over with its own texts. */
function textEnd(code: string, start: number): number {
  const quote = code[start]
  for (let at = start + 1; at < code.length; at += 1) {
    if (code[at] === '\\') at += 1
    else if (code[at] === quote) return at + 1
    else if (quote === '`' && code.startsWith('${', at)) at = closingOf(code, at + 2)
  }
  return code.length
}

/** The bracket that closes what was opened before a place. */
function closingOf(code: string, from: number): number {
  let depth = 0
  for (const { at, char } of tokens(code, from)) {
    if (OPENING.has(char)) depth += 1
    if (!CLOSING.has(char)) continue
    if (depth === 0) return at
    depth -= 1
  }
  return code.length
}

function patternEnd(code: string, start: number): number {
  let isClass = false
  for (let at = start + 1; at < code.length && code[at] !== '\n'; at += 1) {
    if (code[at] === '\\') at += 1
    else if (code[at] === '[') isClass = true
    else if (code[at] === ']') isClass = false
    else if (code[at] === '/' && !isClass) return at + 1
  }
  return start + 1
}
