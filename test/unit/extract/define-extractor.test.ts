import { describe, expect, expectTypeOf, it } from 'vitest'
import { type DataOf, defineExtractor, type ExtractorSchema } from '../../../src/extract/define-extractor.ts'

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

  it('is open where the schema is not known to the compiler', () => {
    expectTypeOf<DataOf<ExtractorSchema>>().toEqualTypeOf<Readonly<Record<string, unknown>>>()
    expect(typeof book.extract).toBe('function')
  })
})
