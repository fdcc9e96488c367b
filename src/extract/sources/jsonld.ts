import { errorText } from '../../kernel/errors.ts'
import { isNode, type JsonNode, type JsonValue } from './json-node.ts'
import { repairedJson, withoutEntities } from './json-repair.ts'

/** JSON-LD of a page and what was wrong with it. */
export interface JsonLd {
  /** Outermost nodes in document order: lists and graphs are opened, everything that is no node is left out. */
  readonly nodes: readonly JsonNode[]
  /** The same, script by script. */
  readonly blocks: readonly (readonly JsonNode[])[]
  readonly notes: readonly JsonLdNote[]
}

export interface JsonLdNote {
  /** Number of the script on the page, from 0. */
  readonly block: number
  /** repaired: read after a repair that has one meaning; broken: left out. */
  readonly kind: 'repaired' | 'broken'
  readonly detail: string
}

/** How many blocks of a page are no JSON, by what became of them. */
export type JsonLdFaults = Readonly<Record<JsonLdNote['kind'], number>>

export function jsonLdFaults(notes: readonly JsonLdNote[]): JsonLdFaults {
  const repaired = notes.filter(({ kind }) => kind === 'repaired').length
  return { repaired, broken: notes.length - repaired }
}

/** Names by which a careless merge would change every object there is; no vocabulary has them. */
const NEVER_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** One block never hides another. Shape: texts of the scripts in document order. Errors: none; notes say what was left out. */
export function parseJsonLd(scripts: readonly string[]): JsonLd {
  const notes: JsonLdNote[] = []
  const blocks = scripts.map((text, block) => {
    const nodes: JsonNode[] = []
    const parsed = parseBlock(text)
    if (parsed.note !== undefined) notes.push({ block, ...parsed.note })
    for (const value of parsed.values) collect(value, nodes)
    return nodes
  })
  return { nodes: blocks.flat(), blocks, notes }
}

interface ParsedBlock {
  readonly values: readonly JsonValue[]
  readonly note?: Omit<JsonLdNote, 'block'>
}

/** As it stands first; repaired only when that fails, so that nothing valid is ever changed. */
function parseBlock(text: string): ParsedBlock {
  if (text.trim() === '') return { values: [] }
  try {
    return { values: [parseJson(text)] }
  } catch (strict) {
    const detail = errorText(strict)
    try {
      const values = (repairedJson(withoutEntities(text) ?? text) ?? []).map(parseJson)
      return values.length === 0 ? { values, note: { kind: 'broken', detail } } : { values, note: { kind: 'repaired', detail } }
    } catch {
      return { values: [], note: { kind: 'broken', detail } }
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

/** No recursion: a page may nest graphs as deep as it likes. */
function collect(outer: JsonValue, nodes: JsonNode[]): void {
  const waiting: JsonValue[] = [outer]
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (Array.isArray(value)) {
      // The last one is taken first: pushed backwards, they come in document order.
      for (const item of (value as readonly JsonValue[]).toReversed()) waiting.push(item)
    } else if (isNode(value)) {
      const graph = Object.hasOwn(value, '@graph') ? value['@graph'] : undefined
      if (graph === undefined || Object.hasOwn(value, '@type')) nodes.push(value)
      if (graph !== undefined) waiting.push(graph)
    }
  }
}
