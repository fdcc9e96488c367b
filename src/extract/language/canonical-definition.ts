import { createHash } from 'node:crypto'
import type { ExtractorDefinition, FieldDefinition } from './definition.ts'

/**
 * sha256 of what decides the output of an extractor, hex. Two files with one hash give the same records: white space, comments,
 * short forms, descriptions, `links` and the topic are no part of it; the order of fields is, since the bytes follow it.
 */
export function definitionSha256(definition: ExtractorDefinition): string {
  const { name, version, match, when, parse, each, key, fields } = definition
  return sha256OfJson({ kind: 'declarative', name, version, match, when, parse, each, key, fields: fields.map(withoutDoc) })
}

/** sha256 of the JSON of a value with the keys of every object sorted and undefined left out. */
export function sha256OfJson(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(value, (_key, inner: unknown) => (isPlain(inner) ? sorted(inner) : inner)))
    .digest('hex')
}

function withoutDoc({ doc: _, ...field }: FieldDefinition): unknown {
  const { type } = field
  if (type.kind === 'record') return { ...field, type: { ...type, fields: type.fields.map(withoutDoc) } }
  if (type.kind === 'list' && type.items.kind === 'record') {
    return { ...field, type: { ...type, items: { ...type.items, fields: type.items.fields.map(withoutDoc) } } }
  }
  return field
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function sorted(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
}
