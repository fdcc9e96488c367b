import { describe, expect, it } from 'vitest'
import { parseSchema } from '../../../src/message/avro.ts'
import { compatibilityProblems, readProblems } from '../../../src/message/compatibility.ts'

const schema = (fields: readonly unknown[], extra: object = {}) =>
  parseSchema(JSON.stringify({ type: 'record', name: 'R', fields, ...extra }))
const field = (type: unknown, extra: object = {}) => schema([{ name: 'f', type, ...extra }])
const problems = (reader: unknown, writer: unknown): string[] =>
  readProblems(field(reader), field(writer)).map(({ path, reason }) => `${path}: ${reason}`)
const decimal = (precision: number, scale: number) => ({ type: 'bytes', logicalType: 'decimal', precision, scale })
const date = { type: 'int', logicalType: 'date' }
const timestamp = { type: 'long', logicalType: 'timestamp-millis' }
const symbols = (list: string[], extra: object = {}) => ({ type: 'enum', name: 'E', symbols: list, ...extra })

describe('what a reader can read', () => {
  it.each([
    ['long', 'int'],
    ['double', 'long'],
    ['string', 'bytes'],
    [['null', 'int'], 'int'],
    // Of a producer that may leave it out, and doesn't.
    ['int', ['null', 'int']],
    [
      ['null', 'long'],
      ['null', 'int'],
    ],
    [symbols(['A', 'B']), symbols(['A'])],
    [symbols(['A'], { default: 'A' }), symbols(['A', 'B'])],
    [decimal(38, 2), decimal(10, 2)],
    // A task of a producer that knows no logical types.
    [timestamp, 'long'],
    [
      { type: 'array', items: 'long' },
      { type: 'array', items: 'int' },
    ],
  ])('%j reads %j', (reader, writer) => {
    expect(problems(reader, writer)).toEqual([])
  })

  it.each([
    ['int', 'long', "f: a int can't be read from a long"],
    ['int', ['null'], "f: a int can't be read from a null"],
    [['null', 'int'], 'string', "f: a union of null, int can't be read from a string"],
    [symbols(['A']), symbols(['A', 'B']), 'f: the enum lacks the symbols B and has no default'],
    [decimal(38, 2), decimal(38, 3), "f: a decimal of precision 38 and scale 2 can't be read from a decimal of precision 38 and scale 3"],
    [decimal(8, 2), decimal(38, 2), "f: a decimal of precision 8 and scale 2 can't be read from a decimal of precision 38 and scale 2"],
    [timestamp, date, "f: a timestamp-millis can't be read from a date"],
    [['null', timestamp], ['null', date], "f: a timestamp-millis can't be read from a date"],
    ['bytes', decimal(38, 2), "f: plain bytes can't be read from a decimal of precision 38 and scale 2"],
    [{ type: 'map', values: 'int' }, { type: 'map', values: 'string' }, "f{}: a int can't be read from a string"],
    [{ type: 'array', items: 'int' }, { type: 'map', values: 'int' }, "f: a array can't be read from a map"],
    [{ type: 'fixed', name: 'F', size: 2 }, { type: 'fixed', name: 'F', size: 3 }, "f: the fixed F of 2 bytes can't be read from F of 3"],
  ])('%j does not read %j, and the field is named', (reader, writer, problem) => {
    expect(problems(reader, writer)).toEqual([problem])
  })

  it('C171: lacks a field without default, and a record of another name without alias', () => {
    const v1 = schema([{ name: 'price', type: 'int' }])
    expect(readProblems(schema([{ name: 'amount', type: 'int' }]), v1)).toEqual([
      { path: 'amount', reason: 'the writer has no such field, and it has no default' },
    ])
    expect(readProblems(schema([{ name: 'amount', type: 'int', aliases: ['price'] }]), v1)).toEqual([])
    expect(readProblems(schema([{ name: 'price', type: 'int' }], { name: 'S' }), v1)[0]?.reason).toContain('neither that name nor an alias')
    expect(readProblems(schema([{ name: 'price', type: 'int' }], { name: 'S', aliases: ['R'] }), v1)).toEqual([])
  })

  it('is found through nested and recursive records', () => {
    const tree = (type: string) =>
      schema([
        { name: 'value', type },
        { name: 'children', type: { type: 'array', items: 'R' } },
      ])
    expect(readProblems(tree('long'), tree('int'))).toEqual([])
    expect(readProblems(tree('int'), tree('long')).map(({ path }) => path)).toEqual(['value'])
  })
})

describe('what may follow older schemas', () => {
  const v1 = field('int', { default: 0 })
  const v2 = schema([
    { name: 'f', type: 'int', default: 0 },
    { name: 'g', type: ['null', 'string'], default: null },
  ])
  const widened = field('long', { default: 0 })

  it('of messages is readable both ways, of records by the new one alone', () => {
    expect(compatibilityProblems('FULL_TRANSITIVE', v2, [v1])).toEqual([])
    expect(compatibilityProblems('BACKWARD_TRANSITIVE', widened, [v1])).toEqual([])
    expect(compatibilityProblems('FULL_TRANSITIVE', widened, [v1])).toEqual(readProblems(v1, widened))
  })

  it.each([
    [timestamp, date, "a timestamp-millis can't be read from a date"],
    [date, 'int', "a date can't be read from a plain int"],
    ['int', date, "a plain int can't be read from a date"],
    ['long', date, "a plain long can't be read from a date"],
    ['double', date, "a plain double can't be read from a date"],
    [timestamp, 'long', "a timestamp-millis can't be read from a plain long"],
    [timestamp, 'int', "a timestamp-millis can't be read from a plain int"],
    ['long', timestamp, "a plain long can't be read from a timestamp-millis"],
    // Ours does not know these; who reads the records may.
    [{ type: 'long', logicalType: 'timestamp-micros' }, timestamp, "a timestamp-micros can't be read from a timestamp-millis"],
    ['long', { type: 'long', logicalType: 'timestamp-micros' }, "a plain long can't be read from a timestamp-micros"],
  ])('of records means the same by its numbers: %j does not follow %j', (next, old, reason) => {
    const optional = (type: unknown) => field(['null', type], { default: null })
    expect(compatibilityProblems('BACKWARD_TRANSITIVE', optional(next), [optional(old)])).toMatchObject([{ path: 'f', reason }])
    expect(compatibilityProblems('BACKWARD_TRANSITIVE', optional(old), [optional(old)])).toEqual([])
  })

  it('has no branch that can not be read', () => {
    expect(compatibilityProblems('BACKWARD_TRANSITIVE', v1, [field(['null', 'int'])])).toMatchObject([{ path: 'f' }])
  })

  it('of messages may leave out what a number means, as foreign producers do', () => {
    expect(compatibilityProblems('FULL_TRANSITIVE', field(timestamp), [field('long')])).toEqual([])
  })

  it('is compared with every older one, not with the last alone', () => {
    const gone = schema([])
    const back = field('string', { default: '' })
    expect(compatibilityProblems('FULL_TRANSITIVE', back, [gone])).toEqual([])
    expect(compatibilityProblems('FULL_TRANSITIVE', back, [gone, v1])).toHaveLength(2)
  })
})
