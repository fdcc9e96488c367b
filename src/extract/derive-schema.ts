import { MillraceError } from '../kernel/errors.ts'
import { type AvroSchema, parseSchema } from '../message/avro.ts'
import { recordEnvelope } from '../message/schema-store.ts'
import { RECORDS_NAMESPACE } from '../message/subjects.ts'
import { type ExtractorDefinition, type FieldDefinition, type FieldType, pascalName } from './language/definition.ts'
import type { ValueType } from './values/value-type.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * Schema of the records of a declarative extractor: the fields of the envelope, then `data` with every field optional, `required`
 * included, so that fields can come and go compatibly.
 */
export function deriveSchema(definition: ExtractorDefinition): AvroSchema {
  const name = pascalName(definition.name)
  const data = recordType(`${name}Data`, `What ${definition.name} extracts.`, definition.fields)
  return recordSchema(definition.name, definition.description, data)
}

/**
 * Schema of the records of a code extractor: its own schema under the name `<PascalName>Data`. Errors: EXTRACTOR_INVALID where it is
 * no record, SCHEMA_INVALID where it is no schema.
 */
export function embedSchema(extractor: string, description: string | undefined, own: unknown): AvroSchema {
  if (!isRecordSchema(own)) {
    throw new MillraceError(
      'EXTRACTOR_INVALID',
      `the schema of extractor ${extractor} is ${shown(own)}; expected an Avro schema of type record`,
    )
  }
  const target = `${RECORDS_NAMESPACE}.${pascalName(extractor)}Data`
  const given = typeof own.name === 'string' ? own.name : ''
  const names = new Set([given, typeof own.namespace === 'string' ? `${own.namespace}.${given}` : given])
  // Names within it that have no namespace of their own keep the one they were written under.
  const inner = typeof own.namespace === 'string' ? own.namespace : given.includes('.') ? given.replace(/\.[^.]*$/, '') : undefined
  const fields = renamed(own.fields, names, target, inner)
  const { namespace: _, ...rest } = own
  return recordSchema(extractor, description, { ...rest, name: target, fields })
}

function recordSchema(extractor: string, description: string | undefined, data: Json): AvroSchema {
  const envelope = JSON.parse(recordEnvelope()) as { readonly fields: readonly Json[] }
  return parseSchema(
    JSON.stringify({
      type: 'record',
      name: pascalName(extractor),
      namespace: RECORDS_NAMESPACE,
      doc: description ?? `A record of the extractor ${extractor}.`,
      fields: [...envelope.fields, { name: 'data', type: data, doc: 'What was extracted.' }],
    }),
  )
}

function recordType(name: string, doc: string, fields: readonly FieldDefinition[]): Json {
  return {
    type: 'record',
    name,
    namespace: RECORDS_NAMESPACE,
    doc,
    fields: fields.map((field) => ({
      name: field.name,
      type: ['null', avroType(field.type, `${name}${field.name.slice(0, 1).toUpperCase()}${field.name.slice(1)}`)],
      doc: field.doc ?? `The field ${field.name}: ${typeText(field.type)}.`,
      default: null,
    })),
  }
}

function avroType(type: FieldType, nestedName: string): unknown {
  if (type.kind === 'list') return { type: 'array', items: avroType(type.items, nestedName) }
  if (type.kind === 'record') return recordType(nestedName, 'A nested record.', type.fields)
  return type.kind === 'money' ? moneyType(nestedName, type.scale) : scalarType(type)
}

/** Its parts are never null: an amount without a currency is no money. */
function moneyType(name: string, scale: number): Json {
  return {
    type: 'record',
    name,
    namespace: RECORDS_NAMESPACE,
    doc: 'An amount of one currency.',
    fields: [
      { name: 'amount', type: { type: 'bytes', logicalType: 'decimal', precision: 38, scale }, doc: 'In units of the currency.' },
      { name: 'currency', type: 'string', doc: 'ISO 4217.' },
    ],
  }
}

function scalarType(type: Exclude<ValueType, { kind: 'money' }>): unknown {
  switch (type.kind) {
    case 'string':
    case 'url':
    case 'html':
    case 'markdown':
      return 'string'
    case 'decimal':
      return { type: 'bytes', logicalType: 'decimal', precision: 38, scale: type.scale }
    case 'date':
      return { type: 'int', logicalType: 'date' }
    case 'timestamp':
      return { type: 'long', logicalType: 'timestamp-millis' }
    default:
      return type.kind
  }
}

function typeText(type: FieldType): string {
  if (type.kind === 'list') return `list of ${type.items.kind}`
  return type.kind === 'decimal' ? `decimal with ${type.scale} digits behind the point` : type.kind
}

function isRecordSchema(schema: unknown): schema is Json & { readonly fields: readonly unknown[] } {
  return (
    typeof schema === 'object' &&
    schema !== null &&
    'type' in schema &&
    schema.type === 'record' &&
    'fields' in schema &&
    Array.isArray(schema.fields)
  )
}

/** References of a schema to itself, under whichever of its names, point to its new name. */
function renamed(node: unknown, names: ReadonlySet<string>, target: string, namespace: string | undefined): unknown {
  if (typeof node === 'string') return names.has(node) ? target : node
  if (Array.isArray(node)) return node.map((item: unknown) => renamed(item, names, target, namespace))
  if (typeof node !== 'object' || node === null) return node
  const json = node as Json
  const own = namespace !== undefined && isNamed(json) && json.namespace === undefined ? { namespace } : {}
  const entries = Object.entries(json).map(([key, value]) => {
    const isType = key === 'type' || key === 'items' || key === 'values' || key === 'fields'
    return [key, isType ? renamed(value, names, target, namespace) : value]
  })
  return { ...own, ...Object.fromEntries(entries) }
}

function isNamed({ type, name }: Json): boolean {
  return typeof name === 'string' && !name.includes('.') && (type === 'record' || type === 'enum' || type === 'fixed')
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
