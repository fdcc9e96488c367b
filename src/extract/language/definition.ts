import type { TransformDefinition } from '../values/transform.ts'
import type { ValueType } from '../values/value-type.ts'

/** A declarative extractor, as its file says it: checked, short forms written out, nothing compiled. */
export interface ExtractorDefinition {
  readonly name: string
  readonly version: number
  readonly description: string | undefined
  /** Topic of its records; undefined: the common one. */
  readonly topic: string | undefined
  readonly match: MatchDefinition
  /** What must hold of the page; else it has no record. Undefined: nothing. */
  readonly when: ConditionDefinition | undefined
  /** document: the body is a page; fragment: it is a piece of one, as an answer to a script. */
  readonly parse: 'document' | 'fragment'
  /** Selector of the elements that are a record each; undefined: the page is one. */
  readonly each: string | undefined
  /** Field that names the entity; undefined: the canonical URL, with `each` and the index. */
  readonly key: string | undefined
  readonly fields: readonly FieldDefinition[]
  readonly links: LinksDefinition | undefined
}

/** Which pages an extractor reads. Shape: an empty list sets no condition, but for status (2xx) and types (HTML). */
export interface MatchDefinition {
  readonly hosts: readonly string[]
  readonly paths: readonly string[]
  /** `200` or `2xx`. */
  readonly status: readonly (number | string)[]
  readonly types: readonly string[]
}

/** Links that the frontier follows on the pages that match. */
export interface LinksDefinition {
  readonly select: string | undefined
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

export interface FieldDefinition {
  readonly name: string
  readonly doc: string | undefined
  /** Tried in order; the first that gives a value of the type counts. */
  readonly sources: readonly SourceDefinition[]
  readonly type: FieldType
  /** What must hold; else the field is its default or null, and not missing where it is required. Undefined: nothing. */
  readonly when: ConditionDefinition | undefined
  /** Where the currency of a money is found; undefined: beside the amount. */
  readonly currency: SourceDefinition | undefined
  readonly required: boolean
  /** As the file has it; undefined: none. */
  readonly default: string | number | boolean | undefined
}

export type FieldType =
  | ValueType
  | { readonly kind: 'record'; readonly fields: readonly FieldDefinition[] }
  | { readonly kind: 'list'; readonly items: ValueType | { readonly kind: 'record'; readonly fields: readonly FieldDefinition[] } }

export type SourceDefinition = (
  | { readonly kind: 'css' /** Empty: the scope itself. */; readonly selector: string; readonly attribute: string | undefined }
  | { readonly kind: 'meta'; readonly name: string }
  | { readonly kind: 'link'; readonly rel: string /** Undefined: of any language. */; readonly hreflang: string | undefined }
  | { readonly kind: 'jsonld' | 'microdata' | 'rdfa'; readonly path: string }
  /** Rows of a table, for nested records. */
  | {
      readonly kind: 'table'
      readonly selector: string
      /** No field of its rows names a heading; undefined: one does, or the rows are not for fields. */
      readonly byNumber: true | undefined
    }
  /** A cell of such a row, by its heading or its number from 1; and, within the cell, what a selector matches. */
  | {
      readonly kind: 'column'
      readonly column: string | number
      readonly selector: string
      readonly attribute: string | undefined
    }
  | { readonly kind: 'article'; readonly part: ArticlePart }
) & {
  /** Regular expression; its first group, or the whole match, is the value. */
  readonly match: string | undefined
  /** What is done with what `match` gives, in order. */
  readonly transform: readonly TransformDefinition[] | undefined
  /** What must hold, else the source gives nothing. */
  readonly when: ConditionDefinition | undefined
}

/** Holds where its source gives something; `not` turns it round. */
export interface ConditionDefinition {
  readonly source: SourceDefinition
  readonly not: boolean
}

export const ARTICLE_PARTS = ['text', 'content', 'title', 'byline', 'excerpt', 'site', 'language', 'published'] as const
export type ArticlePart = (typeof ARTICLE_PARTS)[number]

/** But for the one that all objects of JavaScript have: names are keys in metadata and reports. */
export const EXTRACTOR_NAME = /^(?!constructor$)[a-z][a-z0-9-]{0,47}$/

/** `book-offer` is `BookOffer`: name of its record schema. */
export function pascalName(name: string): string {
  return name
    .split(/[-_]/)
    .map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)
    .join('')
}

/** Whether a field of a row asks for a cell by its heading. */
export function namesHeading(fields: readonly FieldDefinition[]): boolean {
  return fields.some(({ sources, currency, when, type }) => {
    const all = [...sources, ...(currency === undefined ? [] : [currency]), ...(when === undefined ? [] : [when.source])]
    if (all.some(isByHeading)) return true
    const inner = type.kind === 'list' ? type.items : type
    return inner.kind === 'record' && namesHeading(inner.fields)
  })
}

function isByHeading(source: SourceDefinition): boolean {
  if (source.kind === 'column' && typeof source.column === 'string') return true
  return source.when !== undefined && isByHeading(source.when.source)
}

/** One source, as people write it. */
export function sourceText(source: SourceDefinition): string {
  switch (source.kind) {
    case 'css':
      return `${source.selector}${attributeText(source.attribute)}` || 'the element itself'
    case 'meta':
      return `meta ${source.name}`
    case 'link':
      return `link ${source.rel}${source.hreflang === undefined ? '' : ` in ${source.hreflang}`}`
    case 'table':
      return `the rows of ${source.selector}`
    case 'column': {
      const within = `${source.selector}${attributeText(source.attribute)}`
      return `column ${source.column}${within === '' ? '' : ` ${within}`}`
    }
    case 'article':
      return `article ${source.part}`
    default:
      return `${source.kind} ${source.path}`
  }
}

/** A condition, as people say it. */
export function conditionText({ source, not }: ConditionDefinition): string {
  const pattern = source.match === undefined ? '' : ` with ${source.match}`
  return `there is ${not ? 'no ' : ''}${sourceText(source)}${pattern}`
}

function attributeText(attribute: string | undefined): string {
  return attribute === undefined ? '' : `@${attribute}`
}
