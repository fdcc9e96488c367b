import type { Document, Element } from 'domhandler'
import type { PageView } from '../page-view.ts'
import { elementOf, type JsonGraph } from '../sources/json-node.ts'
import { innerHtml } from '../sources/node-html.ts'
import { nodeText, rawText } from '../sources/node-text.ts'
import { tableRows } from '../sources/table.ts'
import type { RawValue } from '../values/raw-value.ts'
import { withoutEdges } from '../values/split-number.ts'
import type { ScalarKind } from '../values/value-type.ts'
import { type ArticlePart, type SourceDefinition, sourceText } from './definition.ts'
import { attributeValues, RAW_TEXT, textFormOf } from './element-value.ts'
import { type FieldScope, NO_LIMIT, type ParsedTree, type SourceReader } from './field-scope.ts'
import { metaSource, structuredSource, type WholePageSource } from './page-source.ts'
import { compilePattern, firstGroupOf } from './pattern.ts'
import { matched, transformed } from './refine-source.ts'
import { compileSelector, type Selector } from './selector.ts'

/** A source in the tree of the default parser. */
export interface CompiledSource extends SourceReader<ParsedTree> {
  /** How many nodes there are, the first element of them, and what they gave before `match`; for people. */
  trace(scope: FieldScope): SourceTrace
}

export interface SourceTrace {
  readonly matched: number
  readonly element: Element | undefined
  /** Why there is no raw value although something matched; undefined: there is one. */
  readonly reason: string | undefined
}

/** `kind`: type of the value (or of the items of a list); it decides what is taken of an element. Its `when` is not part of it. */
export function compileSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean): CompiledSource {
  const base = baseSource(source, kind, isList)
  const found = matched<ParsedTree, CompiledSource>(source, base, kind === 'boolean')
  const made = transformed<ParsedTree, CompiledSource>(source, found, kind)
  return { ...made, trace: (scope) => traceOf(source, kind === 'boolean', { base, found, made }, scope) }
}

function baseSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean): CompiledSource {
  switch (source.kind) {
    case 'css':
      return cssSource(source, kind)
    case 'meta':
      return placed(metaSource<ParsedTree>(source.name), (page, entry) => page.metaElement(entry))
    case 'link':
      return linkSource(source, kind)
    case 'table':
      return tableSource(source)
    case 'column':
      return columnSource(source, kind)
    case 'article':
      return articleSource(source.part, kind)
    case 'jsonld':
      return placed(
        structuredSource<ParsedTree>(source, kind, isList, { graph: ({ page, element }) => page.jsonLdIn(element), text: undefined }),
        (page, { top }) => (top === undefined ? undefined : page.jsonLdScript(top)),
      )
    case 'microdata':
    case 'rdfa': {
      const graph = source.kind === 'microdata' ? microdataIn : rdfaIn
      return placed(structuredSource<ParsedTree>(source, kind, isList, { graph, text: textReader(source, kind) }), (_, { value }) =>
        elementOf(value),
      )
    }
  }
}

function microdataIn({ page, element }: FieldScope): JsonGraph {
  return page.microdataIn(element)
}

function rdfaIn({ page, element }: FieldScope): JsonGraph {
  return page.rdfaIn(element)
}

/** A source of the page as a whole, whose trace says which element the first value stands in. */
function placed<P>(source: WholePageSource<ParsedTree, P>, elementOf: (page: PageView, place: P) => Element | undefined): CompiledSource {
  return {
    ...source,
    trace(scope) {
      const { matched: count, place, reason } = source.trace(scope)
      return { matched: count, element: place === undefined ? undefined : elementOf(scope.page, place), reason }
    },
  }
}

/** Trace of a source with `match` and `transform`: where they leave nothing, the reason says of what. */
function traceOf(
  { match, transform }: SourceDefinition,
  isBoolean: boolean,
  { base, found, made }: { readonly base: CompiledSource; readonly found: CompiledSource; readonly made: CompiledSource },
  scope: FieldScope,
): SourceTrace {
  const trace = base.trace(scope)
  const [raw] = base.raws(scope, 1)
  if (raw === undefined) return trace
  if (match !== undefined && !isBoolean && firstGroupOf(compilePattern(match))(withoutEdges(String(raw))) === undefined) {
    return { ...trace, reason: `the pattern ${match} finds nothing in ${shortened(raw)}` }
  }
  const [rest] = found.raws(scope, 1)
  if (transform === undefined || trace.reason !== undefined || rest === undefined) return trace
  if (made.raws(scope, NO_LIMIT).some((value) => String(value) !== '')) return trace
  return { ...trace, reason: `its transforms leave nothing of ${shortened(rest)}` }
}

