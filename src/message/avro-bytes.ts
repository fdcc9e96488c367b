import { countText, isAre } from '../kernel/count-text.ts'
import type { AvroNode, FixedNode, Logical, PrimitiveNode, RecordNode } from './avro-schema.ts'
import { MAX_LONG, MIN_LONG } from './avro-value.ts'

/**
 * Walks Avro bytes along their schema without building values. The Avro library trusts what it reads: a count of 2^40 items in ten
 * bytes makes it allocate, a long beyond 2^53 makes it throw without saying where. So bytes are walked first, which costs a fraction
 * of decoding, and what is wrong is said with the path of the field.
 */
export type BytesCheck = (bytes: Uint8Array, start: number) => string | undefined

/** Items that take no bytes (null, empty records) are the only ones whose number the length of the message does not bound. */
const MAX_EMPTY_ITEMS = 65_536
const MAX_DEPTH = 256

interface Walk {
  readonly bytes: Uint8Array
  pos: number
  depth: number
  emptyItems: number
}

type Step = (walk: Walk) => void

class Malformed extends Error {
  path = ''

  within(part: string): this {
    this.path = this.path === '' || this.path.startsWith('[') ? `${part}${this.path}` : `${part}.${this.path}`
    return this
  }
}

/**
 * Compiles the check of one schema. Shape: the check gives undefined for bytes that are exactly one value, else what is wrong and where.
 */
export function bytesCheck(root: AvroNode): BytesCheck {
  const step = compile(root, new Map())
  return (bytes, start) => {
    const walk: Walk = { bytes, pos: start, depth: 0, emptyItems: 0 }
    try {
      step(walk)
    } catch (error) {
      if (error instanceof Malformed) return error.path === '' ? error.message : `field ${error.path}: ${error.message}`
      throw error
    }
    const rest = bytes.length - walk.pos
    return rest === 0 ? undefined : `${countText(rest, 'byte')} ${isAre(rest)} left behind the value`
  }
}

function compile(node: AvroNode, records: Map<RecordNode, { step: Step }>): Step {
  switch (node.kind) {
    case 'record':
      return compileRecord(node, records)
    case 'array':
      return compileBlocks(compile(node.items, records), leastBytes(node.items, new Set()) === 0)
    case 'map': {
      const values = compile(node.values, records)
      return compileBlocks((walk) => {
        const start = walk.pos
        text(walk)
        if (isProto(walk.bytes, start, walk.pos)) throw new Malformed('the map has the key __proto__, which is not taken')
        values(walk)
      }, false)
    }
    case 'union': {
      const branches = node.branches.map((branch) => compile(branch, records))
      return (walk) => {
        const index = readLong(walk)
        const branch = branches[index]
        if (branch === undefined) throw new Malformed(`branch ${index} of a union with ${branches.length}`)
        branch(walk)
      }
    }
    case 'enum':
      return (walk) => {
        const index = readLong(walk)
        if (index < 0 || index >= node.symbols.length) throw new Malformed(`symbol ${index} of an enum with ${node.symbols.length}`)
      }
    default:
      return compileLeaf(node)
  }
}

function compileRecord(node: RecordNode, records: Map<RecordNode, { step: Step }>): Step {
  const known = records.get(node)
  if (known !== undefined) return (walk) => known.step(walk)
  const own: { step: Step } = { step: () => undefined }
  records.set(node, own)
  const fields = node.fields.map((field) => ({ name: field.name, step: compile(field.type, records) }))
  own.step = (walk) => {
    if (++walk.depth > MAX_DEPTH) throw new Malformed(`nested deeper than ${MAX_DEPTH} levels`)
    let current = ''
    try {
      for (const { name, step } of fields) {
        current = name
        step(walk)
      }
    } catch (error) {
      throw error instanceof Malformed ? error.within(current) : error
    }
    walk.depth--
  }
  return own.step
}

function compileBlocks(item: Step, empty: boolean): Step {
  return (walk) => {
    if (++walk.depth > MAX_DEPTH) throw new Malformed(`nested deeper than ${MAX_DEPTH} levels`)
    let index = 0
    for (let count = readLong(walk); count !== 0; count = readLong(walk)) {
      if (count < 0) {
        count = -count
        readLong(walk)
      }
      if (empty) walk.emptyItems += count
      if (empty ? walk.emptyItems > MAX_EMPTY_ITEMS : count > walk.bytes.length - walk.pos)
        throw new Malformed(`says that ${countText(count, 'item')} follow; it has ${countText(walk.bytes.length - walk.pos, 'byte')} more`)
      const end = index + count
      try {
        for (; index < end; index++) item(walk)
      } catch (error) {
        throw error instanceof Malformed ? error.within(`[${index}]`) : error
      }
    }
    walk.depth--
  }
}

