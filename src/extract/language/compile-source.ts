import type { Document, Element } from 'domhandler'
import type { PageView } from '../page-view.ts'
import { isNode, type JsonGraph, type JsonNode, type JsonValue, moneyOf, parseJsonPath, rawOf } from '../sources/json-node.ts'
import { type MetaEntry, metaGroups, metaValues } from '../sources/meta.ts'
import { innerHtml } from '../sources/node-html.ts'
import { nodeText, rawText } from '../sources/node-text.ts'
import { type TableRow, tableRows } from '../sources/table.ts'
import { srcsetUrls } from '../values/srcset.ts'
import { compileTransforms } from '../values/transform.ts'
import type { RawValue, ScalarKind } from '../values/value-type.ts'
import { type ArticlePart, type SourceDefinition, sourceText } from './definition.ts'
import { compilePattern, firstGroup } from './pattern.ts'
import { compileSelector, type Scope, type Selector } from './selector.ts'

/** Where the fields of one record, or of a nested one, look. */
export interface FieldScope {
  readonly page: PageView
  readonly element: Scope
  /** Elements that are a record each, where one may stand within another: what is inside the inner one is not the outer one's. */
  readonly owners: ReadonlySet<Element> | undefined
  /** Node of structured data, for fields within one. */
  readonly node: JsonNode | undefined
  /** Entries of one structured meta property, for fields within it. */
  readonly meta: readonly MetaEntry[] | undefined
  /** Row of a table, for fields within it. */
  readonly row: TableRow | undefined
}

/** One place where values of a field may come from. */
export interface CompiledSource {
  readonly text: string
  /** Values are written by programs, not for people: numbers have a decimal point. */
  readonly machine: boolean
  /** Values were made by transforms: white space within them is meant. */
  readonly isMade: boolean
  /** Shape: in document order; `limit` 1 for a field of one value. */
  raws(scope: FieldScope, limit: number): RawValue[]
  /** Scopes of nested records. */
  scopes(scope: FieldScope, limit: number): FieldScope[]
  /** How many nodes there are, the first element of them, and what they gave before `match`; for people. */
  trace(scope: FieldScope): SourceTrace
}

export interface SourceTrace {
  readonly matched: number
  readonly element: Element | undefined
  /** Why there is no raw value although something matched; undefined: there is one. */
  readonly reason: string | undefined
}

const NO_LIMIT = Number.POSITIVE_INFINITY

/** `kind`: type of the value (or of the items of a list); it decides what is taken of an element. Its `when` is not part of it. */
export function compileSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean): CompiledSource {
  return transformed(source, matched(source, baseSource(source, kind, isList), kind === 'boolean'))
}

function baseSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean): CompiledSource {
  switch (source.kind) {
    case 'css':
      return cssSource(source, kind)
    case 'meta':
      return metaSource(source.name)
    case 'link':
      return linkSource(source, kind)
    case 'table':
      return tableSource(source)
    case 'column':
      return columnSource(source, kind)
    case 'article':
      return articleSource(source.part, kind)
    case 'jsonld':
      return structuredSource(source, kind, isList, (page) => page.jsonLdGraph)
    case 'microdata':
      return structuredSource(source, kind, isList, (page) => page.microdata)
    case 'rdfa':
      return structuredSource(source, kind, isList, (page) => page.rdfa)
  }
}

function matched({ match }: SourceDefinition, base: CompiledSource, isBoolean: boolean): CompiledSource {
  if (match === undefined) return base
  const pattern = compilePattern(match)
  return {
    ...base,
    raws: (scope, limit) =>
      base.raws(scope, limit).flatMap((raw): RawValue[] => {
        const found = firstGroup(pattern, String(raw))
        // A pattern on a boolean is the question itself.
        if (isBoolean) return [found !== undefined]
        return found === undefined ? [] : [found]
      }),
    trace(scope) {
      const trace = base.trace(scope)
      const [raw] = base.raws(scope, 1)
      if (raw === undefined || isBoolean || firstGroup(pattern, String(raw)) !== undefined) return trace
      return { ...trace, reason: `the pattern ${match} finds nothing in ${shortened(raw)}` }
    },
  }
}

function transformed({ transform }: SourceDefinition, base: CompiledSource): CompiledSource {
  if (transform === undefined) return base
  const { needsAll, apply } = compileTransforms(transform)
  const raws = (scope: FieldScope, limit: number): RawValue[] => {
    const texts = apply(base.raws(scope, needsAll ? NO_LIMIT : limit).map(String))
    return limit < texts.length ? texts.slice(0, limit) : [...texts]
  }
  return {
    ...base,
    isMade: true,
    raws,
    trace(scope) {
      const trace = base.trace(scope)
      const [raw] = base.raws(scope, 1)
      if (trace.reason !== undefined || raw === undefined || raws(scope, NO_LIMIT).some((made) => made !== '')) return trace
      return { ...trace, reason: `its transforms leave nothing of ${shortened(raw)}` }
    },
  }
}

