import { errorText, MillraceError } from '../kernel/errors.ts'

/**
 * An Avro schema as a tree with all names resolved. What works on schemas (canonical form, checks of bytes and of values,
 * compatibility) works on this tree, so that it is told once how names, namespaces and logical types are read.
 * Source: Avro 1.11 specification.
 */
export type AvroNode = PrimitiveNode | FixedNode | EnumNode | ArrayNode | MapNode | UnionNode | RecordNode

export type PrimitiveName = 'null' | 'boolean' | 'int' | 'long' | 'float' | 'double' | 'string' | 'bytes'

export type Logical = { readonly name: 'timestamp-millis' } | { readonly name: 'date' } | DecimalLogical

export interface DecimalLogical {
  readonly name: 'decimal'
  readonly precision: number
  readonly scale: number
}

export interface PrimitiveNode {
  readonly kind: PrimitiveName
  readonly logical?: Logical
  /** Of a number: one that means nothing to Millrace, and something to who reads the records. */
  readonly unknownLogical?: string
}

export interface FixedNode {
  readonly kind: 'fixed'
  readonly name: string
  readonly aliases: readonly string[]
  readonly size: number
  readonly logical?: Logical
}

export interface EnumNode {
  readonly kind: 'enum'
  readonly name: string
  readonly aliases: readonly string[]
  readonly symbols: readonly string[]
  readonly defaultSymbol?: string
}

export interface ArrayNode {
  readonly kind: 'array'
  readonly items: AvroNode
}

export interface MapNode {
  readonly kind: 'map'
  readonly values: AvroNode
}

export interface UnionNode {
  readonly kind: 'union'
  readonly branches: readonly AvroNode[]
}

export interface RecordNode {
  readonly kind: 'record'
  readonly name: string
  readonly aliases: readonly string[]
  readonly fields: readonly FieldNode[]
}

export interface FieldNode {
  readonly name: string
  readonly aliases: readonly string[]
  readonly type: AvroNode
  readonly hasDefault: boolean
  /** As the schema writes it: JSON. */
  readonly defaultValue?: unknown
}

const PRIMITIVES: ReadonlySet<string> = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'string', 'bytes'])
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/** A schema may come from a foreign producer: its size, nesting and number of types are bounded. */
const MAX_TEXT = 1_048_576
const MAX_DEPTH = 64
const MAX_NODES = 20_000
/** A larger precision can't be meant, and would make a number of any length a cheap message. */
const MAX_PRECISION = 1_000

type Json = Readonly<Record<string, unknown>>

interface Reading {
  readonly names: Map<string, AvroNode>
  readonly unions: Map<unknown, UnionNode>
  nodes: number
}

export interface ParsedSchema {
  readonly json: unknown
  readonly root: AvroNode
  /** Each union of the tree by the list in `json` that it was read from. */
  readonly unions: ReadonlyMap<unknown, UnionNode>
}

/**
 * Parses the JSON text of a schema. Shape: names in the tree are full names.
 * Errors: SCHEMA_INVALID with the path of what is wrong.
 */
export function parseAvroSchema(text: string): ParsedSchema {
  if (text.length > MAX_TEXT) throw invalid('', `has ${text.length} characters; at most ${MAX_TEXT} are read`)
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new MillraceError('SCHEMA_INVALID', `the schema is no JSON: ${errorText(cause)}`, { cause })
  }
  const unions = new Map<unknown, UnionNode>()
  return { json, root: readNode(json, '', '', 0, { names: new Map(), unions, nodes: 0 }), unions }
}

function invalid(path: string, what: string): MillraceError {
  return new MillraceError('SCHEMA_INVALID', `the Avro schema${path === '' ? '' : ` at ${path}`} ${what}`)
}

function readNode(schema: unknown, namespace: string, path: string, depth: number, reading: Reading): AvroNode {
  if (depth > MAX_DEPTH) throw invalid(path, `is nested deeper than ${MAX_DEPTH} levels`)
  if (++reading.nodes > MAX_NODES) throw invalid(path, `has more than ${MAX_NODES} types`)
  if (typeof schema === 'string') return reference(schema, namespace, path, reading)
  if (Array.isArray(schema)) return readUnion(schema, namespace, path, depth, reading)
  if (typeof schema !== 'object' || schema === null) throw invalid(path, `is ${JSON.stringify(schema)}; expected a type`)
  const json = schema as Json
  const type = json.type
  if (type === 'record') return readRecord(json, namespace, path, depth, reading)
  if (type === 'enum') return readEnum(json, namespace, path, reading)
  if (type === 'fixed') return readFixed(json, namespace, path, reading)
  if (type === 'array') return { kind: 'array', items: readNode(json.items, namespace, `${path}[]`, depth + 1, reading) }
  if (type === 'map') return { kind: 'map', values: readNode(json.values, namespace, `${path}{}`, depth + 1, reading) }
  if (typeof type === 'string' && PRIMITIVES.has(type)) return readPrimitive(type as PrimitiveName, json)
  return readNode(type, namespace, path, depth + 1, reading)
}

