import { missingPackages } from '../optional-packages.ts'
import { type FieldDefinition, type FieldType, namesHeading, type SourceDefinition } from './definition.ts'
import type { DefinitionDocument, Path } from './definition-document.ts'
import { shown } from './definition-document.ts'
import { FIELD_SHAPE, type FieldShape } from './definition-shape.ts'
import { checkSelector, type FieldPlace, placeWithin, readCondition, readCurrency, readSources } from './read-source.ts'
import { checkPattern } from './read-transform.ts'
import { readDefault, readType } from './read-type.ts'
import { parseShortForm } from './short-form.ts'

const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/** Own names of every JavaScript object: a reader of the records would trip over them. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
const MAX_NESTING = 8

/** Fields of an extractor or of a nested record. Shape: undefined where one of them has an error. */
export function readFields(
  document: DefinitionDocument,
  value: unknown,
  path: Path,
  typeName: string,
  place: FieldPlace = 'page',
): readonly FieldDefinition[] | undefined {
  const entries = document.entries(value, path, '"fields"')
  if (entries === undefined) return undefined
  if (entries.length === 0) {
    document.error(path, '"fields" is empty; expected at least one field')
    return undefined
  }
  if (path.length > MAX_NESTING * 2) {
    document.error(path, `fields are nested deeper than ${MAX_NESTING} levels`)
    return undefined
  }
  const fields = entries.map(([name, entry]) => {
    const at = [...path, name]
    if (!FIELD_NAME.test(name) || RESERVED.has(name)) {
      const why = RESERVED.has(name) ? 'all objects of JavaScript have one' : 'expected letters, digits and _, not beginning with a digit'
      document.error(at, `${JSON.stringify(name)} can't be the name of a field; ${why}`)
      return undefined
    }
    return readField(document, name, entry, at, typeName, place)
  })
  const found = fields.filter((field) => field !== undefined)
  return found.length === fields.length ? found : undefined
}

function readField(
  document: DefinitionDocument,
  name: string,
  value: unknown,
  path: Path,
  typeName: string,
  place: FieldPlace,
): FieldDefinition | undefined {
  if (typeof value === 'string') return readField(document, name, { select: value }, path, typeName, place)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    document.error(path, `field ${name} is ${shown(value)}; expected a selector or a map with select, jsonld, meta and so on`)
    return undefined
  }
  const shape = document.read(value, FIELD_SHAPE, path)
  if (shape === undefined) {
    checkParts(document, value as Readonly<Record<string, unknown>>, path, nestedName(typeName, name))
    return undefined
  }
  const sources = readSources(document, shape, path, place)
  const when = shape.when === undefined ? undefined : readCondition(document, shape.when, [...path, 'when'], place)
  const inner = sources === undefined ? place : placeWithin(sources, place)
  const nested = shape.fields === undefined ? undefined : readNested(document, shape.fields, path, nestedName(typeName, name), inner)
  if (sources === undefined || (shape.fields !== undefined && nested === undefined)) return undefined
  if (nested !== undefined) checkNestedSource(document, shape, path)
  checkSourceKinds(document, shape, sources, path)
  const type = readType(document, shape, nested, path)
  if (type === undefined) return undefined
  checkOfType(document, type, path, nestedName(typeName, name))
  const currency = readCurrency(document, shape, path, place)
  const fallback = readDefault(document, shape, type, path)
  if (shape.required === true && shape.default !== undefined) {
    document.warning([...path, 'default'], `field ${name} is required and has a default: it can never be missing`)
  }
  // Undefined, not false: the hash of an extractor whose rows are read as before stays what it was.
  const byNumber = namesHeading(nested ?? []) ? undefined : (true as const)
  const placed = sources.map((source) => (source.kind === 'table' ? { ...source, byNumber } : source))
  return { name, doc: shape.doc, sources: placed, type, when, currency, required: shape.required ?? false, default: fallback }
}

/** What can be checked of a field that has something else wrong. */
function checkParts(document: DefinitionDocument, value: Readonly<Record<string, unknown>>, path: Path, typeName: string): void {
  const { select, match, fields } = value
  if (typeof select === 'string' && select !== '') {
    const { selector } = parseShortForm(select)
    if (selector !== '') checkSelector(document, selector, [...path, 'select'])
  }
  if (typeof match === 'string' && match !== '') checkPattern(document, match, [...path, 'match'])
  if (fields !== undefined) readFields(document, fields, [...path, 'fields'], typeName)
}

/** Fields of a nested record, which is a type of its own: two of one name would be one type with two meanings. */
function readNested(
  document: DefinitionDocument,
  fields: unknown,
  path: Path,
  typeName: string,
  place: FieldPlace,
): readonly FieldDefinition[] | undefined {
  takeTypeName(document, path, typeName)
  return readFields(document, fields, [...path, 'fields'], typeName, place)
}

function nestedName(typeName: string, field: string): string {
  return `${typeName}${field.slice(0, 1).toUpperCase()}${field.slice(1)}`
}

function takeTypeName(document: DefinitionDocument, path: Path, typeName: string): void {
  const taken = document.typeNames.get(typeName)
  if (taken !== undefined) {
    document.error(path, `its record has the type name ${typeName}, which that of ${taken} has already: rename one of the fields`)
  }
  document.typeNames.set(typeName, path.filter((step) => step !== 'fields').join('.'))
}

/** What a type asks for beside its options: a name for the record of a money, a package for Markdown. */
function checkOfType(document: DefinitionDocument, type: FieldType, path: Path, typeName: string): void {
  const { kind } = type.kind === 'list' ? type.items : type
  if (kind === 'money') takeTypeName(document, path, typeName)
  const missing = kind === 'markdown' ? missingPackages('markdown') : undefined
  if (missing !== undefined) document.error([...path, 'type'], `the type markdown ${missing}`)
}

/** Rows are for fields, and an article has none. */
function checkSourceKinds(document: DefinitionDocument, shape: FieldShape, sources: readonly SourceDefinition[], path: Path): void {
  for (const [index, { kind }] of sources.entries()) {
    const at = [...(shape.any === undefined ? path : [...path, 'any', index]), kind]
    if (kind === 'table' && shape.fields === undefined) document.error(at, 'a table has rows: add "fields" for their cells')
    if (kind === 'article' && shape.fields !== undefined) document.error(at, 'an article has no "fields": each of its parts is a field')
  }
}

/** A nested record is made of elements or nodes: an attribute or a pattern gives neither. */
function checkNestedSource(document: DefinitionDocument, shape: FieldShape, path: Path): void {
  for (const key of ['match', 'transform'] as const) {
    if (shape[key] !== undefined) document.error([...path, key], `a field with "fields" has no "${key}": say it within its fields`)
  }
  if (shape.attr !== undefined || (shape.select !== undefined && parseShortForm(shape.select).attribute !== undefined)) {
    document.error([...path, 'select'], 'a field with "fields" selects elements: no attribute')
  }
}
