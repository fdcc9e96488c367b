import type { AnyNode, Document, Element } from 'domhandler'
import { beginsAt, ElementAttribute, ElementText, isNode, type JsonNode, type JsonValue } from './json-node.ts'

const URL_ATTRIBUTES: Readonly<Record<string, string>> = {
  a: 'href',
  area: 'href',
  link: 'href',
  audio: 'src',
  embed: 'src',
  iframe: 'src',
  img: 'src',
  source: 'src',
  track: 'src',
  video: 'src',
  object: 'data',
}
const VALUE_ATTRIBUTES: Readonly<Record<string, string>> = { meta: 'content', data: 'value', meter: 'value', time: 'datetime' }

const MAX_DEPTH = 64

/** What one page may cost: elements visited. Each item reads what it refers to: references multiply. */
const MAX_WORK = 2_000_000

interface Reading {
  readonly byId: ReadonlyMap<string, Element>
  work: number
}

/**
 * Microdata of a page, or of an element of it, as nodes with `@type`. A property belongs to the nearest item around it; an item that is no
 * property of another one here is a node of its own. An element that is within an item sees what it says of that one. URLs stay as they are
 * written. Source: HTML standard, "Microdata".
 */
export function readMicrodata(scope: Document | Element, byId: ReadonlyMap<string, Element>): readonly JsonNode[] {
  const reading: Reading = { byId, work: 0 }
  const around = 'attribs' in scope && scope.attribs.itemscope === undefined ? itemAround(scope) : undefined
  const outer = around === undefined ? undefined : readItem(around, reading, [], scope as Element)
  // One that is nothing but a way to other items would hide them: they are what the element holds.
  if (outer !== undefined && saysSomething(outer)) return [outer, ...itemsIn(scope, false).map((item) => readItem(item, reading, []))]
  return itemsIn(scope, 'attribs' in scope).map((item) => readItem(item, reading, []))
}

/** Items that are no property of another one; with `ofOutside`, also those of one that is not here. */
function itemsIn(scope: Document | Element, ofOutside: boolean): Element[] {
  const items: Element[] = []
  walk(scope, (element) => {
    const { itemscope, itemprop } = element.attribs
    if (itemscope !== undefined && (itemprop === undefined || (ofOutside && itemAround(element, scope) === undefined))) items.push(element)
    return true
  })
  return items
}

/** The nearest item around an element; none where it would be outside of `scope`. */
function itemAround(element: Element, scope?: Document | Element): Element | undefined {
  for (let at: AnyNode | null = element; at !== null && at !== scope; at = at.parent) {
    const { parent }: AnyNode = at
    if (parent !== null && 'attribs' in parent && parent.attribs.itemscope !== undefined) return parent
  }
  return undefined
}

/** Whether a property of a node is no node itself. */
function saysSomething(node: JsonNode): boolean {
  return Object.entries(node).some(([name, values]) => name !== '@type' && Array.isArray(values) && !values.every(isNode))
}

/** The first element of each id. */
export function elementsById(root: Document): ReadonlyMap<string, Element> {
  const byId = new Map<string, Element>()
  walk(root, (element) => {
    const { id } = element.attribs
    if (id !== undefined && !byId.has(id)) byId.set(id, element)
    return true
  })
  return byId
}

/** `within`: an element that is within the item; then only what the item says there. */
function readItem(item: Element, reading: Reading, open: readonly Element[], within?: Element): JsonNode {
  // What an item costs before it has any property.
  reading.work += 50 + open.length
  const properties = new Map<string, JsonValue[]>()
  // What is referred to twice, or is within the item already, is read once.
  const seen = new Set<Element>()
  const add = (element: Element): boolean => {
    reading.work += 1
    if (reading.work > MAX_WORK || seen.has(element)) return false
    seen.add(element)
    const { itemprop, itemscope } = element.attribs
    if (itemprop !== undefined) {
      const value = propertyValue(element, reading, [...open, item])
      for (const name of itemprop.split(/\s+/)) {
        if (name === '' || value === null) continue
        const values = properties.get(name) ?? []
        properties.set(name, values)
        values.push(value)
      }
    }
    return itemscope === undefined
  }
  for (const child of within === undefined ? item.children : [within]) walk(child, add)
  const references = within === undefined ? (item.attribs.itemref ?? '') : ''
  for (const id of references.split(/\s+/)) {
    const referred = reading.byId.get(id)
    if (referred !== undefined && !open.includes(referred) && referred !== item) walk(referred, add)
  }
  const types = (item.attribs.itemtype ?? '').split(/\s+/).filter((type) => type !== '')
  const entries: [string, JsonValue][] = [...properties].map(([name, values]) => [name, values])
  return beginsAt(Object.fromEntries(types.length === 0 ? entries : [['@type', types], ...entries]), item)
}

function propertyValue(element: Element, reading: Reading, open: readonly Element[]): JsonValue {
  if (element.attribs.itemscope !== undefined) {
    // An item that refers to one around it has no end.
    return open.includes(element) || open.length >= MAX_DEPTH ? null : readItem(element, reading, open)
  }
  const attribute = VALUE_ATTRIBUTES[element.name] ?? URL_ATTRIBUTES[element.name]
  // `content` is what sites write on any element, whatever the standard says of its text.
  const value = (attribute === undefined ? undefined : element.attribs[attribute]) ?? element.attribs.content
  return value === undefined ? new ElementText(element) : new ElementAttribute(element, value)
}

/** Elements in document order, `start` included; those below one for which `visit` gives false are left out. No recursion. */
function walk(start: AnyNode, visit: (element: Element) => boolean): void {
  const waiting: AnyNode[] = [start]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    const below = 'attribs' in node ? visit(node) : 'children' in node
    if (!below || !('children' in node)) continue
    for (let index = node.children.length - 1; index >= 0; index -= 1) {
      const child = node.children[index]
      if (child !== undefined) waiting.push(child)
    }
  }
}
