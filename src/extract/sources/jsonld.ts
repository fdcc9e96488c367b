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
  return JSON.parse(text, mayPollute ? (key, value) => (NEVER_KEYS.has(key) ? undefined : value) : undefined) as JsonValue
}

/** Wrappers around the JSON, what stands behind it, commas before a closing bracket, line breaks and tabs within strings. */
function repaired(text: string): string {
  const bare = text
    .replace(/^\uFEFF/, '')
    .trim()
    .replace(/^(?:\/\/|\/\*)?\s*(?:<!\[CDATA\[|<!--)\s*(?:\*\/)?/, '')
    .replace(/(?:\/\/|\/\*)?\s*(?:\]\]>|-->)\s*(?:\*\/)?$/, '')
    .trim()
    .replace(/[;,\s]+$/, '')
  // Strings are passed over whole, so that a comma or a line break is judged by where it stands.
  const result = bare.replace(/("(?:[^"\\]|\\[\s\S])*")|,(?=\s*[}\]])/g, (_part, string: string | undefined) =>
    string === undefined ? '' : string.replace(CONTROL, escaped),
  )
  return result
}

/** Characters that JSON allows in a string only as escapes. */
const CONTROL = new RegExp(`[${String.fromCharCode(0)}-${String.fromCharCode(31)}]`, 'g')

function escaped(character: string): string {
  return JSON.stringify(character).slice(1, -1)
}

function collect(value: JsonValue, nodes: JsonNode[]): void {
  if (Array.isArray(value)) {
    for (const item of value as readonly JsonValue[]) if (!Array.isArray(item)) collect(item, nodes)
    return
  }
  if (!isNode(value)) return
  const graph = Object.hasOwn(value, '@graph') ? value['@graph'] : undefined
  if (graph === undefined || Object.hasOwn(value, '@type')) nodes.push(value)
  if (graph !== undefined) collect(graph, nodes)
}
