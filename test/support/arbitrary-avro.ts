import fc from 'fast-check'
import type { AvroNode } from '../../src/message/avro-schema.ts'
import { MAX_LONG, MIN_LONG } from '../../src/message/avro-value.ts'

/** Any value of a schema, in the shapes that src/message/avro-value.ts names. */
export function arbitraryValue(node: AvroNode): fc.Arbitrary<unknown> {
  if ('logical' in node && node.logical?.name === 'decimal') {
    const { precision, scale } = node.logical
    const limit = 10n ** BigInt(precision) - 1n
    return fc.bigInt({ min: -limit, max: limit }).map((unscaled) => {
      const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0')
      const sign = unscaled < 0n ? '-' : ''
      return scale === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
    })
  }
  if ('logical' in node && node.logical?.name === 'date') {
    return fc
      .date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
      .map((date) => date.toISOString().slice(0, 10))
  }
  switch (node.kind) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'int':
      return fc.integer()
    case 'long':
      return fc.integer({ min: MIN_LONG, max: MAX_LONG })
    case 'float':
      return fc.float({ noNaN: true, noDefaultInfinity: true })
    case 'double':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'string':
      return fc.string({ unit: 'grapheme' })
    case 'bytes':
      return fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes))
    case 'fixed':
      return fc.uint8Array({ minLength: node.size, maxLength: node.size }).map((bytes) => Buffer.from(bytes))
    case 'enum':
      return fc.constantFrom(...node.symbols)
    case 'array':
      return fc.array(arbitraryValue(node.items), { maxLength: 4 })
    case 'map':
      return fc
        .dictionary(
          fc.string({ maxLength: 8 }).filter((key) => key !== '__proto__'),
          arbitraryValue(node.values),
          { maxKeys: 4 },
        )
        .map((object) => ({ ...object }))
    case 'union':
      return fc.oneof(...node.branches.map(arbitraryValue))
    case 'record':
      return fc.record(Object.fromEntries(node.fields.map((field) => [field.name, arbitraryValue(field.type)])))
  }
}

/** Plain objects, so that records of the library compare with what went in; -0 is 0 to JSON and to people. */
export function plain(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return { hex: value.toString('hex') }
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
  return value
}
