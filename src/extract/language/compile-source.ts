import type { Document, Element } from 'domhandler'
import type { PageView } from '../page-view.ts'
import { isNode, type JsonGraph, type JsonNode, type JsonValue, parseJsonPath, rawOf } from '../sources/json-node.ts'
import { type MetaEntry, metaGroups, metaValues } from '../sources/meta.ts'
import { innerHtml } from '../sources/node-html.ts'
import { nodeText, rawText } from '../sources/node-text.ts'
import { srcsetUrls } from '../values/srcset.ts'
import type { RawValue, ScalarKind } from '../values/value-type.ts'
import { type SourceDefinition, sourceText } from './definition.ts'
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
}

/** One place where values of a field may come from. */
export interface CompiledSource {
  readonly text: string
  /** Values are written by programs, not for people: numbers have a decimal point. */
  readonly machine: boolean
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

/** `kind`: type of the value (or of the items of a list); it decides what is taken of an element. */
export function compileSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean): CompiledSource {
  const pattern = source.match === undefined ? undefined : compilePattern(source.match)
  const base = baseSource(source, kind, isList)
  if (pattern === undefined) return base
  const isBoolean = kind === 'boolean'
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
      return { ...trace, reason: `the pattern ${source.match} finds nothing in ${JSON.stringify(String(raw).slice(0, 120))}` }
    },
  }
}

function baseSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean): CompiledSource {
  switch (source.kind) {
    case 'css':
      return cssSource(source, kind)
    case 'meta':
      return metaSource(source.name)
    case 'jsonld':
      return structuredSource(source, isList, (page) => page.jsonLdGraph)
    case 'microdata':
      return structuredSource(source, isList, (page) => page.microdata)
  }
}

function cssSource(source: Extract<SourceDefinition, { kind: 'css' }>, kind: ScalarKind | 'record'): CompiledSource {
  const selector = source.selector === '' ? undefined : compileSelector(source.selector)
  const take = elementReader(source.attribute, kind)
  const find = (scope: FieldScope, limit: number): Element[] => elementsOf(selector, scope, limit)
  return {
    text: sourceText(source),
    machine: source.attribute !== undefined,
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
  return elements.map((element) => ({ page: scope.page, element, owners, node: undefined, meta: undefined }))
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
    if (kind === 'html') return (element) => [innerHtml(element)]
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
    raws: (scope, limit) => metaValues(entries(scope), name).slice(0, limit),
    scopes: (scope, limit) =>
      metaGroups(entries(scope), name)
        .slice(0, limit)
        .map((meta) => ({ ...scope, meta })),
    trace: (scope) => ({ matched: metaValues(entries(scope), name).length, element: undefined, reason: undefined }),
  }
}

function structuredSource(
  source: Extract<SourceDefinition, { path: string }>,
  isList: boolean,
  graphOf: (page: PageView) => JsonGraph,
): CompiledSource {
  const absolute = parseJsonPath(source.path, { relative: false })
  const relative = parseJsonPath(source.path, { relative: true })
  const values = ({ page, node }: FieldScope): JsonValue[] => {
    const path = node === undefined ? absolute : relative
    return path === undefined ? [] : graphOf(page).values(path, { within: node, outermost: !isList })
  }
  return {
    text: sourceText(source),
    machine: true,
    raws(scope, limit) {
      const raws: RawValue[] = []
      for (const value of values(scope)) {
        const raw = rawOf(value)
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
      const usable = found.some((value) => rawOf(value) !== undefined)
      const reason = found.length > 0 && !usable ? 'it is a node without a name; go on to one of its properties' : undefined
      return { matched: found.length, element: undefined, reason }
    },
  }
}

export function pageScope(page: PageView, element: Document = page.root): FieldScope {
  return { page, element, owners: undefined, node: undefined, meta: undefined }
}
