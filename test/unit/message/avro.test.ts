import { describe, expect, it } from 'vitest'
import { type AvroSchema, parseSchema } from '../../../src/message/avro.ts'

const record = (fields: readonly unknown[], extra: object = {}): AvroSchema =>
  parseSchema(JSON.stringify({ type: 'record', name: 'R', namespace: 'n.s', fields, ...extra }))
const one = (type: unknown, extra: object = {}): AvroSchema => record([{ name: 'f', type, ...extra }])
const roundTrip = (schema: AvroSchema, value: unknown): unknown => ({ ...(schema.decode(schema.encode(value)) as object) })

describe('values of a schema', () => {
  it('give bytes as the Avro specification has them', () => {
    const lamp = record([
      { name: 'name', type: 'string' },
      { name: 'price', type: 'string' },
    ])
    expect(lamp.encode({ name: 'Lamp', price: '9.99' }).toString('hex')).toBe('084c616d7008392e3939')
  })

  it.each([
    ['0', 2, '0.00'],
    ['12.5', 2, '12.50'],
    ['-0.01', 2, '-0.01'],
    ['128', 0, '128'],
    ['-129', 0, '-129'],
    ['99999999999999999999999999999999999999', 0, '99999999999999999999999999999999999999'],
    ['-999999999999999999999999999999999999.99', 2, '-999999999999999999999999999999999999.99'],
    ['007.10', 2, '7.10'],
  ])('decimal %s of scale %i is read as %s', (text, scale, expected) => {
    const schema = one({ type: 'bytes', logicalType: 'decimal', precision: 38, scale })
    expect(roundTrip(schema, { f: text })).toEqual({ f: expected })
  })

  it.each([
    [0, false],
    [4_095, false],
    [4_096, true],
    [100_000, true],
  ])('with %i bytes of bytes give them as they are; only long ones are a view of the message (%s)', (length, isView) => {
    const schema = record([
      { name: 'before', type: 'bytes' },
      { name: 'f', type: ['null', 'bytes'] },
      { name: 'after', type: 'string' },
    ])
    const f = Buffer.from(Array.from({ length }, (_, index) => index % 251))
    const message = schema.encode({ before: Buffer.from('b'), f, after: 'a' })
    const decoded = schema.decode(message) as { readonly f: Buffer }
    expect(decoded).toEqual({ before: Buffer.from('b'), f, after: 'a' })
    expect(decoded.f.buffer === message.buffer && length > 0).toBe(isView)
  })

  it('keep decimals in a fixed as well, with the sign over all bytes', () => {
    const schema = one({ type: 'fixed', name: 'D', size: 4, logicalType: 'decimal', precision: 9, scale: 2 })
    expect(schema.encode({ f: '-0.01' }).toString('hex')).toBe('ffffffff')
    expect(roundTrip(schema, { f: '1234567.89' })).toEqual({ f: '1234567.89' })
  })

  it.each([
    ['a\ud800b', 'a\ufffdb'],
    ['\udc00', '\ufffd'],
    ['\ud83d\ude00', '\u{1f600}'],
    [`${'x'.repeat(80)}\ud83d`, `${'x'.repeat(80)}\ufffd`],
  ])('are text in valid UTF-8, since clients of other languages stop at anything else (%j)', (text, read) => {
    expect(parseSchema('"string"').encode(text).subarray(-Buffer.byteLength(text)).toString('hex')).toBe(Buffer.from(text).toString('hex'))
    const schema = record([
      { name: 'f', type: ['null', 'string'] },
      { name: 'm', type: { type: 'map', values: 'string' } },
    ])
    expect(roundTrip(schema, { f: text, m: { [text]: text } })).toEqual({ f: read, m: { [read]: read } })
  })

  it('are dates as text, times as epoch ms', () => {
    const schema = record([
      { name: 'd', type: { type: 'int', logicalType: 'date' } },
      { name: 't', type: ['null', { type: 'long', logicalType: 'timestamp-millis' }], default: null },
    ])
    expect(roundTrip(schema, { d: '1969-12-31', t: 1_767_225_600_123 })).toEqual({ d: '1969-12-31', t: 1_767_225_600_123 })
    expect(schema.encode({ d: '1970-01-02' }).toString('hex')).toBe('0200')
  })

  it('take the type underneath where a logical type does not fit it', () => {
    expect(roundTrip(one({ type: 'bytes', logicalType: 'decimal', precision: 2, scale: 5 }), { f: Buffer.from('a') })).toEqual({
      f: Buffer.from('a'),
    })
    expect(roundTrip(one({ type: 'string', logicalType: 'date' }), { f: 'x' })).toEqual({ f: 'x' })
    expect(roundTrip(one({ type: 'long', logicalType: 'unheard-of' }), { f: 1 })).toEqual({ f: 1 })
  })

  it.each([
    ['double', Number.NaN, 'field f: is NaN; expected a finite number'],
    ['double', Number.POSITIVE_INFINITY, 'field f: is Infinity; expected a finite number'],
    ['double', '1.5', 'field f: is "1.5"; expected a finite number'],
    ['int', 2_147_483_648, 'field f: is 2147483648; expected an integer of 32 bits'],
    ['int', 1.5, 'field f: is 1.5; expected an integer of 32 bits'],
    ['long', 2 ** 53, 'field f: is 9007199254740992; expected an integer from -2^52 to 2^53 - 2'],
    ['long', 5n, 'field f: is 5n; expected an integer from -2^52 to 2^53 - 2'],
    [{ type: 'long', logicalType: 'timestamp-millis' }, new Date(0), 'field f: is a Date; expected a time as epoch ms'],
    [{ type: 'int', logicalType: 'date' }, '2026-02-30', 'field f: is "2026-02-30"; expected a date as YYYY-MM-DD'],
    [
      { type: 'bytes', logicalType: 'decimal', precision: 4, scale: 2 },
      '1.234',
      'field f: is "1.234"; expected at most 2 digits behind the point',
    ],
    [
      { type: 'bytes', logicalType: 'decimal', precision: 4, scale: 2 },
      '123',
      'field f: is "123"; expected at most 4 digits, 2 of them behind the point',
    ],
    [
      { type: 'bytes', logicalType: 'decimal', precision: 4, scale: 2 },
      1.5,
      'field f: is 1.5; expected a decimal number as text, such as 12.50',
    ],
    [['null', 'string'], 7, 'field f: is 7; expected text'],
    ['string', undefined, 'field f: is missing'],
    ['string', null, 'field f: is null; expected text'],
    ['bytes', 'x', 'field f: is "x"; expected a Buffer'],
    [{ type: 'fixed', name: 'F', size: 2 }, Buffer.from('abc'), 'field f: is a Buffer of 3 bytes; expected a Buffer of 2 bytes'],
    [{ type: 'enum', name: 'E', symbols: ['A', 'B'] }, 'C', 'field f: is "C"; expected one of A, B'],
    [{ type: 'array', items: 'string' }, ['a', 1], 'field f[1]: is 1; expected text'],
    [{ type: 'map', values: 'int' }, { a: 'x' }, 'field f.a: is "x"; expected an integer of 32 bits'],
    [
      { type: 'array', items: { type: 'record', name: 'I', fields: [{ name: 'g', type: 'int' }] } },
      [{ g: 1 }, { g: null }],
      'field f[1].g: is null; expected an integer of 32 bits',
    ],
    [{ type: 'map', values: 'string' }, JSON.parse('{"__proto__": "x"}'), 'field f.__proto__: is a name that is not taken as a key'],
    ['float', 1e39, 'field f: is 1e+39; expected a finite number of 32 bits'],
    [['null', 'double', 'string'], Number.NaN, 'field f: is NaN; expected a finite number or text'],
    [
      ['null', 'long', 'string'],
      -4_503_599_627_370_497,
      'field f: is -4503599627370497; expected an integer from -2^52 to 2^53 - 2 or text',
    ],
    [
      ['null', { type: 'record', name: 'I', fields: [{ name: 'g', type: 'int' }] }, 'string'],
      { g: 1, h: 2 },
      'field f.h: is no field of n.s.I',
    ],
    [['null', 'int', 'double'], { int: 5 }, 'field f: is an object; expected an integer of 32 bits or a finite number'],
    [['int', 'string'], null, 'field f: is null; expected a value'],
  ])('C173: that do not fit %j are refused by name: %s', (type, value, problem) => {
    let error: unknown
    try {
      one(type).encode({ f: value })
    } catch (caught) {
      error = caught
    }
    expect(error).toMatchObject({ code: 'MESSAGE_INVALID', message: `can't write n.s.R: ${problem}` })
  })

  const decimal = { type: 'bytes', logicalType: 'decimal', precision: 9, scale: 2 }
  const inner = (name: string, field: string): object => ({
    type: 'record',
    name,
    fields: [{ name: field, type: ['null', 'int', 'double'] }],
  })

  it.each<[unknown, unknown, string]>([
    [['null', 'int', 'double'], 5, '020a'],
    [['null', 'int', 'double'], 5.5, '040000000000001640'],
    [['null', 'int', 'double'], null, '00'],
    [['int', 'long'], 2_147_483_648, '028080808010'],
    [['float', 'double'], 0.1, '029a9999999999b93f'],
    [['long', 'double'], -4_503_599_627_370_497, '0201000000000030c3'],
    [['null', { type: 'enum', name: 'E', symbols: ['A'] }, 'string'], 'A', '0200'],
    [['null', { type: 'enum', name: 'E', symbols: ['A'] }, 'string'], 'B', '040242'],
    [['null', decimal, 'string'], '1.50', '02040096'],
    [['null', decimal, 'string'], '1.505', '040a312e353035'],
    [['string', { type: 'int', logicalType: 'date' }], '2026-01-01', '0014323032362d30312d3031'],
    [[inner('A', 'a'), inner('B', 'b')], { b: 0.5 }, '0204000000000000e03f'],
    [
      { type: 'array', items: ['string', 'int', { type: 'map', values: ['int', 'string'] }] },
      [1, 'x', { k: 'y' }],
      '0602020002780402026b0202790000',
    ],
  ])('C173: of a union %j are taken by the first branch that holds them exactly: %j', (type, value, hex) => {
    const schema = one(type)
    expect(schema.encode({ f: value }).toString('hex')).toBe(hex)
    expect(roundTrip(schema, { f: value })).toEqual({ f: value })
  })

  it('of a union stand for themselves as defaults and for another schema too', () => {
    const before = record([{ name: 'f', type: 'int' }])
    const after = record([
      { name: 'f', type: ['null', 'int', 'double'] },
      { name: 'g', type: ['int', 'double'], default: 7 },
      { name: 'h', type: { type: 'array', items: ['int', 'double'] }, default: [1] },
    ])
    expect(before.decode(before.encode({ f: 3 }), 0, after)).toEqual({ f: 3, g: 7, h: [1] })
    expect(roundTrip(after, { f: 3 })).toEqual({ f: 3, g: 7, h: [1] })
    const narrow = one(['null', 'double'])
    expect(after.decode(after.encode({ f: 3 }), 0, narrow)).toEqual({ f: 3 })
    const tree = ['null', { type: 'record', name: 'T', fields: [{ name: 'next', type: ['null', 'T', 'string', 'int', 'double'] }] }]
    const wider = record([
      { name: 'f', type: tree },
      { name: 'new', type: 'int', default: 0 },
    ])
    const nested = { next: { next: { next: 2.5 } } }
    expect(one(tree).decode(one(tree).encode({ f: nested }), 0, wider)).toEqual({ f: nested, new: 0 })
  })

  it('of unions within each other are looked at a few times per level, however deep they are', () => {
    const b = {
      type: 'record',
      name: 'B',
      fields: [
        { name: 'next', type: ['null', 'A', 'B'] },
        { name: 'b', type: 'int' },
      ],
    }
    const schema = one({
      type: 'record',
      name: 'A',
      fields: [
        { name: 'next', type: ['null', 'A', b] },
        { name: 'a', type: 'int' },
      ],
    })
    let looks = 0
    const chain = (levels: number, last: object): object => {
      let next = last
      for (let level = 0; level < levels; level += 1) {
        const inner = next
        next = {
          b: level,
          get next() {
            if (++looks > 20 * levels) throw new Error('too many looks')
            return inner
          },
        }
      }
      return next
    }
    expect(schema.encode({ f: { a: 1, next: chain(200, { b: 0, next: null }) } })).toHaveLength(540)
  })

  it('of a union are looked at anew with each message, since an object may have changed', () => {
    const name = (type: string, field: string): object => ({ type: 'record', name: type, fields: [{ name: field, type: 'int' }] })
    const schema = one(['null', name('A', 'a'), name('B', 'b')])
    const inner: Record<string, number> = { a: 1 }
    expect(schema.encode({ f: inner }).toString('hex')).toBe('0202')
    delete inner.a
    inner.b = 1
    expect(schema.encode({ f: inner }).toString('hex')).toBe('0402')
  })

  it('with a field that the schema does not have are refused, not cut', () => {
    expect(() => one('int').encode({ f: 1, g: 2 })).toThrow('field g: is no field of n.s.R')
  })

  it('C167: are no schema where a default is not of the first branch, and refused where they are missing without one', () => {
    expect(() => record([{ name: 'b', type: ['string', 'null'], default: null }])).toThrow(/"?b"?.*default|default.*"?b"?/i)
    expect(() => record([{ name: 'b', type: ['null', 'string'] }]).encode({})).toThrow('field b: is missing')
    expect(roundTrip(record([{ name: 'b', type: ['null', 'string'], default: null }]), {})).toEqual({ b: null })
  })

  it('C173: lose digits in a float and in nothing else', () => {
    expect(roundTrip(one('float'), { f: 0.1 })).toEqual({ f: 0.10000000149011612 })
    expect(roundTrip(one('double'), { f: 0.1 })).toEqual({ f: 0.1 })
  })

  it('may leave out what has a default', () => {
    expect(roundTrip(one('int', { default: 7 }), {})).toEqual({ f: 7 })
  })
})

