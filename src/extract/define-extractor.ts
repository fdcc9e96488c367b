import type { CheerioAPI } from 'cheerio'

/** Which pages a code extractor reads; none: every HTML page with a 2xx status. */
export interface ExtractorMatch {
  readonly hosts?: readonly string[]
  readonly paths?: readonly string[]
  readonly status?: readonly (number | string)[]
  readonly types?: readonly string[]
}

/** An Avro record schema as JSON; `const` keeps its names, from which the type of `data` follows. */
export interface ExtractorSchema {
  readonly type: 'record'
  readonly name: string
  readonly namespace?: string
  readonly doc?: string
  readonly fields: readonly ExtractorSchemaField[]
}

export interface ExtractorSchemaField {
  readonly name: string
  readonly type: unknown
  readonly doc?: string
  readonly default?: unknown
}

/** What an extractor is told of the page, beside its content. */
export interface ExtractorPage {
  /** URL that answered, after redirects. */
  readonly url: string
  readonly requestedUrl: string
  readonly canonicalUrl: string
  readonly status: number
  /** In the order received, names as received. */
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly contentType: string | null
  /** The whole text of the body. */
  readonly text: string
  /** Epoch ms. It is also what the clock says while the extractor runs. */
  readonly fetchedAt: number
  readonly depth: number
  readonly meta: Readonly<Record<string, string>>
}

export interface ExtractorInput {
  /** The parsed page, as `cheerio.load` gives it. It must not be kept beyond the call. */
  readonly $: CheerioAPI
  /** Same as `page.url`. */
  readonly url: string
  readonly page: ExtractorPage
  /**
   * Nodes of JSON-LD in document order; lists and graphs are opened. A whole number of 16 digits or more that a JavaScript number would
   * round is text, with the digits as the page has them.
   */
  readonly jsonld: readonly Readonly<Record<string, unknown>>[]
}

/** A record as an extractor gives it. `key` names the entity; it is no empty text. */
export interface ExtractorRecord<Data> {
  readonly key: string | number
  readonly data: Data
}

/**
 * An extractor in code. `extract` is synchronous and gives the same records for the same page: it sees no network, no clock (`Date`
 * stands at `page.fetchedAt`) and no chance (`Math.random` gives the same numbers for the same page).
 */
export interface CodeExtractor<
  Schema extends ExtractorSchema = ExtractorSchema,
  Given extends readonly ExtractorRecord<DataOf<Schema>>[] = readonly ExtractorRecord<DataOf<Schema>>[],
> {
  readonly name: string
  readonly version: number
  readonly description?: string
  readonly topic?: string
  readonly match?: ExtractorMatch
  readonly schema: Schema
  extract(input: ExtractorInput): Given
}

/**
 * Type of a record's data by its schema: nested records, lists, maps, enums and logical types included (decimal and date are text,
 * timestamp-millis is epoch ms). What refers to a named type by its name alone is left open.
 */
export type DataOf<Schema extends ExtractorSchema> = ExtractorSchema extends Schema
  ? Readonly<Record<string, unknown>>
  : FieldsOf<Schema['fields'][number]>

type FieldsOf<Field extends ExtractorSchemaField> = {
  readonly [Each in Exclude<Field, { readonly default: unknown }> as Each['name']]: AvroValue<Each['type']>
} & {
  readonly [Each in Extract<Field, { readonly default: unknown }> as Each['name']]?: AvroValue<Each['type']>
}

interface Primitives {
  readonly null: null
  readonly boolean: boolean
  readonly int: number
  readonly long: number
  readonly float: number
  readonly double: number
  readonly string: string
  readonly bytes: Buffer
}

type AvroValue<Type> = Type extends keyof Primitives
  ? Primitives[Type]
  : Type extends readonly (infer Branch)[]
    ? AvroValue<Branch>
    : Type extends { readonly logicalType: 'decimal' | 'date' }
      ? string
      : Type extends { readonly type: 'array'; readonly items: infer Items }
        ? readonly AvroValue<Items>[]
        : Type extends { readonly type: 'map'; readonly values: infer Values }
          ? Readonly<Record<string, AvroValue<Values>>>
          : Type extends { readonly type: 'enum'; readonly symbols: readonly (infer Symbol)[] }
            ? Symbol
            : Type extends { readonly type: 'record'; readonly fields: readonly (infer Field extends ExtractorSchemaField)[] }
              ? FieldsOf<Field>
              : Type extends { readonly type: 'fixed' }
                ? Buffer
                : Type extends { readonly type: infer Inner extends keyof Primitives }
                  ? Primitives[Inner]
                  : unknown

/** What is given, with `never` for each field that the wanted type does not have, in nested records too. */
type Exactly<Given, Wanted> = [Wanted] extends [never]
  ? never
  : unknown extends Wanted
    ? Given
    : Given extends readonly (infer Item)[]
      ? readonly Exactly<Item, Extract<Wanted, readonly unknown[]>[number]>[]
      : Given extends Buffer
        ? Given
        : Given extends object
          ? { readonly [Name in keyof Given]: Exactly<Given[Name], FieldOf<Extract<Wanted, object>, Name>> }
          : Given

/** Of a union: what its members with such a field have there. */
type FieldOf<Wanted, Name> = Wanted extends unknown ? (Name extends keyof Wanted ? Wanted[Name] : never) : never

/**
 * Gives the definition back, checked against its schema by the compiler. What is wrong at run time is said when the file is loaded.
 *
 * The records have a type parameter of their own: without one the compiler takes a literal in them for any text, which is no symbol of an
 * enum, and fields too many in what a function returns are let pass.
 */
export function defineExtractor<
  const Schema extends ExtractorSchema,
  const Given extends readonly ExtractorRecord<DataOf<Schema>>[] = readonly ExtractorRecord<DataOf<Schema>>[],
>(extractor: CodeExtractor<Schema, Given & Exactly<Given, readonly ExtractorRecord<DataOf<Schema>>[]>>): CodeExtractor<Schema> {
  return extractor
}