function shortened(raw: RawValue): string {
  return JSON.stringify(String(raw).slice(0, 120))
}

function cssSource(source: Extract<SourceDefinition, { kind: 'css' }>, kind: ScalarKind | 'record'): CompiledSource {
  const selector = source.selector === '' ? undefined : compileSelector(source.selector)
  const take = elementReader(source.attribute, kind)
  const find = (scope: FieldScope, limit: number): Element[] => elementsOf(selector, scope, limit)
  return {
    text: sourceText(source),
    machine: source.attribute !== undefined,
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

function elementReader(attribute: string | undefined, kind: ScalarKind | 'record'): ElementReader {
  if (attribute === undefined) {
    if (kind === 'html' || kind === 'markdown') return (element) => [innerHtml(element)]
    return (element, owners) => [RAW_TEXT.has(element.name) ? rawText(element) : nodeText(element, owners)]
  }
  return (element) => {
    const value = attributeOf(element, attribute)
    if (value === undefined) return []
    // In HTML the presence of such an attribute is the value.
    if (kind === 'boolean' && (value === '' || value.toLowerCase() === attribute.toLowerCase())) return [true]
    return kind === 'url' && /^(image)?srcset$/i.test(attribute) ? srcsetUrls(value) : [value]
  }
}

/** Selected themselves, they are wanted as they stand. */
const RAW_TEXT: ReadonlySet<string> = new Set(['script', 'style', 'textarea', 'pre'])

function attributeOf({ attribs }: Element, name: string): string | undefined {
  // Names in HTML are lower case; those of SVG are not.
  const key = Object.hasOwn(attribs, name) ? name : name.toLowerCase()
  return Object.hasOwn(attribs, key) ? attribs[key] : undefined
}

function metaSource(name: string): CompiledSource {
  const entries = ({ page, meta }: FieldScope): readonly MetaEntry[] => meta ?? page.meta
  return {
    text: `meta ${name}`,
    machine: true,
    isMade: false,
    raws: (scope, limit) => metaValues(entries(scope), name).slice(0, limit),
    scopes: (scope, limit) =>
      metaGroups(entries(scope), name)
        .slice(0, limit)
        .map((meta) => ({ ...scope, meta })),
    trace: (scope) => ({ matched: metaValues(entries(scope), name).length, element: undefined, reason: undefined }),
  }
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
    machine: false,
    isMade: false,
    raws: () => [],
    scopes(scope, limit) {
      const table = find(scope)
      const rows = table === undefined ? [] : tableRows(table).slice(0, limit)
      const scopes = elementScopes(
        scope,
        rows.map(({ element }) => element),
      )
      return scopes.map((inner, index) => ({ ...inner, row: rows[index] }))
    },
    trace(scope) {
      const table = find(scope)
      const rows = table === undefined ? [] : tableRows(table)
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
    machine: false,
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

function structuredSource(
  source: Extract<SourceDefinition, { path: string }>,
  kind: ScalarKind | 'record',
  isList: boolean,
  graphOf: (page: PageView) => JsonGraph,
): CompiledSource {
  const absolute = parseJsonPath(source.path, { relative: false })
  const relative = parseJsonPath(source.path, { relative: true })
  const rawFor = kind === 'money' ? moneyOf : rawOf
  const values = ({ page, node }: FieldScope): JsonValue[] => {
    const path = node === undefined ? absolute : relative
    return path === undefined ? [] : graphOf(page).values(path, { within: node, outermost: !isList })
  }
  return {
    text: sourceText(source),
    machine: true,
    isMade: false,
    raws(scope, limit) {
      const raws: RawValue[] = []
      for (const value of values(scope)) {
        const raw = rawFor(value)
        if (raw !== undefined) raws.push(raw)
        if (raws.length >= limit) break
      }
      return raws
    },
    scopes: (scope, limit) =>
      values(scope)
        .filter(isNode)
        .slice(0, limit)
        .map((node) => ({ ...scope, node })),
    trace(scope) {
      const found = values(scope)
      const usable = found.some((value) => rawFor(value) !== undefined)
      const reason = found.length > 0 && !usable ? 'it is a node without a name; go on to one of its properties' : undefined
      return { matched: found.length, element: undefined, reason }
    },
  }
}

export function pageScope(page: PageView, element: Document = page.root): FieldScope {
  return { page, element, owners: undefined, node: undefined, meta: undefined, row: undefined }
}
