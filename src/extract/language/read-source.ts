import { errorText } from '../../kernel/errors.ts'
import { missingPackages } from '../optional-packages.ts'
import { parseJsonPath } from '../sources/json-node.ts'
import { isCurrency } from '../values/currencies.ts'
import type { ConditionDefinition, SourceDefinition } from './definition.ts'
import { type DefinitionDocument, type Path, shown } from './definition-document.ts'
import { CONDITION_SHAPE, type FieldShape, PLACE_SHAPE, SOURCE_SHAPE, type SourceShape } from './definition-shape.ts'
import { checkPattern, readTransforms } from './read-transform.ts'
import { compileSelector } from './selector.ts'
import { selectorDoubt } from './selector-check.ts'
import { parseShortForm } from './short-form.ts'

/**
 * Where a field stands: in the page, or within what the field around it found: an element, a node of structured data, a row of a table;
 * mixed where that has sources of several kinds. What `each` finds is an element.
 */
export type FieldPlace = 'page' | 'element' | 'structured' | 'row' | 'mixed'

const SOURCE_KEYS = ['select', 'jsonld', 'meta', 'microdata', 'rdfa', 'link', 'table', 'column', 'article'] as const

/** Place of the fields within a field of these sources. */
export function placeWithin(sources: readonly SourceDefinition[], place: FieldPlace): FieldPlace {
  const [first = place, ...others] = new Set(sources.map(({ kind }) => PLACES_WITHIN[kind] ?? place))
  return others.length === 0 ? first : 'mixed'
}

/** Fields of a group of meta tags look for everything else where that group stands. */
const PLACES_WITHIN: Readonly<Partial<Record<SourceDefinition['kind'], FieldPlace>>> = {
  css: 'element',
  link: 'element',
  column: 'element',
  table: 'row',
  jsonld: 'structured',
  microdata: 'structured',
  rdfa: 'structured',
}

/** Sources of a field: its own, or those of `any`. Shape: undefined, with a problem, where one of them is none. */
export function readSources(
  document: DefinitionDocument,
  shape: FieldShape,
  path: Path,
  place: FieldPlace,
): readonly SourceDefinition[] | undefined {
  // What holds of the whole field is read with it.
  const { when: _, ...own } = shape
  if (shape.any === undefined) {
    const source = readSource(document, own, path, place, ['any'])
    return source === undefined ? undefined : [source]
  }
  const other = SOURCE_KEYS.find((key) => shape[key] !== undefined)
  if (other !== undefined) {
    document.error([...path, other], `a field has either "any" or ${JSON.stringify(other)}`)
  }
  for (const key of ['attr', 'hreflang'] as const) {
    if (shape[key] !== undefined) document.error([...path, key], `"${key}" is said of an entry of "any", not of all of them`)
  }
  const { match, transform } = shape
  const sources = shape.any.map((entry, index) => {
    const at = [...path, 'any', index]
    if (typeof entry === 'string') return readSource(document, { select: entry, match, transform }, at, place)
    const read = document.read(entry, SOURCE_SHAPE, at)
    if (read === undefined) return undefined
    return readSource(document, { ...read, match: read.match ?? match, transform: read.transform ?? transform }, at, place)
  })
  const found = sources.filter((source) => source !== undefined)
  return found.length === sources.length && other === undefined ? found : undefined
}

/** `when`: a selector that must match, or a map of a place that must give something. */
export function readCondition(
  document: DefinitionDocument,
  value: unknown,
  path: Path,
  place: FieldPlace,
): ConditionDefinition | undefined {
  if (typeof value === 'string') return readCondition(document, { select: value }, path, place)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    document.error(path, `"when" is ${shown(value)}; expected a selector, or a map such as { select: .stock, match: 'pattern', not: true }`)
    return undefined
  }
  const shape = document.read(value, CONDITION_SHAPE, path)
  if (shape === undefined) return undefined
  const { not = false, ...own } = shape
  const source = readSource(document, own, path, place)
  return source === undefined ? undefined : { source, not }
}

/** `currency` as a map: where it is found. As a text it is an option of the type. */
export function readCurrency(document: DefinitionDocument, shape: FieldShape, path: Path, place: FieldPlace): SourceDefinition | undefined {
  const { currency, type, items } = shape
  if (currency === undefined) return undefined
  const at = [...path, 'currency']
  if ((type === 'list' ? items : type) !== 'money') {
    document.error(at, '"currency" belongs to money')
    return undefined
  }
  if (typeof currency === 'string') {
    if (!isCurrency(currency)) document.error(at, `${JSON.stringify(currency)} is no currency; expected a code of ISO 4217 such as EUR`)
    return undefined
  }
  const read = document.read(currency, PLACE_SHAPE, at)
  if (read?.table !== undefined) document.error([...at, 'table'], 'a table has rows and no currency')
  return read === undefined ? undefined : readSource(document, read, at, place)
}