describe('bytes of a schema', () => {
  const malformed = (schema: AvroSchema, hex: string): string => {
    try {
      schema.decode(Buffer.from(hex, 'hex'))
    } catch (error) {
      expect(error).toMatchObject({ code: 'MESSAGE_MALFORMED' })
      return (error as Error).message
    }
    return 'no error'
  }

  it('C163: with a long beyond 2^53 are refused by the name of the field, never rounded', () => {
    expect(malformed(one('long'), '8280808080808020')).toBe(
      'the bytes are no n.s.R: field f: a number outside -2^52 … 2^53 - 2, which is not taken',
    )
    expect(malformed(one('long'), 'ffffffffffffffffff01')).toContain('outside')
    // -(2^53 - 1) and -(2^52 + 1): the library reads both as positive numbers.
    expect(malformed(one('long'), 'fdffffffffffff1f')).toContain('outside')
    expect(malformed(one('long'), '8180808080808010')).toContain('outside')
    expect(malformed(one('long'), 'feffffffffffff1f')).toContain('outside')
    for (const f of [9_007_199_254_740_990, -4_503_599_627_370_496, 4_503_599_627_370_497])
      expect(roundTrip(one('long'), { f })).toEqual({ f })
    for (const f of [9_007_199_254_740_991, -4_503_599_627_370_497]) expect(() => one('long').encode({ f })).toThrow('field f: is')
  })

  it.each<[string, unknown, string, string]>([
    ['a text that is cut', 'string', '0a6162', 'field f: the bytes end too early: 5 are needed, 2 are left'],
    ['a negative length', 'string', '01', 'field f: the length -1'],
    ['a number that is cut', 'int', '80', 'field f: the bytes end too early: a number is cut'],
    ['a number of eleven bytes', 'long', '8080808080808080808001', 'field f: a number longer than ten bytes'],
    ['an int of more than 32 bits', 'int', '8080808020', 'field f: 4294967296 is beyond 32 bits'],
    ['a boolean that is none', 'boolean', '02', 'field f: the byte 2 is no boolean'],
    ['a branch that is none', ['null', 'int'], '04', 'field f: branch 2 of a union with 2'],
    ['a symbol that is none', { type: 'enum', name: 'E', symbols: ['A'] }, '02', 'field f: symbol 1 of an enum with 1'],
    ['more bytes than the value has', 'int', '0200', '1 byte is left behind the value'],
    [
      'a list of 2^40 items',
      { type: 'array', items: 'string' },
      '808080808040',
      'field f: says that 1099511627776 items follow; it has 0 bytes more',
    ],
    [
      'a list of 2^40 nothings',
      { type: 'array', items: 'null' },
      '80808080804000',
      'field f: says that 1099511627776 items follow; it has 1 byte more',
    ],
    [
      'a negative block of 2^40',
      { type: 'map', values: 'int' },
      'ffffffffff3f00',
      'field f: says that 1099511627776 items follow; it has 0 bytes more',
    ],
    [
      'an item that is cut',
      { type: 'array', items: 'string' },
      '0402610a',
      'field f[1]: the bytes end too early: 5 are needed, 0 are left',
    ],
    [
      'a decimal of no bytes',
      { type: 'bytes', logicalType: 'decimal', precision: 38, scale: 2 },
      '00',
      'field f: a decimal of 0 bytes; expected 1 to 24',
    ],
    [
      'a decimal of many bytes',
      { type: 'bytes', logicalType: 'decimal', precision: 38, scale: 2 },
      `64${'00'.repeat(50)}`,
      'field f: a decimal of 50 bytes; expected 1 to 24',
    ],
    ['a date beyond all dates', { type: 'int', logicalType: 'date' }, 'feffffff0f', 'field f: 2147483647 days are no date'],
    [
      'a key __proto__',
      { type: 'map', values: 'string' },
      `02${'12'}${Buffer.from('__proto__').toString('hex')}026100`,
      'field f[0]: the map has the key __proto__, which is not taken',
    ],
  ])('with %s are refused', (_what, type, hex, problem) => {
    expect(malformed(one(type), hex)).toBe(`the bytes are no n.s.R: ${problem}`)
  })

  it('may hold blocks with their size, as other writers write them', () => {
    // Two items as a block of count -2 and size 4.
    const schema = one({ type: 'array', items: 'string' })
    expect(schema.decode(Buffer.from('030802610262' + '00', 'hex'))).toEqual({ f: ['a', 'b'] })
  })

  it('that nest without end are refused, not followed until the stack ends', () => {
    const list = parseSchema(JSON.stringify({ type: 'record', name: 'L', fields: [{ name: 'next', type: ['null', 'L'], default: null }] }))
    expect(list.decode(Buffer.from('020200', 'hex'))).toEqual({ next: { next: { next: null } } })
    expect(() => list.decode(Buffer.alloc(100_000, 2))).toThrow('nested deeper than 256 levels')
  })
})

