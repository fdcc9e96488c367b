import { describe, expect, it } from 'vitest'
import { deriveSchema, embedSchema } from '../../../src/extract/derive-schema.ts'
import { definitionSha256 } from '../../../src/extract/language/canonical-definition.ts'
import type { ExtractorDefinition } from '../../../src/extract/language/definition.ts'
import { readDefinition } from '../../../src/extract/language/read-definition.ts'
import { compatibilityProblems, readProblems } from '../../../src/message/compatibility.ts'
import { recordEnvelope } from '../../../src/message/schema-store.ts'

function definition(fields: string, name = 'book-offer'): ExtractorDefinition {
  const read = readDefinition(`name: ${name}\nversion: 1\nfields:\n${fields}`)
  if (read.definition === undefined) throw new Error(JSON.stringify(read.problems))
  return read.definition
}

describe('the schema of a declarative extractor', () => {
  const schema = deriveSchema(
    definition(`  a: p
  b: { select: p, type: decimal, scale: 3, required: true, doc: How much. }
  c: { select: p, type: list, items: timestamp }
  d: { select: p, type: list, fields: { e: b, f: { select: i, fields: { g: { select: u, type: date } } } } }`),
  )
  const json = JSON.parse(schema.text) as { fields: { name: string; type: unknown }[] }
  const data = json.fields.find(({ name }) => name === 'data')?.type as { name: string; fields: unknown[] }

  it('has the fields of the envelope and then data', () => {
    const envelope = (JSON.parse(recordEnvelope()) as { fields: { name: string }[] }).fields.map(({ name }) => name)
    expect(json.fields.map(({ name }) => name)).toEqual([...envelope, 'data'])
    expect(schema.name).toBe('io.millrace.records.BookOffer')
    expect(data.name).toBe('BookOfferData')
  })

  it('makes every field optional, required ones too, null first', () => {
    expect(data.fields).toMatchObject([
      { name: 'a', type: ['null', 'string'], default: null },
      { name: 'b', type: ['null', { type: 'bytes', logicalType: 'decimal', precision: 38, scale: 3 }], doc: 'How much.', default: null },
      { name: 'c', type: ['null', { type: 'array', items: { type: 'long', logicalType: 'timestamp-millis' } }], default: null },
      { name: 'd', type: ['null', { type: 'array', items: { type: 'record', name: 'BookOfferDataD' } }], default: null },
    ])
  })

  it('lets fields come and go', () => {
    const older = deriveSchema(definition('  a: p\n  gone: p'))
    expect(readProblems(schema, older)).toEqual([])
    expect(readProblems(older, schema)).toEqual([])
    expect(readProblems(deriveSchema(definition('  a: { select: p, type: int }')), older)).not.toEqual([])
  })
})

describe('the next version of an extractor', () => {
  it.each([
    ['date', 'timestamp'],
    ['timestamp', 'date'],
    ['int', 'date'],
    ['date', 'int'],
    ['long', 'timestamp'],
    ['timestamp', 'long'],
    ['date', 'long'],
    ['date', 'double'],
  ])('does not make a %s a %s', (before, after) => {
    const of = (type: string) => deriveSchema(definition(`  a: { select: p, type: ${type} }`))
    expect(compatibilityProblems('BACKWARD_TRANSITIVE', of(after), [of(before)])).toMatchObject([{ path: 'data.a' }])
  })

  it.each([
    ['int', 'long'],
    ['int', 'double'],
    ['long', 'double'],
  ])('may make a %s a %s', (before, after) => {
    const of = (type: string) => deriveSchema(definition(`  a: { select: p, type: ${type} }`))
    expect(compatibilityProblems('BACKWARD_TRANSITIVE', of(after), [of(before)])).toEqual([])
  })
})

