import type { Type } from 'avsc'
import avro from 'avsc'
import { countText, isAre } from '../kernel/count-text.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { mendBranches } from './avro-branches.ts'
import { bytesCheck } from './avro-bytes.ts'
import { type AvroNode, logicalOf, type ParsedSchema, parseAvroSchema } from './avro-schema.ts'
import { mendTap } from './avro-tap.ts'
import { type BranchOf, type ValueChecks, valueChecks } from './avro-value.ts'
import { canonicalForm, crc64Avro } from './canonical-form.ts'
import { type Incompatibility, nullProblems, readProblems } from './compatibility.ts'

/**
 * The only importer of the Avro library. It encodes and decodes; what it trusts (counts, lengths, branches, field names) is checked
 * before it by our own walk over bytes and values.
 */
export interface AvroSchema {
  /** Full name; the kind where the schema has no name. */
  readonly name: string
  /** CRC-64-AVRO of the parsing canonical form; 16 hex characters. */
  readonly fingerprint: string
  /** As it was given. */
  readonly text: string
  readonly canonical: string
  readonly root: AvroNode
  /** Binary encoding without any framing. Errors: MESSAGE_INVALID naming the field. */
  encode(value: unknown): Buffer
  /**
   * Value of bytes that this schema wrote, from `start` to the end, resolved to `reader` where one is given (renames by alias,
   * defaults for fields that the writer did not have). Errors: MESSAGE_MALFORMED naming the field; SCHEMA_INCOMPATIBLE where
   * nothing that this schema writes can be read as `reader`.
   */
  decode(bytes: Buffer, start?: number, reader?: AvroSchema): unknown
}

mendTap()
mendBranches()

type LibrarySchema = Parameters<typeof avro.Type.forSchema>[0]
type Resolver = ReturnType<Type['createResolver']>

/** Parses the JSON text of a schema. Errors: SCHEMA_INVALID. */
export function parseSchema(text: string): AvroSchema {
  const parsed = parseAvroSchema(text)
  const { root } = parsed
  const canonical = canonicalForm(root)
  const fingerprint = crc64Avro(canonical)
  const values = valueChecks(root)
  const type = libraryType(parsed, values)
  const findBytesProblem = bytesCheck(root)
  const name = 'name' in root ? root.name : root.kind
  const schema: AvroSchema = {
    name,
    fingerprint,
    text,
    canonical,
    root,
    encode(value) {
      const problem = values.problem(value)
      if (problem !== undefined) throw new MillraceError('MESSAGE_INVALID', `can't write ${name}: ${problem}`)
      try {
        return type.toBuffer(value)
      } catch (cause) {
        throw new MillraceError('MESSAGE_INVALID', `can't write ${name}: ${errorText(cause)}`, { cause })
      }
    },
    decode(bytes, start = 0, reader) {
      const resolver = reader === undefined || reader === schema ? undefined : resolverOf(reader, schema)
      const readerType = reader === undefined ? type : (TYPES.get(reader) ?? type)
      const problem = findBytesProblem(bytes, start)
      if (problem !== undefined) throw malformed(name, problem)
      try {
        return readerType.fromBuffer(start === 0 ? bytes : bytes.subarray(start), resolver)
      } catch (cause) {
        // The library names no field; it can only be one of these, where a null was written that the reader can't read.
        const nulls = reader === undefined ? [] : nullProblems(reader, schema)
        throw malformed(name, nulls.length === 0 ? errorText(cause) : problemsText(nulls), cause)
      }
    },
  }
  TYPES.set(schema, type)
  return schema
}

function malformed(name: string, problem: string, cause?: unknown): MillraceError {
  return new MillraceError('MESSAGE_MALFORMED', `the bytes are no ${name}: ${problem}`, { cause })
}

const TYPES = new WeakMap<AvroSchema, Type>()
const RESOLVERS = new WeakMap<AvroSchema, WeakMap<AvroSchema, Resolver>>()

/** Cached per pair of schema objects: a fingerprint leaves out defaults and aliases, which the resolver needs. */
function resolverOf(reader: AvroSchema, writer: AvroSchema): Resolver {
  const known = RESOLVERS.get(reader)?.get(writer)
  if (known !== undefined) return known
  const [readerType, writerType] = [TYPES.get(reader), TYPES.get(writer)]
  if (readerType === undefined || writerType === undefined) throw new MillraceError('INTERNAL', 'a schema was not made by parseSchema')
  const problems = readProblems(reader, writer)
  if (problems.length > 0) throw incompatible(reader, writer, problemsText(problems))
  let resolver: Resolver
  try {
    // Names are compared without namespace, as the specification says: a foreign producer may leave it out.
    resolver = readerType.createResolver(writerType, { ignoreNamespaces: true })
  } catch (cause) {
    throw incompatible(reader, writer, errorText(cause), cause)
  }
  const byWriter = RESOLVERS.get(reader) ?? new WeakMap<AvroSchema, Resolver>()
  byWriter.set(writer, resolver)
  RESOLVERS.set(reader, byWriter)
  return resolver
}

function problemsText(problems: readonly Incompatibility[]): string {
  return problems.map(({ path, reason }) => (path === '' ? reason : `field ${path}: ${reason}`)).join('; ')
}

function incompatible(reader: AvroSchema, writer: AvroSchema, why: string, cause?: unknown): MillraceError {
  const text = `what ${writer.name} (${writer.fingerprint}) writes can't be read as ${reader.name}: ${why}`
  return new MillraceError('SCHEMA_INCOMPATIBLE', text, { cause })
}