function reference(name: string, namespace: string, path: string, reading: Reading): AvroNode {
  if (PRIMITIVES.has(name)) return { kind: name as PrimitiveName }
  const node = reading.names.get(qualified(name, namespace)) ?? reading.names.get(name)
  if (node === undefined) throw invalid(path, `names the type ${JSON.stringify(name)}, which is not defined before it`)
  return node
}

function readPrimitive(kind: PrimitiveName, json: Json): PrimitiveNode {
  const logical = logicalOf(json)
  if (logical !== undefined) return { kind, logical }
  const { logicalType } = json
  const isNumber = kind === 'int' || kind === 'long'
  return isNumber && typeof logicalType === 'string' ? { kind, unknownLogical: logicalType } : { kind }
}

/** A logical type that is unknown, or does not fit what it stands on, is ignored, as the specification says. */
export function logicalOf(json: Readonly<Record<string, unknown>>): Logical | undefined {
  const { type: kind, logicalType, precision, scale = 0 } = json
  if (logicalType === 'timestamp-millis' && kind === 'long') return { name: 'timestamp-millis' }
  if (logicalType === 'date' && kind === 'int') return { name: 'date' }
  if (logicalType !== 'decimal' || (kind !== 'bytes' && kind !== 'fixed')) return undefined
  if (!isCount(precision) || precision < 1 || precision > MAX_PRECISION || !isCount(scale) || scale > precision) return undefined
  return { name: 'decimal', precision, scale }
}

function readUnion(schemas: readonly unknown[], namespace: string, path: string, depth: number, reading: Reading): UnionNode {
  const branches = schemas.map((branch, index) => readNode(branch, namespace, `${path}|${index}`, depth + 1, reading))
  if (branches.some(({ kind }) => kind === 'union')) throw invalid(path, 'is a union right inside a union')
  const node: UnionNode = { kind: 'union', branches }
  reading.unions.set(schemas, node)
  return node
}

function readRecord(json: Json, namespace: string, path: string, depth: number, reading: Reading): RecordNode {
  const { name, inner, aliases } = readName(json, namespace, path)
  if (!Array.isArray(json.fields)) throw invalid(path || name, 'is a record without a list of fields')
  const fields: FieldNode[] = []
  const node: RecordNode = { kind: 'record', name, aliases, fields }
  define(name, node, path, reading)
  for (const field of json.fields as readonly unknown[]) {
    if (typeof field !== 'object' || field === null) throw invalid(path || name, 'has a field that is no object')
    const entry = field as Json
    const at = path === '' ? String(entry.name) : `${path}.${entry.name}`
    if (typeof entry.name !== 'string' || !NAME.test(entry.name)) throw invalid(at, 'has no valid field name')
    if (fields.some((other) => other.name === entry.name)) throw invalid(at, 'is a field that occurs twice')
    fields.push({
      name: entry.name,
      aliases: texts(entry.aliases),
      type: readNode(entry.type, inner, at, depth + 1, reading),
      hasDefault: Object.hasOwn(entry, 'default'),
      ...(Object.hasOwn(entry, 'default') ? { defaultValue: entry.default } : {}),
    })
  }
  return node
}

function readEnum(json: Json, namespace: string, path: string, reading: Reading): EnumNode {
  const { name, aliases } = readName(json, namespace, path)
  const symbols = texts(json.symbols)
  if (symbols.length === 0 || symbols.some((symbol) => !NAME.test(symbol)) || new Set(symbols).size !== symbols.length)
    throw invalid(path || name, 'is an enum without a list of distinct, valid symbols')
  const base: EnumNode = { kind: 'enum', name, aliases, symbols }
  if (json.default !== undefined && (typeof json.default !== 'string' || !symbols.includes(json.default)))
    throw invalid(path || name, `has the default ${JSON.stringify(json.default)}, which is none of its symbols`)
  const node: EnumNode = typeof json.default === 'string' ? { ...base, defaultSymbol: json.default } : base
  define(name, node, path, reading)
  return node
}

function readFixed(json: Json, namespace: string, path: string, reading: Reading): FixedNode {
  const { name, aliases } = readName(json, namespace, path)
  if (!isCount(json.size)) throw invalid(path || name, `has the size ${JSON.stringify(json.size)}; expected a number of bytes`)
  const logical = logicalOf(json)
  const base: FixedNode = { kind: 'fixed', name, aliases, size: json.size }
  const node = logical === undefined ? base : { ...base, logical }
  define(name, node, path, reading)
  return node
}

function define(name: string, node: AvroNode, path: string, reading: Reading): void {
  if (reading.names.has(name)) throw invalid(path, `defines the type ${name} a second time`)
  reading.names.set(name, node)
}

function readName(json: Json, enclosing: string, path: string): { name: string; inner: string; aliases: readonly string[] } {
  if (typeof json.name !== 'string') throw invalid(path, `is a ${json.type} without a name`)
  const namespace = typeof json.namespace === 'string' ? json.namespace : enclosing
  const name = qualified(json.name, namespace)
  if (!name.split('.').every((part) => NAME.test(part))) throw invalid(path, `has the name ${JSON.stringify(name)}, which is not valid`)
  const inner = name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : ''
  return { name, inner, aliases: texts(json.aliases).map((alias) => qualified(alias, inner)) }
}

function qualified(name: string, namespace: string): string {
  return name.includes('.') || namespace === '' ? name : `${namespace}.${name}`
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}
