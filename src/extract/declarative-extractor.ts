import type { ErrorCode } from '../kernel/errors.ts'
import { compileCondition } from './language/compile-condition.ts'
import { type CompiledField, compileFields, type FieldReading, type ParsedField, readFields } from './language/compile-field.ts'
import { compileSource, elementScopes, pageScope } from './language/compile-source.ts'
import type { ExtractorDefinition } from './language/definition.ts'
import type { FieldScope, PageTree } from './language/field-scope.ts'
import { compileSelector, type Selector } from './language/selector.ts'
import type { PageView } from './page-view.ts'

/** One record before it has its envelope. */
export interface ExtractedItem {
  readonly entityKey: string
  readonly data: unknown
}

/** What an extractor makes of a page: all of its records or, where one is not whole, none and the reason. */
export type Extracted =
  | {
      readonly ok: true
      readonly items: readonly ExtractedItem[]
      /** Values that did not have the type of their field, by its path. */
      readonly invalid: Readonly<Record<string, number>>
    }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string; readonly field?: string }

/** A declarative extractor ready to run: everything that can be done once is done. */
export interface DeclarativeExtractor {
  readonly definition: ExtractorDefinition
  readonly fields: readonly ParsedField[]
  /** Scopes of its records on a page: one per element of `each`, or the page; none where its condition does not hold. */
  scopes(page: PageView): readonly FieldScope[]
  extract(page: PageView, canonicalUrl: string): Extracted
}

/** Shape: a definition that was read without errors; its selectors and patterns compile. */
export function compileExtractor(definition: ExtractorDefinition): DeclarativeExtractor {
  const each = definition.each === undefined ? undefined : compileSelector(definition.each)
  const fields = compileFields(definition.fields)
  const condition = definition.when === undefined ? undefined : compileCondition(definition.when, compileSource)
  const scopes = (page: PageView): readonly FieldScope[] => (condition?.holds(pageScope(page)) === false ? [] : scopesOf(each, page))
  return {
    definition,
    fields,
    scopes,
    extract: (page, canonicalUrl) => extractScopes(definition, fields, scopes(page), canonicalUrl),
  }
}

function scopesOf(each: Selector | undefined, page: PageView): readonly FieldScope[] {
  const whole = pageScope(page)
  return each === undefined ? [whole] : elementScopes(whole, each.all(page.root))
}

/** All records of a page, or why there is none. */
export function extractScopes<T extends PageTree>(
  definition: ExtractorDefinition,
  fields: readonly CompiledField<T>[],
  scopes: readonly FieldScope<T>[],
  canonicalUrl: string,
): Extracted {
  const reading: FieldReading = { failure: undefined, found: 0, invalid: [] }
  const items: ExtractedItem[] = []
  for (const [index, scope] of scopes.entries()) {
    const data = readFields(fields, scope, reading, '')
    const where = definition.each === undefined ? '' : ` of item ${index}`
    if (reading.failure !== undefined) {
      const { code, field, message } = reading.failure
      return { ok: false, code, field, message: `${message}${where}` }
    }
    const entityKey = keyOf(definition, data, index, canonicalUrl)
    if (entityKey === undefined) {
      const message = `the key${where} is empty: it is the field ${definition.key}`
      return { ok: false, code: 'EXTRACT_KEY_MISSING', field: definition.key ?? '', message }
    }
    items.push({ entityKey, data })
  }
  return { ok: true, items, invalid: countByField(reading.invalid) }
}

/** By the fields of the definition, `specs.value`: a table has as many places, `specs[4711].value`, as a page likes. */
function countByField(values: FieldReading['invalid']): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { field: place } of values) {
    const field = place.replace(/\[\d+\]/g, '')
    counts[field] = (counts[field] ?? 0) + 1
  }
  return counts
}

function keyOf(
  { key, each }: ExtractorDefinition,
  data: Readonly<Record<string, unknown>>,
  index: number,
  canonicalUrl: string,
): string | undefined {
  if (key === undefined) return each === undefined ? canonicalUrl : `${canonicalUrl}#${index}`
  const value = data[key]
  return value === null || value === undefined || value === '' ? undefined : String(value)
}