function libraryType({ json, unions }: ParsedSchema, { branchOf }: ValueChecks): Type {
  try {
    return avro.Type.forSchema(json as LibrarySchema, {
      omitRecordMethods: true,
      logicalTypes: { decimal: DecimalType, date: DateType },
      typeHook(schema, options) {
        const union = unions.get(schema)
        const branch = union === undefined ? undefined : branchOf.get(union)
        return branch === undefined ? undefined : unionType(schema, options, branch)
      },
    })
  } catch (cause) {
    throw new MillraceError('SCHEMA_INVALID', `the Avro schema can't be used: ${errorText(cause)}`, { cause })
  }
}

/** What the library's types are to each other. */
interface InnerType {
  _read(tap: unknown): unknown
  _write(tap: unknown, value: unknown): void
  _copy(value: unknown, options?: CopyOptions): unknown
  createResolver(writer: Type, options: unknown): { _read(tap: unknown): unknown }
}

interface CopyOptions {
  readonly wrap?: number
}

/** `wrap` by which the library marks the default of a schema: a value of the first branch. */
const WRAP_DEFAULT = 2

/**
 * A union whose values stand for themselves, in the branch that our check finds. The library would wrap those of one kind (`{"int": 5}`
 * where there is a double as well), and tell the others by their kind alone.
 */
function unionType(schema: LibrarySchema, options: unknown, branchOf: BranchOf): Type {
  class UnionType extends avro.types.WrappedUnionType {
    declare readonly types: (Type & InnerType)[]

    _read(tap: { readLong(): number }): unknown {
      return this.types[tap.readLong()]?._read(tap)
    }

    _write(tap: { writeLong(index: number): void }, value: unknown): void {
      const index = branchOf(value)
      tap.writeLong(index)
      this.types[index]?._write(tap, value)
    }

    _copy(value: unknown, copying?: CopyOptions): unknown {
      return this.types[copying?.wrap === WRAP_DEFAULT ? 0 : branchOf(value)]?._copy(value, copying)
    }

    /** The first branch that reads what the writer wrote. */
    _update(resolver: { _read?: (tap: unknown) => unknown }, writer: Type, resolving: unknown): void {
      for (const branch of this.types) {
        try {
          const inner = branch.createResolver(writer, resolving)
          // That of a record within itself is filled in later.
          resolver._read = (tap) => inner._read(tap)
          return
        } catch {
          // The next one may.
        }
      }
    }
  }
  return new UnionType(schema, options)
}

/** decimal: text in JavaScript, since a number would round; two's complement big-endian of the unscaled integer in bytes. */
class DecimalType extends avro.types.LogicalType {
  readonly scale: number
  readonly size: number | undefined

  constructor(schema: LibrarySchema, options?: unknown) {
    super(schema, options)
    const { size, ...given } = schema as {
      readonly type?: unknown
      readonly precision?: unknown
      readonly scale?: unknown
      readonly size?: unknown
    }
    const logical = logicalOf({ logicalType: 'decimal', ...given })
    // Thrown to the library, which then takes the type underneath, as the specification says.
    if (logical?.name !== 'decimal') throw new TypeError('no valid decimal')
    this.scale = logical.scale
    this.size = typeof size === 'number' ? size : undefined
  }

  override _fromValue(bytes: Buffer): string {
    return decimalText(BigInt.asIntN(bytes.length * 8, BigInt(`0x${bytes.toString('hex') || '0'}`)), this.scale)
  }

  override _toValue(text: unknown): Buffer {
    if (typeof text !== 'string') throw new TypeError('a decimal is given as text')
    const [whole = '', fraction = ''] = text.split('.')
    return twosComplement(BigInt(`${whole}${fraction.padEnd(this.scale, '0')}`), this.size)
  }

  override _resolve(type: unknown): ((value: unknown) => unknown) | undefined {
    return type instanceof DecimalType && type.scale === this.scale ? (value) => value : undefined
  }
}

/** date: `YYYY-MM-DD` in JavaScript, days since 1970-01-01 in bytes. */
class DateType extends avro.types.LogicalType {
  constructor(schema: LibrarySchema, options?: unknown) {
    super(schema, options)
    if ((schema as { readonly type?: unknown }).type !== 'int') throw new TypeError('a date stands on int')
  }

  override _fromValue(days: number): string {
    return new Date(days * MS_PER_DAY).toISOString().replace(/T.*/, '')
  }

  override _toValue(text: unknown): number {
    return Date.parse(`${text as string}T00:00:00Z`) / MS_PER_DAY
  }

  override _resolve(type: unknown): ((value: unknown) => unknown) | undefined {
    if (type instanceof DateType) return (value) => value
    return avro.Type.isType(type, 'int') ? (value) => this._fromValue(value as number) : undefined
  }
}

const MS_PER_DAY = 86_400_000

function decimalText(unscaled: bigint, scale: number): string {
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0')
  const sign = unscaled < 0n ? '-' : ''
  return scale === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** The fewest bytes that hold the number, or exactly `size`. */
function twosComplement(value: bigint, size: number | undefined): Buffer {
  let length = 1
  while (BigInt.asIntN(length * 8, value) !== value) length++
  if (size !== undefined && length > size)
    throw new RangeError(`the number needs ${countText(length, 'byte')}; ${size} ${isAre(size)} there`)
  const bytes = size ?? length
  return Buffer.from(
    BigInt.asUintN(bytes * 8, value)
      .toString(16)
      .padStart(bytes * 2, '0'),
    'hex',
  )
}
