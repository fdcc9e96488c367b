import { countText } from '../kernel/count-text.ts'
import type { AvroNode, DecimalLogical, FieldNode, RecordNode, UnionNode } from './avro-schema.ts'

/** Why data can't be read; path of the field in the reader's schema. */
export interface Incompatibility {
  readonly path: string
  readonly reason: string
}

/**
 * Which way schemas of one subject must be readable, against all older ones.
 * - BACKWARD_TRANSITIVE: the new one reads what every old one wrote (records: sinks move on, replays read old data), and a number means
 *   the same in both: Avro resolves days (date) to a plain int or to milliseconds without a word, and a registry takes it.
 * - FULL_TRANSITIVE: that, and every old one reads what the new one writes (messages: workers of several versions run at once).
 */
export type CompatibilityLevel = 'BACKWARD_TRANSITIVE' | 'FULL_TRANSITIVE'

/** What a schema says of its data. */
interface Rooted {
  readonly root: AvroNode
}

/** Shape: empty when the new schema may follow the older ones. */
export function compatibilityProblems(level: CompatibilityLevel, next: Rooted, older: readonly Rooted[]): readonly Incompatibility[] {
  const isFull = level === 'FULL_TRANSITIVE'
  return older.flatMap((old) => {
    const pairs = isFull ? [[next, old] as const, [old, next] as const] : [[next, old] as const]
    return pairs.flatMap(([reader, writer]) =>
      compare(reader.root, writer.root, '', { seen: new Map(), isSameMeaning: !isFull, isReading: false }),
    )
  })
}

/**
 * Why a reader can't read what a writer wrote. Shape: empty when it can. A plain number may stand for a date or a time: foreign producers
 * may know no logical types. Nor does the null of a union count that has other branches: they may declare what they never write, and a null
 * where none can be read is a matter of its message.
 * Source: Avro 1.11 specification, "Schema Resolution"; record, enum and fixed names are compared without namespace.
 */
export function readProblems(reader: Rooted, writer: Rooted): readonly Incompatibility[] {
  return compare(reader.root, writer.root, '', { seen: new Map(), isSameMeaning: false, isReading: true })
}

/**
 * With what `readProblems` lets pass: where a null may have been written that the reader can't read. Shape: empty when it can read all of
 * it.
 */
export function nullProblems(reader: Rooted, writer: Rooted): readonly Incompatibility[] {
  return compare(reader.root, writer.root, '', { seen: new Map(), isSameMeaning: false, isReading: false })
}

/**
 * Where two schemas of one fingerprint read the same bytes as other values: the scale of a decimal, a date for a plain number. The parsing
 * canonical form knows no logical types. Shape: empty where either stands for the other.
 */
export function meaningProblems(one: Rooted, other: Rooted): readonly Incompatibility[] {
  const found = [
    ...compatibilityProblems('BACKWARD_TRANSITIVE', one, [other]),
    ...compatibilityProblems('BACKWARD_TRANSITIVE', other, [one]),
  ]
  const byPath = new Map(found.toReversed().map((problem) => [problem.path, problem]))
  return [...byPath.values()].reverse()
}

interface Comparison {
  readonly seen: Map<AvroNode, Set<AvroNode>>
  /** Whether a plain number is told from one with a logical type. */
  readonly isSameMeaning: boolean
  /** Whether the null of a writer's union may be one that can't be read. */
  readonly isReading: boolean
}

function compare(reader: AvroNode, writer: AvroNode, path: string, how: Comparison): readonly Incompatibility[] {
  const { seen } = how
  const pairs = seen.get(reader) ?? new Set()
  // A pair that is being compared further up (a recursive schema) is decided there.
  if (pairs.has(writer)) return []
  if (reader.kind === 'record') seen.set(reader, pairs.add(writer))
  if (writer.kind === 'union') return fromUnion(reader, writer, path, how)
  if (reader.kind === 'union') return intoUnion(reader, writer, path, how)
  if (reader.kind === 'record' && writer.kind === 'record') return compareRecords(reader, writer, path, how)
  if (reader.kind === 'array' && writer.kind === 'array') return compare(reader.items, writer.items, `${path}[]`, how)
  if (reader.kind === 'map' && writer.kind === 'map') return compare(reader.values, writer.values, `${path}{}`, how)
  if (reader.kind === 'enum' && writer.kind === 'enum') return compareEnums(reader, writer, path)
  if (!promotes(writer.kind, reader.kind)) return [{ path, reason: `a ${reader.kind} can't be read from a ${writer.kind}` }]
  if (reader.kind === 'fixed' && writer.kind === 'fixed' && (reader.size !== writer.size || !sameName(reader, writer)))
    return [
      { path, reason: `the fixed ${reader.name} of ${countText(reader.size, 'byte')} can't be read from ${writer.name} of ${writer.size}` },
    ]
  return compareLogical(reader, writer, path, how)
}