function shortened(raw: RawValue): string {
  return JSON.stringify(withoutEdges(String(raw)).slice(0, 120))
}

function cssSource(source: Extract<SourceDefinition, { kind: 'css' }>, kind: ScalarKind | 'record'): CompiledSource {
  const selector = source.selector === '' ? undefined : compileSelector(source.selector)
  const take = elementReader(source, kind)
  const find = (scope: FieldScope, limit: number): Element[] => elementsOf(selector, scope, limit)
  return {
    text: sourceText(source),
    isMachine: source.attribute !== undefined,
    isMade: false,
    raws: (scope, limit) => find(scope, limit).flatMap((element) => take(element, scope.owners)),
    scopes: (scope, limit) => elementScopes(scope, find(scope, limit)),
    trace(scope) {
      const elements = find(scope, NO_LIMIT)
      const [first] = elements
      const missing = first !== undefined && source.attribute !== undefined && attributeOf(first, source.attribute) === undefined
      const reason = missing ? `the first match has no attribute ${source.attribute}` : undefined
      return { matched: elements.length, element: first, reason }
    },
  }
}

/** The element of a scope itself; for a whole page its root element. */
function elementsOf(selector: Selector | undefined, { element, owners }: FieldScope, limit: number): Element[] {
  if (selector === undefined) {
    const itself = isElement(element) ? element : element.children.find(isElement)
    return itself === undefined ? [] : [itself]
  }
  if (owners !== undefined) {
    const own = selector.all(element).filter((found) => ownerOf(found, owners) === element)
    return limit < own.length ? own.slice(0, limit) : own
  }
  if (limit !== 1) return selector.all(element)
  const first = selector.first(element)
  return first === undefined ? [] : [first]
}

/** A scope per element. Owners are kept only where one element stands within another, which few pages have. */
export function elementScopes(scope: FieldScope, elements: readonly Element[]): FieldScope[] {
  // Those of the record around it stay: one of them may stand within an element of this one.
  const owners = scope.owners !== undefined || isNested(elements) ? new Set([...(scope.owners ?? []), ...elements]) : undefined
  return elements.map((element) => ({ page: scope.page, element, owners, node: undefined, meta: undefined, row: undefined }))
}

/** Whether one of the elements is within another. Cost: each element around them is visited once. */
function isNested(elements: readonly Element[]): boolean {
  const set = new Set<unknown>(elements)
  const visited = new Set<unknown>()
  for (const element of elements) {
    for (let node = element.parent; node !== null && !visited.has(node); node = node.parent) {
      if (set.has(node)) return true
      visited.add(node)
    }
  }
  return false
}

function ownerOf(start: Element['parent'], owners: ReadonlySet<Element>): Element | undefined {
  for (let node = start; node !== null; node = node.parent) if (isElement(node) && owners.has(node)) return node
  return undefined
}

function isElement(node: unknown): node is Element {
  return typeof node === 'object' && node !== null && 'attribs' in node
}

type ElementReader = (element: Element, owners: FieldScope['owners']) => RawValue[]

function elementReader(source: Extract<SourceDefinition, { kind: 'css' }>, kind: ScalarKind | 'record'): ElementReader {
  const { attribute } = source
  if (attribute === undefined) {
    const read = textReader(source, kind)
    return (element, owners) => [read(element, owners)]
  }
  return (element) => {
    const value = attributeOf(element, attribute)
    return value === undefined ? [] : attributeValues(value, attribute, kind)
  }
}

/** What is inside an element, as the type of a field has it. */
function textReader(source: Pick<SourceDefinition, 'match' | 'transform'>, kind: ScalarKind | 'record'): TextReader {
  if (kind === 'html' || kind === 'markdown') return innerHtml
  const form = textFormOf(source, kind)
  return (element, owners) => (RAW_TEXT.has(element.name) ? rawText(element) : nodeText(element, owners, form))
}

type TextReader = (element: Element, owners: FieldScope['owners']) => string

