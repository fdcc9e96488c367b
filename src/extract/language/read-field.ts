import { errorText } from '../../kernel/errors.ts'
import { parseJsonPath } from '../sources/json-node.ts'
import type { FieldDefinition, SourceDefinition } from './definition.ts'
import type { DefinitionDocument, Path } from './definition-document.ts'
import { shown } from './definition-document.ts'
import { FIELD_SHAPE, type FieldShape, SOURCE_SHAPE, type SourceShape } from './definition-shape.ts'
import { compilePattern } from './pattern.ts'
import { readDefault, readType } from './read-type.ts'
import { compileSelector, selectorDoubt } from './selector.ts'
import { parseShortForm } from './short-form.ts'

/** Where a field stands: in the page, or within the node of structured data that the field around it found. */
export type FieldPlace = 'page' | 'structured'

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
      document.error(at, `${JSON.stringify(name)} can't be the name of a field; expected letters, digits and _, not beginning with a digit`)
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
    document.error(path, `field ${name} is ${shown(value)}; expected a selector or a map with select, jsonld, meta, microdata or any`)
    return undefined
  }
  const shape = document.read(value, FIELD_SHAPE, path)
  if (shape === undefined) {
    checkParts(document, value as Readonly<Record<string, unknown>>, path, nestedName(typeName, name))
    return undefined
  }
  const sources = readSources(document, shape, path, place)
  const inner: FieldPlace = sources?.some(({ kind }) => kind !== 'css') ? 'structured' : place
  const nested = shape.fields === undefined ? undefined : readNested(document, shape.fields, path, nestedName(typeName, name), inner)
  if (sources === undefined || (shape.fields !== undefined && nested === undefined)) return undefined
  if (nested !== undefined) checkNestedSource(document, shape, path)
  const type = readType(document, shape, nested, path)
  if (type === undefined) return undefined
  const fallback = readDefault(document, shape, type, path)
  if (shape.required === true && shape.default !== undefined) {
    document.warning([...path, 'default'], `field ${name} is required and has a default: it can never be missing`)
  }
  return { name, doc: shape.doc, sources, type, required: shape.required ?? false, default: fallback }
}

/** What can be checked of a field that has something else wrong. */
function checkParts(document: DefinitionDocument, value: Readonly<Record<string, unknown>>, path: Path, typeName: string): void {
  const { select, match, fields } = value
  if (typeof select === 'string' && select !== '') {
    const { selector } = parseShortForm(select)
    if (selector !== '') checkSelector(document, selector, [...path, 'select'])
  }
  if (typeof match === 'string' && match !== '') checkPattern(document, match, path)
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
  const taken = document.typeNames.get(typeName)
  if (taken !== undefined) {
    document.error(path, `its record has the type name ${typeName}, which that of ${taken} has already: rename one of the fields`)
  }
  document.typeNames.set(typeName, path.filter((step) => step !== 'fields').join('.'))
  return readFields(document, fields, [...path, 'fields'], typeName, place)
}

function nestedName(typeName: string, field: string): string {
  return `${typeName}${field.slice(0, 1).toUpperCase()}${field.slice(1)}`
}

/** A nested record is made of elements or nodes: an attribute or a pattern gives neither. */
function checkNestedSource(document: DefinitionDocument, shape: FieldShape, path: Path): void {
  if (shape.match !== undefined) document.error([...path, 'match'], 'a field with "fields" has no "match": match within its fields')
  if (shape.attr !== undefined || (shape.select !== undefined && parseShortForm(shape.select).attribute !== undefined)) {
    document.error([...path, 'select'], 'a field with "fields" selects elements: no attribute')
  }
}

const SOURCE_KEYS = ['select', 'jsonld', 'meta', 'microdata'] as const

function readSources(
  document: DefinitionDocument,
  shape: FieldShape,
  path: Path,
  place: FieldPlace,
): readonly SourceDefinition[] | undefined {
  if (shape.any === undefined) {
    const source = readSource(document, shape, path, place, ['any'])
    return source === undefined ? undefined : [source]
  }
  const other = SOURCE_KEYS.find((key) => shape[key] !== undefined)
  if (other !== undefined) {
    document.error([...path, other], `a field has either "any" or ${JSON.stringify(other)}`)
  }
  const sources = shape.any.map((entry, index) => {
    const at = [...path, 'any', index]
    if (typeof entry === 'string') return readSource(document, { select: entry, match: shape.match }, at, place)
    const read = document.read(entry, SOURCE_SHAPE, at)
    return read === undefined ? undefined : readSource(document, { ...read, match: read.match ?? shape.match }, at, place)
  })
  const found = sources.filter((source) => source !== undefined)
  return found.length === sources.length && other === undefined ? found : undefined
}

function readSource(
  document: DefinitionDocument,
  shape: SourceShape,
  path: Path,
  place: FieldPlace,
  more: readonly string[] = [],
): SourceDefinition | undefined {
  const kinds = SOURCE_KEYS.filter((key) => shape[key] !== undefined)
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1) {
    const which = kinds.length > 1 ? `has ${kinds.join(' and ')}` : 'says nowhere where its value comes from'
    document.error(path, `the field ${which}; expected one of ${[...SOURCE_KEYS, ...more].join(', ')}`)
    return undefined
  }
  const match = shape.match
  if (match !== undefined) checkPattern(document, match, path)
  const text = shape[kind] ?? ''
  switch (kind) {
    case 'select': {
      const { selector, attribute } = parseShortForm(text)
      if (selector !== '') checkSelector(document, selector, [...path, 'select'])
      else if (path.length <= 2 && attribute === undefined && text.trim() === '')
        document.error([...path, 'select'], 'the selector is empty')
      return { kind: 'css', selector, attribute: shape.attr ?? attribute, match }
    }
    case 'meta':
      return { kind: 'meta', name: text.trim(), match }
    case 'jsonld':
    case 'microdata': {
      const problem = pathProblem(text, place)
      if (problem !== undefined) document.error([...path, kind], problem)
      return { kind, path: text, match }
    }
  }
}

function pathProblem(text: string, place: FieldPlace): string | undefined {
  if (parseJsonPath(text, { relative: place === 'structured' }) !== undefined) return undefined
  return `${JSON.stringify(text)} is no path; expected a type and properties, such as Product.offers.price or Product.image[0]`
}

/** A selector that does not compile is an error at its place, one that probably matches nothing a warning. */
export function checkSelector(document: DefinitionDocument, selector: string, path: Path): void {
  try {
    compileSelector(selector)
  } catch (error) {
    document.error(path, `the selector ${JSON.stringify(selector)} can't be used: ${errorText(error).replace(/found $/, 'found its end')}`)
    return
  }
  const doubt = selectorDoubt(selector)
  if (doubt !== undefined) document.warning(path, doubt)
}

function checkPattern(document: DefinitionDocument, pattern: string, path: Path): void {
  try {
    compilePattern(pattern)
  } catch (error) {
    document.error([...path, 'match'], `the pattern ${JSON.stringify(pattern)} can't be used: ${errorText(error)}`)
  }
}