describe('reading with another schema than the writer had', () => {
  it('C165: fills an added optional field and drops one that is gone', () => {
    const v1 = record([{ name: 'name', type: 'string' }])
    const v2 = record([
      { name: 'name', type: 'string' },
      { name: 'age', type: ['null', 'int'], default: null },
    ])
    expect(v1.decode(v1.encode({ name: 'a' }), 0, v2)).toEqual({ name: 'a', age: null })
    expect(v2.decode(v2.encode({ name: 'a', age: 3 }), 0, v1)).toEqual({ name: 'a' })
  })

  it('C171: follows aliases of fields and records', () => {
    const v1 = record([{ name: 'price', type: 'int' }], { name: 'ProductV1' })
    const v2 = record([{ name: 'amount', type: 'int', aliases: ['price'] }], { name: 'ProductV2', aliases: ['ProductV1'] })
    expect(v1.decode(v1.encode({ price: 5 }), 0, v2)).toEqual({ amount: 5 })
    const stranger = record([{ name: 'amount', type: 'int' }], { name: 'Other' })
    expect(() => v1.decode(v1.encode({ price: 5 }), 0, stranger)).toThrow(expect.objectContaining({ code: 'SCHEMA_INCOMPATIBLE' }))
  })

  it('compares names without namespace, so that a foreign producer may leave it out', () => {
    const foreign = parseSchema('{"type":"record","name":"R","fields":[{"name":"f","type":"int"}]}')
    expect(foreign.decode(foreign.encode({ f: 1 }), 0, one('int'))).toEqual({ f: 1 })
  })

  it('reads values of a field that may be null for the writer alone, and fails with the message that has a null there', () => {
    const reader = record([
      { name: 'url', type: 'string' },
      { name: 'depth', type: 'int', default: 0 },
    ])
    const writer = record([
      { name: 'url', type: ['null', 'string'] },
      { name: 'depth', type: ['null', 'int'] },
    ])
    expect(writer.decode(writer.encode({ url: 'a', depth: 3 }), 0, reader)).toEqual({ url: 'a', depth: 3 })
    expect(() => writer.decode(writer.encode({ url: null, depth: 3 }), 0, reader)).toThrow(
      expect.objectContaining({
        code: 'MESSAGE_MALFORMED',
        message: expect.stringContaining("field url: a string can't be read from a null"),
      }),
    )
    const none = record([{ name: 'url', type: ['null', 'boolean'] }])
    expect(() => none.decode(none.encode({ url: null }), 0, reader)).toThrow(expect.objectContaining({ code: 'SCHEMA_INCOMPATIBLE' }))
  })

  it('takes the default symbol for one that is not known', () => {
    const wide = one({ type: 'enum', name: 'E', symbols: ['A', 'B'] })
    const narrow = one({ type: 'enum', name: 'E', symbols: ['A'], default: 'A' })
    expect(wide.decode(wide.encode({ f: 'B' }), 0, narrow)).toEqual({ f: 'A' })
  })

  it('does not read a decimal under another scale', () => {
    const two = one({ type: 'bytes', logicalType: 'decimal', precision: 38, scale: 2 })
    const three = one({ type: 'bytes', logicalType: 'decimal', precision: 38, scale: 3 })
    const optional = one(['null', { type: 'bytes', logicalType: 'decimal', precision: 38, scale: 2 }])
    expect(() => two.decode(two.encode({ f: '1.00' }), 0, three)).toThrow(expect.objectContaining({ code: 'SCHEMA_INCOMPATIBLE' }))
    expect(two.decode(two.encode({ f: '1.00' }), 0, optional)).toEqual({ f: '1.00' })
  })
})

