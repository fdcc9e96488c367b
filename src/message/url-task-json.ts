import { errorText, MillraceError } from '../kernel/errors.ts'
import { nearestName } from '../kernel/nearest.ts'
import type { AvroSchema } from './avro.ts'
import type { AvroNode, RecordNode } from './avro-schema.ts'
import type { UrlTask } from './generated/types.ts'
import { newUrlTask } from './url-task.ts'

/**
 * Tasks as JSON, for console producers: plain JSON without union tags, with UrlTask's names; times as epoch ms or as ISO 8601 with
 * zone, bytes as base64. Strict on purpose: a misspelt name that passed would be a task that does something else than was asked.
 */

/** True where a value on `urls*` is meant as JSON; neither framing of Avro begins so. */
export function looksLikeJson(bytes: Uint8Array): boolean {
  for (const byte of bytes) {
    if (byte === 0x7b) return true
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return false
  }
  return false
}

/** Errors: MESSAGE_MALFORMED for no JSON, TASK_FIELD_INVALID naming the field. */
export function readUrlTaskJson(schema: AvroSchema, bytes: Uint8Array): UrlTask {
  const json = parseJson(bytes)
  if (schema.root.kind !== 'record') throw new MillraceError('INTERNAL', `the schema ${schema.name} is no record`)
  return newUrlTask(readRecord(schema.root, json, '') as Partial<UrlTask> & { readonly url: string })
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new MillraceError('MESSAGE_MALFORMED', `the value begins with { but is no JSON: ${errorText(cause)}`, { cause })
  }
}

function readRecord(node: RecordNode, value: unknown, path: string): Record<string, unknown> {
  const given = entries(value, path)
  const names = node.fields.map(({ name }) => name)
  for (const [name] of given) {
    if (names.includes(name)) continue
    const near = nearestName(name.slice(0, 64), names)
    throw invalid(joined(path, name.slice(0, 64)), `is no field of a task${near === undefined ? '' : `; did you mean ${near}?`}`)
  }
  const out: Record<string, unknown> = {}
  const byName = new Map(given)
  for (const field of node.fields) {
    const at = joined(path, field.name)
    if (byName.has(field.name)) out[field.name] = read(field.type, byName.get(field.name), at)
    else if (!field.hasDefault) throw invalid(at, 'is missing')
    // The task's own defaults are newUrlTask's; a record inside it has nobody else to fill them in.
    else if (path !== '') out[field.name] = read(field.type, field.defaultValue, at)
  }
  return out
}

function read(node: AvroNode, value: unknown, path: string): unknown {
  switch (node.kind) {
    case 'union': {
      if (value === null) return null
      const branch = node.branches.find(({ kind }) => kind !== 'null')
      return branch === undefined ? null : read(branch, value, path)
    }
    case 'record':
      return readRecord(node, value, path)
    case 'array':
      if (!Array.isArray(value)) throw wrong(path, value, 'a list')
      return value.map((item, index) => read(node.items, item, `${path}[${index}]`))
    case 'map':
      return Object.fromEntries(
        entries(value, path).map(([key, item]) => [key.toWellFormed(), read(node.values, item, joined(path, key.slice(0, 64)))]),
      )
    case 'enum':
      if (typeof value !== 'string' || !node.symbols.includes(value)) throw wrong(path, value, `one of ${node.symbols.join(', ')}`)
      return value
    case 'string':
      if (typeof value !== 'string') throw wrong(path, value, 'text')
      // As it will be in Avro: ids that differ from their copies on other topics would never be found again.
      return value.toWellFormed()
    case 'bytes':
      if (typeof value !== 'string' || !BASE64.test(value)) throw wrong(path, value, 'bytes in base64')
      return Buffer.from(value, 'base64')
    case 'boolean':
      if (typeof value !== 'boolean') throw wrong(path, value, 'true or false')
      return value
    case 'int':
      if (value !== ((value as number) | 0)) throw wrong(path, value, 'an integer of 32 bits')
      return value
    case 'long':
      return readTime(value, path)
    default:
      throw new MillraceError('INTERNAL', `a task has no fields of type ${node.kind}, as ${path} is`)
  }
}

/** Shape: `__proto__` would not survive as a key of a plain object, so it is refused like any unknown name. */
function entries(value: unknown, path: string): readonly (readonly [string, unknown])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(path, value, 'an object')
  const found = Object.entries(value)
  if (found.some(([key]) => key === '__proto__')) throw invalid(joined(path, '__proto__'), 'is a name that is not taken')
  return found
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const ISO = /^(\d{4}-\d{2}-\d{2})[Tt]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:?\d{2})$/

function readTime(value: unknown, path: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  const expected = 'a time as epoch ms or as ISO 8601 with zone, such as 2026-01-31T12:00:00Z'
  const match = typeof value === 'string' ? ISO.exec(value) : null
  if (match === null || typeof value !== 'string') throw wrong(path, value, expected)
  const ms = Date.parse(value.toUpperCase().replace(/([+-]\d{2})(\d{2})$/, '$1:$2'))
  // 30 February would be taken as 2 March.
  const day = Date.parse(`${match[1]}T00:00:00Z`)
  if (Number.isNaN(ms) || Number.isNaN(day) || !new Date(day).toISOString().startsWith(match[1] ?? '')) throw wrong(path, value, expected)
  return ms
}

function joined(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

function wrong(path: string, value: unknown, expected: string): MillraceError {
  // A nested value is not shown: it may be nested too deep to be written.
  const text = Array.isArray(value) ? 'a list' : typeof value === 'object' && value !== null ? 'an object' : JSON.stringify(value)
  return invalid(path, `is ${text.length > 80 ? `${text.slice(0, 80)}…` : text}; expected ${expected}`)
}

function invalid(path: string, what: string): MillraceError {
  return new MillraceError('TASK_FIELD_INVALID', `the task's field ${path === '' ? '(the whole)' : path} ${what}`, {
    context: { field: path },
  })
}
