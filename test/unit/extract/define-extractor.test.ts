import { describe, expect, expectTypeOf, it } from 'vitest'
import { type DataOf, defineExtractor, type ExtractorRecord, type ExtractorSchema } from '../../../src/extract/define-extractor.ts'

const book = defineExtractor({
  name: 'book',
  version: 1,
  schema: {
    type: 'record',
    name: 'Book',
    fields: [
      { name: 'title', type: 'string' },
      { name: 'price', type: ['null', { type: 'bytes', logicalType: 'decimal', precision: 9, scale: 2 }], default: null },
      { name: 'seen', type: { type: 'long', logicalType: 'timestamp-millis' } },
      { name: 'day', type: { type: 'int', logicalType: 'date' } },
      { name: 'state', type: { type: 'enum', name: 'State', symbols: ['NEW', 'USED'] } },
      { name: 'tags', type: { type: 'array', items: 'string' } },
      { name: 'counts', type: { type: 'map', values: ['null', 'int'] } },
      {
        name: 'author',
        type: {
          type: 'record',
          name: 'Author',
          fields: [
            { name: 'name', type: 'string' },
            { name: 'born', type: ['null', 'int'], default: null },
          ],
        },
      },
      { name: 'raw', type: 'bytes' },
      { name: 'other', type: ['null', 'Author'], default: null },
    ],
  },
  extract({ url, page }) {
    const data = {
      title: 'T',
      price: '9.90',
      seen: page.fetchedAt,
      day: '2024-05-06',
      state: 'NEW' as const,
      tags: ['a'],
      counts: { a: 1, b: null },
      author: { name: 'A' },
      raw: Buffer.alloc(1),
    }
    return [{ key: url, data }]
  },
})

const KIND = { type: 'enum', name: 'Kind', symbols: ['A', 'B'] } as const
const SUB = {
  type: 'record',
  name: 'Sub',
  fields: [{ name: 'sub', type: { type: 'enum', name: 'SubKind', symbols: ['A', 'B'] } }],
} as const
const EITHER = [
  { type: 'record', name: 'OneA', fields: [{ name: 'a', type: 'int' }] },
  { type: 'record', name: 'OneB', fields: [{ name: 'b', type: 'int' }] },
] as const
const PART = {
  type: 'record',
  name: 'Part',
  fields: [
    { name: 'kind', type: KIND },
    { name: 'maybe', type: ['null', KIND], default: null },
    { name: 'list', type: { type: 'array', items: KIND }, default: [] },
    { name: 'map', type: { type: 'map', values: KIND }, default: {} },
    { name: 'sub', type: ['null', SUB], default: null },
    { name: 'subs', type: { type: 'array', items: SUB }, default: [] },
    { name: 'either', type: ['null', ...EITHER], default: null },
    { name: 'named', type: ['null', 'Sub'], default: null },
    { name: 'price', type: ['null', { type: 'bytes', logicalType: 'decimal', precision: 9, scale: 2 }], default: null },
    { name: 'raw', type: ['null', 'bytes'], default: null },
  ],
} as const
const part = { name: 'part', version: 1, schema: PART } as const

type Book = DataOf<(typeof book)['schema']>