function readSource(
  document: DefinitionDocument,
  shape: SourceShape,
  path: Path,
  place: FieldPlace,
  more: readonly string[] = [],
): SourceDefinition | undefined {
  const given = SOURCE_KEYS.filter((key) => shape[key] !== undefined)
  // A selector beside a column looks within its cell.
  const kinds = given.includes('column') ? given.filter((key) => key !== 'select') : given
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1) {
    const known = [...SOURCE_KEYS.filter((key) => key !== 'column' || place === 'row' || place === 'mixed'), ...more]
    const which = kinds.length > 1 ? `has ${kinds.join(' and ')}` : 'says nowhere where its value comes from'
    document.error(path, `the field ${which}; expected one of ${known.join(', ')}`)
    return undefined
  }
  const { match } = shape
  if (match !== undefined) checkPattern(document, match, [...path, 'match'])
  if (shape.attr !== undefined && kind !== 'select' && kind !== 'column') {
    document.error([...path, 'attr'], '"attr" belongs to select and column')
  }
  if (shape.hreflang !== undefined && kind !== 'link') document.error([...path, 'hreflang'], '"hreflang" belongs to link')
  const transform = shape.transform === undefined ? undefined : readTransforms(document, shape.transform, [...path, 'transform'])
  const when = shape.when === undefined ? undefined : readCondition(document, shape.when, [...path, 'when'], place)
  const rest = { match, transform, when }
  const text = String(shape[kind] ?? '')
  switch (kind) {
    case 'select':
      return { kind: 'css', ...readElement(document, shape, path, false), ...rest }
    case 'meta':
      return { kind, name: text.trim(), ...rest }
    case 'link':
      return { kind, rel: text.toLowerCase(), hreflang: shape.hreflang?.toLowerCase(), ...rest }
    case 'table':
      checkSelector(document, text, [...path, kind])
      if (match !== undefined) document.error([...path, 'match'], 'a table has rows and no text: "match" is said of its cells')
      return { kind, selector: text, byNumber: undefined, ...rest }
    case 'column': {
      if (place !== 'row' && place !== 'mixed') document.error([...path, kind], '"column" belongs to the fields of a table')
      const within = shape.select === undefined ? { selector: '', attribute: shape.attr } : readElement(document, shape, path, true)
      return { kind, column: shape.column ?? text, ...within, ...rest }
    }
    case 'article': {
      const missing = missingPackages('article')
      if (missing !== undefined) document.error([...path, kind], `an article ${missing}`)
      return { kind, part: shape.article ?? 'text', ...rest }
    }
    case 'jsonld':
    case 'microdata':
    case 'rdfa': {
      const problem = pathProblem(text, place)
      if (problem !== undefined) document.error([...path, kind], problem)
      else if (kind === 'jsonld' && (place === 'element' || place === 'row')) document.warning([...path, kind], SAME_FOR_ALL)
      return { kind, path: text, ...rest }
    }
  }
}

function readElement(
  document: DefinitionDocument,
  shape: SourceShape,
  path: Path,
  mayBeItself: boolean,
): { readonly selector: string; readonly attribute: string | undefined } {
  const text = shape.select ?? ''
  const { selector, attribute } = parseShortForm(text)
  if (selector !== '') checkSelector(document, selector, [...path, 'select'])
  else if (path.length <= 2 && attribute === undefined && text.trim() === '' && !mayBeItself) {
    document.error([...path, 'select'], 'the selector is empty')
  }
  return { selector, attribute: shape.attr ?? attribute }
}

const SAME_FOR_ALL =
  'a script within the element is read, else JSON-LD is of the whole page and the same for each record; a record per node is a field { jsonld: …, type: list, fields: … } without "each"'

/** A type, which no property of a node is called like. */
const BEGINS_WITH_TYPE = /^\p{Lu}\p{Ll}[^.]*\./u

function pathProblem(text: string, place: FieldPlace): string | undefined {
  if (place === 'structured' && BEGINS_WITH_TYPE.test(text)) {
    return `${JSON.stringify(text)} begins with a type; within a node expected one of its properties, such as price`
  }
  if (parseJsonPath(text, { relative: place === 'structured' || place === 'mixed' }) !== undefined) return undefined
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
