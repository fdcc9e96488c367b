import { errorText } from '../../kernel/errors.ts'
import { isNode, type JsonNode, type JsonValue } from './json-node.ts'

/** JSON-LD of a page and what was wrong with it. */
export interface JsonLd {
  /** Outermost nodes in document order: lists and graphs are opened, everything that is no node is left out. */
  readonly nodes: readonly JsonNode[]
  readonly notes: readonly JsonLdNote[]
}

export interface JsonLdNote {
  /** Number of the script on the page, from 0. */
  readonly block: number
  /** repaired: read after a repair that has one meaning; broken: left out. */
  readonly kind: 'repaired' | 'broken'
  readonly detail: string
}

/** Names by which a careless merge would change every object there is; no vocabulary has them. */
const NEVER_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** One block never hides another. Shape: texts of the scripts in document order. Errors: none; notes say what was left out. */
export function parseJsonLd(scripts: readonly string[]): JsonLd {
  const nodes: JsonNode[] = []
  const notes: JsonLdNote[] = []
  scripts.forEach((text, block) => {
    const parsed = parseBlock(text)
    if (parsed.note !== undefined) notes.push({ block, ...parsed.note })
    collect(parsed.value, nodes)
  })
  return { nodes, notes }
}

interface ParsedBlock {
  readonly value: JsonValue
  readonly note?: Omit<JsonLdNote, 'block'>
}

/** As it stands first; repaired only when that fails, so that nothing valid is ever changed. */
function parseBlock(text: string): ParsedBlock {
  if (text.trim() === '') return { value: null }
  try {
    return { value: parseJson(text) }
  } catch (strict) {
    const detail = errorText(strict)
    try {
      return { value: parseJson(repaired(text)), note: { kind: 'repaired', detail } }
    } catch {
      return { value: null, note: { kind: 'broken', detail } }
    }
  }
}

function parseJson(text: string): JsonValue {
  const mayPollute = text.includes('__proto__') || text.includes('constructor') || text.includes('prototype') || text.includes('\\u00')
  const reviver = mayPollute ? (key: string, value: unknown) => (NEVER_KEYS.has(key) ? undefined : value) : undefined
  const value = JSON.parse(text, reviver) as JsonValue
  return /\d{16}/.test(text) ? (JSON.parse(withLongNumbersAsText(text), reviver) as JsonValue) : value
}

/** A whole number beyond what a JavaScript number holds is an identifier, and stays as it is written. Shape: text is valid JSON. */
function withLongNumbersAsText(text: string): string {
  return text.replace(STRING_OR_NUMBER, (part) => (/^-?\d{16,}$/.test(part) && !Number.isSafeInteger(Number(part)) ? `"${part}"` : part))
}

const STRING = '"[^"\\\\]*(?:\\\\[^][^"\\\\]*)*"'
const STRING_OR_NUMBER = new RegExp(`${STRING}|-?\\d[\\d.eE+-]*`, 'g')
const STRING_OR_LAST_COMMA = new RegExp(`(${STRING})|,(?=\\s*[}\\]])`, 'g')

/** Wrappers around the JSON, what stands behind it, commas before a closing bracket, line breaks and tabs within strings. */
function repaired(text: string): string {
  const opened = text
    .replace(/^\uFEFF/, '')
    .trim()
    .replace(/^(?:\/\/|\/\*)?\s*(?:<!\[CDATA\[|<!--)\s*(?:\*\/)?/, '')
  const bare = withoutEnd(withoutClosing(opened), ';,')
  // Strings are passed over whole, so that a comma or a line break is judged by where it stands.
  return bare.replace(STRING_OR_LAST_COMMA, (_part, string: string | undefined) =>
    string === undefined ? '' : string.replace(CONTROL, escaped),
  )
}

/** Without `]]>` or `-->` at the end, in a comment or not. Patterns that end in `$` would try again at every white space of a page. */
function withoutClosing(text: string): string {
  const inner = (text.endsWith('*/') ? text.slice(0, -2) : text).trimEnd()
  if (!inner.endsWith(']]>') && !inner.endsWith('-->')) return text
  const before = inner.slice(0, -3).trimEnd()
  return before.endsWith('//') || before.endsWith('/*') ? before.slice(0, -2) : before
}

function withoutEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && (characters.includes(text[end - 1] ?? '') || /\s/.test(text[end - 1] ?? ''))) end -= 1
  return text.slice(0, end)
}

/** Characters that JSON allows in a string only as escapes. */
const CONTROL = new RegExp(`[${String.fromCharCode(0)}-${String.fromCharCode(31)}]`, 'g')

function escaped(character: string): string {
  return JSON.stringify(character).slice(1, -1)
}

/** No recursion: a page may nest graphs as deep as it likes. */
function collect(outer: JsonValue, nodes: JsonNode[]): void {
  const waiting: JsonValue[] = [outer]
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (Array.isArray(value)) {
      // The last one is taken first: pushed backwards, they come in document order.
      for (const item of (value as readonly JsonValue[]).toReversed()) if (!Array.isArray(item)) waiting.push(item)
    } else if (isNode(value)) {
      const graph = Object.hasOwn(value, '@graph') ? value['@graph'] : undefined
      if (graph === undefined || Object.hasOwn(value, '@type')) nodes.push(value)
      if (graph !== undefined) waiting.push(graph)
    }
  }
}
