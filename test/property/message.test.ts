import avro from 'avsc'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMillraceError } from '../../src/kernel/errors.ts'
import { type AvroSchema, parseSchema } from '../../src/message/avro.ts'
import { decideCharset, decodeText } from '../../src/message/charset.ts'
import { createMessageCodec } from '../../src/message/codec.ts'
import { readProblems } from '../../src/message/compatibility.ts'
import { decodeContent } from '../../src/message/content-encoding.ts'
import { decodeTask } from '../../src/message/decode-task.ts'
import { BUILT_IN_NAMES, createSchemaStore } from '../../src/message/schema-store.ts'
import { arbitraryValue, plain } from '../support/arbitrary-avro.ts'

const store = createSchemaStore()
const codec = createMessageCodec({ schemaStore: store })

/** Any schema of a record R, of the types that resolve into one another in interesting ways. */
const anyType = fc.letrec((tie) => ({
  type: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom('null', 'boolean', 'int', 'long', 'float', 'double', 'string', 'bytes'),
    fc.constantFrom('date', 'timestamp-millis').map((logicalType) => ({ type: logicalType === 'date' ? 'int' : 'long', logicalType })),
    fc.integer({ min: 0, max: 4 }).map((scale) => ({ type: 'bytes', logicalType: 'decimal', precision: 38, scale })),
    fc.record({ type: fc.constant('array'), items: tie('type') }),
    fc.record({ type: fc.constant('map'), values: tie('type') }),
    tie('type')
      .filter((type) => type !== 'null' && !Array.isArray(type))
      .map((type) => ['null', type]),
  ),
})).type
const anySchema: fc.Arbitrary<AvroSchema> = fc
  .uniqueArray(fc.record({ name: fc.constantFrom('a', 'b', 'c'), type: anyType }), { selector: ({ name }) => name, maxLength: 3 })
  .map((fields) =>
    parseSchema(
      JSON.stringify({
        type: 'record',
        name: 'R',
        fields: fields.map((field) => (Array.isArray(field.type) ? { ...field, default: null } : field)),
      }),
    ),
  )

/** Logical types are compared more strictly than the library does, to which these are plain bytes and numbers. */
const withoutLogical = anySchema.map(({ text }) =>
  parseSchema(text.replaceAll('"logicalType":"decimal",', '').replace(/,"logicalType":"[\w-]+"/g, '')),
)

describe('messages', () => {
  it.each(BUILT_IN_NAMES)('%s come back as they were written, whatever they hold', (name) => {
    const schema = store.current(name)
    fc.assert(
      fc.property(arbitraryValue(schema.root), (value) => {
        expect(plain(schema.decode(schema.encode(value)))).toEqual(plain(value))
      }),
      { numRuns: 30 },
    )
  })

  it('of any schema come back as they were written', () => {
    const pair = anySchema.chain((schema) => fc.tuple(fc.constant(schema), arbitraryValue(schema.root)))
    fc.assert(
      fc.property(pair, ([schema, value]) => {
        expect(plain(schema.decode(schema.encode(value)))).toEqual(plain(value))
      }),
      { numRuns: 150 },
    )
  })

  it('are read or answered with a code, whatever the bytes are', () => {
    const starts = store
      .list()
      .map(({ schema }) => Buffer.concat([Buffer.from('c301', 'hex'), Buffer.from(schema.fingerprint, 'hex').reverse()]))
    const start = fc.constantFrom(...starts, Buffer.alloc(0), Buffer.from('{'), Buffer.from('{"url":'))
    const noise = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(start, noise, (head, tail) => {
        const bytes = Buffer.concat([head, tail])
        for (const read of [() => decodeTask(codec, bytes), () => codec.decodeAny(bytes), () => codec.decode('Page', bytes)]) {
          try {
            read()
          } catch (error) {
            expect(isMillraceError(error) ? error.disposition : error).toBe('dead-letter')
          }
        }
      }),
      { numRuns: 500 },
    )
  })

  it('with one byte changed are read or answered with a code', () => {
    const task = codec.encode('UrlTask', { ...arbitraryTask() }, 'scrape.urls')
    fc.assert(
      fc.property(fc.nat(task.length - 1), fc.nat(255), (at, value) => {
        const bytes = Buffer.from(task)
        bytes[at] = value
        try {
          expect(codec.decode('UrlTask', bytes)).toHaveProperty('url')
        } catch (error) {
          expect(isMillraceError(error) ? error.disposition : error).toBe('dead-letter')
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('compatibility', () => {
  it('says yes exactly where the Avro library can resolve', () => {
    let [yes, no] = [0, 0]
    fc.assert(
      fc.property(withoutLogical, withoutLogical, (reader, writer) => {
        const problems = readProblems(reader, writer)
        let resolves = true
        try {
          avro.Type.forSchema(JSON.parse(reader.text)).createResolver(avro.Type.forSchema(JSON.parse(writer.text)))
        } catch {
          resolves = false
        }
        if (resolves) yes++
        else no++
        expect({ problems, resolves, writer: writer.text, reader: reader.text }).toMatchObject(
          resolves ? { problems: [] } : { problems: [{}, ...problems.slice(1)] },
        )
      }),
      { numRuns: 300 },
    )
    expect(yes).toBeGreaterThan(10)
    expect(no).toBeGreaterThan(10)
  })
})

describe('bodies', () => {
  it('have a charset and a text, whatever the bytes and the header are', () => {
    const body = fc
      .array(
        fc.oneof(
          fc.constantFrom('<meta ', 'charset=', '"', "'", '>', '<!--', '<?xml encoding="', '<script', '</'),
          fc.uint8Array({ maxLength: 8 }),
        ),
        { maxLength: 10 },
      )
      .map((parts) => Buffer.concat(parts.map((part) => Buffer.from(part as string))))
    fc.assert(
      fc.property(
        body,
        fc.option(
          fc.oneof(
            fc.string(),
            fc.string().map((label) => `text/html; charset=${label}`),
          ),
        ),
        (bytes, header) => {
          expect(typeof decodeText(bytes, decideCharset(bytes, header).charset)).toBe('string')
        },
      ),
      { numRuns: 300 },
    )
  })

  it('are decoded within their bound, whatever the bytes and the codings are', async () => {
    const header = fc
      .array(fc.constantFrom('gzip', 'br', 'deflate', 'zstd', 'identity', 'x'), { maxLength: 3 })
      .map((names) => names.join(','))
    const head = fc.constantFrom(
      Buffer.alloc(0),
      Buffer.from('1f8b0800000000000003', 'hex'),
      Buffer.from('789c', 'hex'),
      Buffer.from('28b52ffd', 'hex'),
    )
    await fc.assert(
      fc.asyncProperty(head, fc.uint8Array({ maxLength: 40 }), header, async (start, rest, codings) => {
        const decoded = await decodeContent(Buffer.concat([start, Buffer.from(rest)]), codings, 16)
        expect(decoded.decoded.length).toBeLessThanOrEqual(16)
      }),
      { numRuns: 150 },
    )
  })
})

function arbitraryTask() {
  const [task] = fc.sample(arbitraryValue(store.current('UrlTask').root), { numRuns: 1, seed: 7 })
  return task as Parameters<typeof codec.encode<'UrlTask'>>[1]
}
