import type { DeclarativeExtractor } from './declarative-extractor.ts'
import type { CompiledField, FieldReading } from './language/compile-field.ts'
import type { FieldScope } from './language/compile-source.ts'
import type { PageView } from './page-view.ts'

/** Where the value of a field came from and, where it is empty, why. */
export interface FieldTrace {
  /** Number of the item on the page, from 0. */
  readonly item: number
  readonly field: string
  readonly value: unknown
  readonly sources: readonly SourceReport[]
  /** One sentence where the value is null or the default; undefined where a source gave it. */
  readonly why: string | undefined
}

export interface SourceReport {
  /** As it is written: `.price`, `jsonld Product.offers.price`. */
  readonly source: string
  /** Nodes that it matches. */
  readonly matched: number
  /** Place of the first one in the page, from 1; undefined for structured data. */
  readonly line: number | undefined
  readonly column: number | undefined
  /** Why it gives nothing; undefined: it gives a value. */
  readonly reason: string | undefined
}

/** Each field of each item of a page. Shape: the page was parsed with locations. Nested fields are part of the value of theirs. */
export function traceFields(extractor: DeclarativeExtractor, page: PageView): readonly FieldTrace[] {
  return extractor.scopes(page).flatMap((scope, item) => extractor.fields.map((field) => traceField(field, scope, item)))
}

function traceField(field: CompiledField, scope: FieldScope, item: number): FieldTrace {
  const reading: FieldReading = { failure: undefined, invalid: [] }
  const value = field.read(scope, reading, field.name)
  const sources = field.sources.map((source): SourceReport => {
    const { matched, element, reason } = source.trace(scope)
    const place = element?.sourceCodeLocation
    const [raw] = source.raws(scope, 1)
    const empty = field.nested === undefined && (raw === undefined || String(raw).trim() === '')
    return {
      source: source.text,
      matched,
      line: place?.startLine,
      column: place?.startCol,
      reason: matched === 0 ? 'it matches nothing' : (reason ?? (empty ? 'what it matches is empty' : undefined)),
    }
  })
  return { item, field: field.name, value, sources, why: whyEmpty(field, value, sources, reading) }
}

function whyEmpty(field: CompiledField, value: unknown, sources: readonly SourceReport[], reading: FieldReading): string | undefined {
  const { default: fallback } = field.definition
  const gave = sources.some(({ reason }) => reason === undefined) && reading.failure === undefined && reading.invalid.length === 0
  if (value !== null && (gave || fallback === undefined)) return undefined
  const reasons = sources.map(({ source, reason }) => `${source}: ${reason ?? reading.invalid[0]?.problem ?? 'nothing but empty fields'}`)
  const outcome = value === null ? (field.definition.required ? 'missing and required' : 'null') : 'the default'
  return `${outcome}, since ${reasons.join('; ')}`
}