describe('the data of a code extractor', () => {
  it('has the type that its schema says', () => {
    expectTypeOf<Book['title']>().toEqualTypeOf<string>()
    expectTypeOf<Book['price']>().toEqualTypeOf<string | null | undefined>()
    expectTypeOf<Book['seen']>().toEqualTypeOf<number>()
    expectTypeOf<Book['day']>().toEqualTypeOf<string>()
    expectTypeOf<Book['state']>().toEqualTypeOf<'NEW' | 'USED'>()
    expectTypeOf<Book['tags']>().toEqualTypeOf<readonly string[]>()
    expectTypeOf<Book['counts']>().toEqualTypeOf<Readonly<Record<string, number | null>>>()
    expectTypeOf<Book['author']['name']>().toEqualTypeOf<string>()
    expectTypeOf<Book['author']['born']>().toEqualTypeOf<number | null | undefined>()
    expectTypeOf<Book['raw']>().toEqualTypeOf<Buffer>()
    expectTypeOf<Book['other']>().toBeUnknown()
    expect(book.schema.fields).toHaveLength(10)
  })

  it('is refused by the compiler where it does not fit', () => {
    const fit = { title: 'T' } satisfies DataOf<{ type: 'record'; name: 'X'; fields: readonly [{ name: 'title'; type: 'string' }] }>
    // @ts-expect-error a number is no title
    const unfit: typeof fit = { title: 3 }
    expect(unfit).not.toEqual(fit)
  })

  it('may have the symbols of an enum as literals', () => {
    const given = [
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { kind: 'A' } }] }),
      defineExtractor({
        ...part,
        extract: ({ url }) => [{ key: url, data: { kind: url === '' ? 'A' : 'B', maybe: 'A', list: ['A', 'B'] } }],
      }),
      defineExtractor({
        ...part,
        extract({ $, url }) {
          if (url === '') return []
          return $('li')
            .get()
            .map((item) => ({ key: $(item).text(), data: { kind: 'B', maybe: url === '' ? 'A' : null, map: { a: 'A' } } }))
        },
      }),
      defineExtractor({ ...part, extract: () => [{ key: 1, data: { kind: 'A', sub: { sub: 'A' }, subs: [{ sub: 'B' }, { sub: 'A' }] } }] }),
      defineExtractor({
        name: 'inline',
        version: 1,
        extract: () => [{ key: 'k', data: { kind: 'A' } }],
        schema: { type: 'record', name: 'Inline', fields: [{ name: 'kind', type: KIND }] },
      }),
    ]
    expect(given.map(({ name }) => name)).toEqual(['part', 'part', 'part', 'part', 'inline'])
  })

  it('may be of a type of its own, and differ from record to record', () => {
    const records: ExtractorRecord<DataOf<typeof PART>>[] = []
    const own = (): { kind: 'A' | 'B'; maybe?: 'A' | null } => ({ kind: 'A' })
    // biome-ignore lint/suspicious/noExplicitAny: what JSON.parse gives
    const any: any = own()
    const given = [
      defineExtractor({ ...part, extract: () => records }),
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: own() }] }),
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: any }] }),
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { ...own(), price: '1.20' } }] }),
      defineExtractor({
        ...part,
        extract({ url }) {
          if (url === '') return [{ key: 'k', data: { kind: 'A', price: '1.20', raw: Buffer.alloc(1) } }]
          return [
            { key: 'k', data: { kind: 'B' } },
            { key: 1, data: { kind: 'A', either: { a: 1 } } },
            { key: 2, data: { kind: 'A', either: { b: 1 }, named: { any: 1 } } },
          ]
        },
      }),
    ]
    expectTypeOf(given[0]?.extract).returns.toEqualTypeOf<readonly ExtractorRecord<DataOf<typeof PART>>[]>()
    expect(given).toHaveLength(5)
  })

  it('is refused by the compiler where a function returns what does not fit', () => {
    const refused = [
      // @ts-expect-error no symbol
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { kind: 'C' } }] }),
      // @ts-expect-error no symbol in a list
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { kind: 'A', list: ['C'] } }] }),
      // @ts-expect-error no symbol in a map
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { kind: 'A', map: { a: 'C' } } }] }),
      // @ts-expect-error a number is no decimal
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { kind: 'A', price: 1.2 } }] }),
      // @ts-expect-error a field is missing
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: {} }] }),
      // @ts-expect-error a promise
      defineExtractor({ ...part, extract: async () => [{ key: 'k', data: { kind: 'A' } }] }),
      // @ts-expect-error no key
      defineExtractor({ ...part, extract: () => [{ data: { kind: 'A' } }] }),
      // @ts-expect-error a field too many
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { kind: 'A', more: 1 } }] }),
      // @ts-expect-error a list too many
      defineExtractor({ ...part, extract: ({ url }) => [{ key: url, data: { kind: 'A', more: [] } }] }),
      // @ts-expect-error a field too many in the second record
      defineExtractor({ ...part, extract: () => [{ key: 1, data: { kind: 'A' } }, { key: 2, data: { kind: 'A', more: 1 } }] }), // biome-ignore format: one line, for the directive
      // @ts-expect-error a field too many in a nested record
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { kind: 'A', sub: { sub: 'A', more: 1 } } }] }),
      // @ts-expect-error a field too many in a record of a list
      defineExtractor({ ...part, extract: () => [{ key: 'k', data: { kind: 'A', subs: [{ sub: 'A', more: 1 }] } }] }),
      // @ts-expect-error a field too many, on a way that is no literal
      defineExtractor({ ...part, extract: ({ $ }) => $('li').get().map(() => ({ key: 'k', data: { kind: 'A', more: 1 } })) }), // biome-ignore format: as above
    ]
    expect(refused).toHaveLength(13)
  })

  it('is open where the schema is not known to the compiler', () => {
    expectTypeOf<DataOf<ExtractorSchema>>().toEqualTypeOf<Readonly<Record<string, unknown>>>()
    const schema: ExtractorSchema = PART
    const open = defineExtractor({ name: 'open', version: 1, schema, extract: () => [{ key: 'k', data: { any: 1, more: { a: [] } } }] })
    expect([typeof book.extract, open.schema]).toEqual(['function', PART])
  })
})
