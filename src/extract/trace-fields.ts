import type { DeclarativeExtractor } from './declarative-extractor.ts'
import type { FieldReading, ParsedField } from './language/compile-field.ts'
import { type FieldScope, NO_LIMIT } from './language/field-scope.ts'
import type { PageView } from './page-view.ts'
import { nodePath } from './sources/node-path.ts'

/** Where the value of a field came from and, where it is empty, why. */
export interface FieldTrace {
  /** Number of the item on the page, from 0. */
  readonly item: number
  /** Path of the field, such as `specs[0].name`. */
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
  /** Place of the first one in the page, from 1: of JSON-LD that of its script; undefined for the article. */
  readonly line: number | undefined
  readonly column: number | undefined
  /** A selector that leads to it: `#main > ul > li:nth-of-type(2)`. */
  readonly path: string | undefined
  /** Why it gives nothing; undefined: it gives a value. */
  readonly reason: string | undefined
}

/** Records of a list whose fields are traced; the value has all of them. */
const TRACED_RECORDS = 3

/** Each field of each item of a page, nested ones behind their own. Shape: the page was parsed with locations. */
export function traceFields(extractor: DeclarativeExtractor, page: PageView): readonly FieldTrace[] {
  return extractor.scopes(page).flatMap((scope, item) => extractor.fields.flatMap((field) => traceField(field, scope, item, '')))
}

function traceField(field: ParsedField, scope: FieldScope, item: number, prefix: string): FieldTrace[] {
  const reading: FieldReading = { failure: undefined, found: 0, invalid: [] }
  const path = `${prefix}${field.name}`
  const value = field.read(scope, reading, path)
  const sources = field.sources.map((source): SourceReport => {
    const { matched, element, reason } = source.trace(scope)
    const place = element?.sourceCodeLocation
    // Of a list any of them may give something.
    const raws = field.nested === undefined ? source.raws(scope, field.definition.type.kind === 'list' ? NO_LIMIT : 1) : []
    const empty = field.nested === undefined && raws.every((raw) => String(raw).trim() === '')
    return {
      source: source.text,
      matched,
      line: place?.startLine,
      column: place?.startCol,
      path: element === undefined ? undefined : nodePath(element),
      reason: reason ?? (matched === 0 ? 'it matches nothing' : empty ? 'what it matches is empty' : undefined),
    }
  })
  const own = { item, field: path, value, sources, why: whyEmpty(field, scope, value, sources, reading) }
  return [own, ...nestedTraces(field, scope, item, path)]
}

function nestedTraces(field: ParsedField, scope: FieldScope, item: number, path: string): FieldTrace[] {
  const { nested, sources, definition, condition } = field
  if (nested === undefined || condition?.holds(scope) === false) return []
  const isList = definition.type.kind === 'list'
  for (const source of sources) {
    const scopes = source.scopes(scope, isList ? TRACED_RECORDS : 1)
    if (scopes.length === 0) continue
    return scopes.flatMap((inner, index) => nested.flatMap((own) => traceField(own, inner, item, `${path}${isList ? `[${index}]` : ''}.`)))
  }
  return []
}

function whyEmpty(
  field: ParsedField,
  scope: FieldScope,
  value: unknown,
  sources: readonly SourceReport[],
  reading: FieldReading,
): string | undefined {
  const { default: fallback } = field.definition
  if (field.condition?.holds(scope) === false) {
    return `${value === null ? 'null' : 'the default'}, since it counts only where ${field.condition.text}, which is not so`
  }
  const gave = sources.some(({ reason }) => reason === undefined) && reading.failure === undefined && reading.invalid.length === 0
  if (value !== null && (gave || fallback === undefined)) return undefined
  const reasons = sources.map(({ source, reason }) => `${source}: ${reason ?? reading.invalid[0]?.problem ?? 'nothing but empty fields'}`)
  const outcome = value === null ? (field.definition.required ? 'missing and required' : 'null') : 'the default'
  return `${outcome}, since ${reasons.join('; ')}`
}