describe('a schema', () => {
  it.each([
    ['{', 'is no JSON'],
    ['null', 'is null; expected a type'],
    ['"Missing"', 'which is not defined before it'],
    ['{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}', 'at a is a field that occurs twice'],
    ['{"type":"record","name":"R","fields":[{"name":"a b","type":"int"}]}', 'has no valid field name'],
    ['{"type":"record","name":"9R","fields":[]}', 'which is not valid'],
    ['{"type":"record","name":"R"}', 'without a list of fields'],
    ['{"type":"enum","name":"E","symbols":[]}', 'distinct, valid symbols'],
    ['{"type":"enum","name":"E","symbols":["A"],"default":"B"}', 'which is none of its symbols'],
    ['{"type":"record","name":"R","fields":[{"name":"b","type":["string","null"],"default":null}]}', "can't be used"],
    ['["null",["null","int"]]', 'a union right inside a union'],
    [`${'{"type":"array","items":'.repeat(100)}"int"${'}'.repeat(100)}`, 'nested deeper than 64 levels'],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'nested deeper than 64 levels'],
  ])('%.60s is refused', (text, reason) => {
    expect(() => parseSchema(text)).toThrow(expect.objectContaining({ code: 'SCHEMA_INVALID', message: expect.stringContaining(reason) }))
  })
})