function attributeOf({ attribs }: Element, name: string): string | undefined {
  // Names in HTML are lower case; those of SVG are not.
  const key = Object.hasOwn(attribs, name) ? name : name.toLowerCase()
  return Object.hasOwn(attribs, key) ? attribs[key] : undefined
}

/** `<link>` of the whole page, wherever the field stands. */
function linkSource(source: Extract<SourceDefinition, { kind: 'link' }>, kind: ScalarKind | 'record'): CompiledSource {
  const { rel, hreflang } = source
  const language = hreflang === undefined ? '' : `[hreflang="${hreflang}" i]`
  const css = cssSource({ ...source, kind: 'css', selector: `link[href][rel~="${rel}" i]${language}`, attribute: 'href' }, kind)
  const inPage = (scope: FieldScope): FieldScope => ({ ...scope, element: scope.page.root, owners: undefined })
  return {
    ...css,
    text: sourceText(source),
    raws: (scope, limit) => css.raws(inPage(scope), limit),
    scopes: (scope, limit) => css.scopes(inPage(scope), limit),
    trace: (scope) => css.trace(inPage(scope)),
  }
}

/** Rows of the first table that matches, or that stands within what matches. */
function tableSource(source: Extract<SourceDefinition, { kind: 'table' }>): CompiledSource {
  const selector = compileSelector(source.selector)
  const anyTable = compileSelector('table')
  const find = (scope: FieldScope): Element | undefined => {
    for (const element of elementsOf(selector, scope, NO_LIMIT)) {
      const table = element.name === 'table' ? element : anyTable.first(element)
      if (table !== undefined) return table
    }
    return undefined
  }
  return {
    text: sourceText(source),
    isMachine: false,
    isMade: false,
    raws: () => [],
    scopes(scope, limit) {
      const table = find(scope)
      const rows = table === undefined ? [] : tableRows(table, source.byNumber === undefined).slice(0, limit)
      const scopes = elementScopes(
        scope,
        rows.map(({ element }) => element),
      )
      return scopes.map((inner, index) => ({ ...inner, row: rows[index] }))
    },
    trace(scope) {
      const table = find(scope)
      const rows = table === undefined ? [] : tableRows(table, source.byNumber === undefined)
      const reason = table !== undefined && rows.length === 0 ? 'the table has no rows below its headings' : undefined
      return { matched: table === undefined ? 0 : rows.length || 1, element: table, reason }
    },
  }
}

function columnSource(source: Extract<SourceDefinition, { kind: 'column' }>, kind: ScalarKind | 'record'): CompiledSource {
  const css = cssSource({ ...source, kind: 'css' }, kind)
  const inCell = (scope: FieldScope): FieldScope | undefined => {
    const element = scope.row?.cell(source.column)
    return element === undefined ? undefined : { ...scope, element, owners: undefined }
  }
  return {
    ...css,
    text: sourceText(source),
    raws(scope, limit) {
      const cell = inCell(scope)
      return cell === undefined ? [] : css.raws(cell, limit)
    },
    scopes(scope, limit) {
      const cell = inCell(scope)
      return cell === undefined ? [] : css.scopes(cell, limit)
    },
    trace(scope) {
      const cell = inCell(scope)
      return cell === undefined ? { matched: 0, element: undefined, reason: 'the table has no such column' } : css.trace(cell)
    },
  }
}

function articleSource(part: ArticlePart, kind: ScalarKind | 'record'): CompiledSource {
  // What has the type of HTML is the HTML of the text.
  const isHtml = kind === 'html' || kind === 'markdown'
  const read = ({ page }: FieldScope): string[] => {
    const value = page.article[part === 'text' && isHtml ? 'content' : part === 'content' && !isHtml ? 'text' : part]
    return value === null || value.trim() === '' ? [] : [value]
  }
  return {
    text: `article ${part}`,
    isMachine: false,
    isMade: false,
    raws: read,
    scopes: () => [],
    trace: (scope) => ({
      matched: read(scope).length,
      element: undefined,
      reason: read(scope).length === 0 ? 'the page has none' : undefined,
    }),
  }
}

export function pageScope(page: PageView, element: Document = page.root): FieldScope {
  return { page, element, owners: undefined, node: undefined, meta: undefined, row: undefined }
}