describe('the schema of a money', () => {
  it('is a record of its own for each field, with the scale of its amount', () => {
    const text =
      'name: a\nversion: 1\nfields: { price: { select: .p, type: money }, fees: { select: .f, type: list, items: money, scale: 3 } }'
    const { definition } = readDefinition(text)
    if (definition === undefined) throw new Error('it is valid')
    const schema = deriveSchema(definition)
    expect(JSON.stringify(JSON.parse(schema.text))).toMatch(/"name":"APrice".*"scale":2|"name":"ADataPrice".*"scale":2/)
    expect(schema.text).toMatch(/ADataFees[\s\S]*"scale":\s*3/)
  })

  it('is refused where another record has its name', () => {
    const text =
      'name: a\nversion: 1\nfields: { bC: { select: p, type: money }, b: { select: p, fields: { C: { select: q, type: money } } } }'
    expect(readDefinition(text).problems.map(({ message }) => message)).toEqual([expect.stringContaining('has the type name')])
  })
})

describe('the schema of a code extractor', () => {
  it('is its own under the name that records have, references to itself included', () => {
    const own = {
      type: 'record',
      name: 'Book',
      namespace: 'com.example',
      fields: [
        { name: 'title', type: 'string' },
        { name: 'sequel', type: ['null', 'Book'], default: null },
        { name: 'kind', type: { type: 'enum', name: 'Kind', symbols: ['A', 'Book'] } },
      ],
    }
    const schema = embedSchema('book', 'Books.', own)
    expect(schema.text).toContain('"name":"io.millrace.records.BookData"')
    expect(schema.text).toContain('"namespace":"com.example"')
    expect(schema.text).toContain('["A","Book"]')
    expect(schema.text).not.toContain('"com.example.Book"')
  })

  it('is refused where it is no record', () => {
    expect(() => embedSchema('book', undefined, { type: 'string' })).toThrow(/expected an Avro schema of type record/)
    expect(() => embedSchema('book', undefined, { type: 'record', name: 'B', fields: [{ name: 'x', type: 'strin' }] })).toThrow(/strin/)
  })
})

describe('the hash of a definition', () => {
  const hash = (text: string): string => {
    const read = readDefinition(text)
    if (read.definition === undefined) throw new Error(JSON.stringify(read.problems))
    return definitionSha256(read.definition)
  }

  it('is the same for the same output: style, comments, documentation and links do not count', () => {
    const a = hash("name: a\nversion: 1\nfields:\n  x: 'img@src' # c\n")
    const b = hash(`{"version": 1, "fields": {"x": {"attr": "src", "select": "img", "doc": "d"}}, "name": "a", "links": {"allow": ["/x"]}}`)
    expect(a).toBe(b)
    expect(a).toMatch(/^[0-9a-f]{64}$/)
  })

  it('stays what it was when the language learns more, so that a version that is in the log is not another one', () => {
    const text = `name: book
version: 2
key: sku
each: li
fields:
  sku: { select: .sku, required: true }
  price: { any: [{ jsonld: Product.price, match: '(.*)' }, .p], type: decimal, scale: 2, default: 0 }
  specs: { select: tr, type: list, fields: { n: th, d: { select: td, type: date, zone: '+02:00' } } }
`
    expect(hash(text)).toBe('2a8eb6c3f469a71a878eeeaf6de20485b96e30e9e11dc000ae0c03443e043055')
    expect(hash(`when: p\n${text}`)).not.toBe(hash(text))
    expect(hash(text.replace('required: true', 'transform: lower'))).not.toBe(hash(text.replace('required: true', 'transform: upper')))
  })

  it('stays what it was for a table with headings, whose rows are read as before', () => {
    const text = `name: prices
version: 1
fields:
  rows: { table: .prices, type: list, fields: { name: { column: Name }, price: { column: Price, type: money } } }
`
    expect(hash(text)).toBe('84f5dbadd6d0248adf6fc69b6bf2298973aec7f3e716d71c6581dbb93b77eb06')
  })

  it('is another one for anything else', () => {
    const base = 'name: a\nversion: 1\nfields: { x: h1, y: h2 }'
    const changed = [
      base.replace('version: 1', 'version: 2'),
      base.replace('h2', 'h3'),
      base.replace('x: h1, y: h2', 'y: h2, x: h1'),
      `${base}\nkey: x`,
      `${base}\nmatch: { hosts: [a] }`,
      base.replace('y: h2', 'y: { select: h2, required: true }'),
    ]
    expect(new Set([base, ...changed].map(hash)).size).toBe(changed.length + 1)
  })
})