function compileLeaf(node: PrimitiveNode | FixedNode): Step {
  switch (node.kind) {
    case 'null':
      return () => undefined
    case 'boolean':
      return (walk) => {
        const value = walk.bytes[walk.pos]
        skip(walk, 1)
        if (value !== 0 && value !== 1) throw new Malformed(`the byte ${value} is no boolean`)
      }
    case 'int':
      return (walk) => {
        const value = readLong(walk)
        if (value < -2_147_483_648 || value > 2_147_483_647) throw new Malformed(`${value} is beyond 32 bits`)
        if (node.logical?.name === 'date' && Math.abs(value) > 100_000_000) throw new Malformed(`${value} days are no date`)
      }
    case 'long':
      return (walk) => {
        readLong(walk)
      }
    case 'float':
      return (walk) => skip(walk, 4)
    case 'double':
      return (walk) => skip(walk, 8)
    case 'fixed':
      return (walk) => skip(walk, node.size)
    default: {
      const limit = node.logical === undefined ? undefined : decimalBytes(node.logical)
      return limit === undefined ? text : (walk) => decimal(walk, limit)
    }
  }
}

/** A decimal's number is computed from its bytes, at a cost that grows with the square of their length. */
function decimal(walk: Walk, limit: number): void {
  const length = readLong(walk)
  if (length < 1 || length > limit) throw new Malformed(`a decimal of ${length} bytes; expected 1 to ${limit}`)
  skip(walk, length)
}

function decimalBytes(logical: Logical): number | undefined {
  return logical.name === 'decimal' ? Math.ceil((logical.precision * Math.log2(10) + 1) / 8) + 8 : undefined
}

function text(walk: Walk): void {
  const length = readLong(walk)
  if (length < 0) throw new Malformed(`the length ${length}`)
  skip(walk, length)
}

function skip(walk: Walk, length: number): void {
  const rest = walk.bytes.length - walk.pos
  if (length > rest) throw new Malformed(`the bytes end too early: ${length} are needed, ${rest} are left`)
  walk.pos += length
}

/** Zigzag variable-length integer, within the bounds that the library reads exactly. */
function readLong(walk: Walk): number {
  const start = walk.pos
  let unsigned = 0
  let scale = 1
  for (let i = 0; i < 10; i++) {
    const byte = walk.bytes[walk.pos]
    if (byte === undefined) throw new Malformed('the bytes end too early: a number is cut')
    walk.pos++
    unsigned += (byte & 0x7f) * scale
    if (byte < 0x80) {
      if (unsigned >= EXACT) return exactLong(walk.bytes, start, walk.pos)
      return unsigned % 2 === 0 ? unsigned / 2 : -(unsigned + 1) / 2
    }
    scale *= 128
  }
  throw new Malformed('a number longer than ten bytes')
}

const EXACT = 2 ** 53

/** From 2^53 on the sum of the pieces may have been rounded. */
function exactLong(bytes: Uint8Array, start: number, end: number): number {
  let unsigned = 0n
  for (let at = end - 1; at >= start; at--) unsigned = (unsigned << 7n) | BigInt((bytes[at] ?? 0) & 0x7f)
  const value = (unsigned >> 1n) ^ -(unsigned & 1n)
  if (value < MIN_LONG || value > MAX_LONG) throw new Malformed('a number outside -2^52 … 2^53 - 2, which is not taken')
  return Number(value)
}

const PROTO = Buffer.from('__proto__', 'utf8')

/** The length of nine takes one byte (18). */
function isProto(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== PROTO.length + 1) return false
  return PROTO.every((byte, index) => bytes[start + 1 + index] === byte)
}

function leastBytes(node: AvroNode, seen: Set<AvroNode>): number {
  if (seen.has(node)) return 0
  switch (node.kind) {
    case 'null':
      return 0
    case 'fixed':
      return node.size
    case 'record': {
      seen.add(node)
      const sum = node.fields.reduce((total, field) => total + leastBytes(field.type, seen), 0)
      seen.delete(node)
      return sum
    }
    default:
      return 1
  }
}