function fromUnion(reader: AvroNode, writer: UnionNode, path: string, how: Comparison): readonly Incompatibility[] {
  const values = how.isReading ? writer.branches.filter(({ kind }) => kind !== 'null') : []
  return (values.length > 0 ? values : writer.branches).flatMap((branch) => compare(reader, branch, path, how))
}

/**
 * The branch that fits; where none does, the trouble of the branch that was meant: the one of the writer's kind, or that it promotes to.
 */
function intoUnion(reader: UnionNode, writer: AvroNode, path: string, how: Comparison): readonly Incompatibility[] {
  const results = reader.branches.map((branch) => ({ branch, problems: compare(branch, writer, path, copyOf(how)) }))
  if (results.some(({ problems }) => problems.length === 0)) return []
  const meant =
    results.find(({ branch }) => branch.kind === writer.kind) ?? results.find(({ branch }) => promotes(writer.kind, branch.kind))
  if (meant !== undefined) return meant.problems
  return [{ path, reason: `a union of ${reader.branches.map(({ kind }) => kind).join(', ')} can't be read from a ${writer.kind}` }]
}

function copyOf({ seen, ...how }: Comparison): Comparison {
  return { ...how, seen: new Map([...seen].map(([reader, writers]) => [reader, new Set(writers)])) }
}

function compareRecords(reader: RecordNode, writer: RecordNode, path: string, how: Comparison): readonly Incompatibility[] {
  if (!sameName(reader, writer)) {
    return [{ path, reason: `the record ${reader.name} can't be read from ${writer.name}: it has neither that name nor an alias for it` }]
  }
  return reader.fields.flatMap((field) => {
    const at = path === '' ? field.name : `${path}.${field.name}`
    const source = sourceOf(field, writer)
    if (source !== undefined) return compare(field.type, source.type, at, how)
    return field.hasDefault ? [] : [{ path: at, reason: 'the writer has no such field, and it has no default' }]
  })
}

function sourceOf(field: FieldNode, writer: RecordNode): FieldNode | undefined {
  return writer.fields.find(({ name }) => name === field.name) ?? writer.fields.find(({ name }) => field.aliases.includes(name))
}

function compareEnums(reader: AvroNode & { kind: 'enum' }, writer: AvroNode & { kind: 'enum' }, path: string): readonly Incompatibility[] {
  if (!sameName(reader, writer)) return [{ path, reason: `the enum ${reader.name} can't be read from ${writer.name}` }]
  const unknown = writer.symbols.filter((symbol) => !reader.symbols.includes(symbol))
  if (unknown.length === 0 || reader.defaultSymbol !== undefined) return []
  return [{ path, reason: `the enum lacks the symbols ${unknown.join(', ')} and has no default` }]
}

function compareLogical(reader: AvroNode, writer: AvroNode, path: string, { isSameMeaning }: Comparison): readonly Incompatibility[] {
  const [read, written] = [decimalOf(reader), decimalOf(writer)]
  const fits =
    read === undefined || written === undefined
      ? isSameLogical(logicalName(reader), logicalName(writer), isNumber(writer) && !isSameMeaning)
      : read.scale === written.scale && read.precision >= written.precision
  return fits ? [] : [{ path, reason: `${logicalText(reader)} can't be read from ${logicalText(writer)}` }]
}

function isSameLogical(read: string | undefined, written: string | undefined, mayBePlain: boolean): boolean {
  return read === written || (mayBePlain && (read === undefined || written === undefined))
}

function isNumber({ kind }: AvroNode): boolean {
  return kind === 'int' || kind === 'long'
}

function logicalText(node: AvroNode): string {
  const decimal = decimalOf(node)
  if (decimal !== undefined) return `a decimal of precision ${decimal.precision} and scale ${decimal.scale}`
  const name = logicalName(node)
  if (name !== undefined) return `a ${name}`
  return node.kind === 'bytes' ? 'plain bytes' : `a plain ${node.kind}`
}

function decimalOf(node: AvroNode): DecimalLogical | undefined {
  return 'logical' in node && node.logical?.name === 'decimal' ? node.logical : undefined
}

function logicalName(node: AvroNode): string | undefined {
  if ('unknownLogical' in node) return node.unknownLogical
  return 'logical' in node ? node.logical?.name : undefined
}

const PROMOTIONS: Readonly<Record<string, readonly string[]>> = {
  int: ['long', 'float', 'double'],
  long: ['float', 'double'],
  float: ['double'],
  string: ['bytes'],
  bytes: ['string'],
}

function promotes(from: string, to: string): boolean {
  return from === to || (PROMOTIONS[from]?.includes(to) ?? false)
}

function sameName(reader: { readonly name: string; readonly aliases: readonly string[] }, writer: { readonly name: string }): boolean {
  const simple = simpleName(writer.name)
  return simpleName(reader.name) === simple || reader.aliases.some((alias) => simpleName(alias) === simple)
}

function simpleName(fullName: string): string {
  return fullName.slice(fullName.lastIndexOf('.') + 1)
}
