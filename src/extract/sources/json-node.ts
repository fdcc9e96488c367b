import type { Element } from 'domhandler'
import type { RawScalar } from '../values/raw-value.ts'

/**
 * Structured data of a page (JSON-LD and microdata) as one kind of tree: objects with properties, as JSON has them. What a page
 * says is only ever read by own property, never merged into anything.
 */
export type JsonValue = string | number | boolean | null | ElementText | ElementAttribute | readonly JsonValue[] | JsonNode
export type JsonNode = { readonly [property: string]: JsonValue }

/**
 * What people read in an element; how it is read depends on the type of the field. Values in attributes and in JSON are written by
 * programs.
 */
export class ElementText {
  readonly element: Element

  constructor(element: Element) {
    this.element = element
  }
}

/** What a program wrote in an attribute of an element. */
export class ElementAttribute {
  readonly element: Element
  readonly value: string

  constructor(element: Element, value: string) {
    this.element = element
    this.value = value
  }
}

/** Where each node of microdata and RDFa begins: their properties are those of the page, and leave no room for it. */
const beginnings = new WeakMap<JsonNode, Element>()

export function beginsAt(node: JsonNode, element: Element): JsonNode {
  beginnings.set(node, element)
  return node
}

/** The element that says a value; undefined for what is said in no element of its own, as in JSON-LD. */
export function elementOf(value: JsonValue | undefined): Element | undefined {
  if (isLeafOfElement(value)) return value.element
  return isNode(value) ? beginnings.get(value) : undefined
}

/** `Product.offers[0].price`: a type to find, then properties to follow. */
export interface JsonPath {
  readonly text: string
  /** Undefined for a path within a node. */
  readonly type: string | undefined
  readonly steps: readonly (string | number)[]
}

/** A page may nest and repeat as it likes: what is looked at is bounded. References multiply, so values are counted at every step. */
const MAX_DEPTH = 64
const MAX_NODES = 50_000
const MAX_VALUES = 50_000
/** A page may say a thing in pieces. */
const MAX_NODES_OF_ID = 8

/** A type without its vocabulary: `3DModel`. */
const TYPE = /^[\p{L}\p{N}_-]+$/u
/** What other languages of paths have: `$.a`, `a.0`. */
const FOREIGN_STEP = /^(\$|\d+)$/

/** Shape: undefined for a text that is no path, or one that nothing is found by. */
export function parseJsonPath(text: string, options: { readonly relative: boolean }): JsonPath | undefined {
  if (!/^[^.[\]\s]+(\[\d+\])*(\.[^.[\]\s]+(\[\d+\])*)*$/.test(text)) return undefined
  const steps = [...text.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([word, index]) => (index === undefined ? word : Number(index)))
  if (steps.some((step) => typeof step === 'string' && FOREIGN_STEP.test(step)) || text.includes('://')) return undefined
  if (options.relative) return { text, type: undefined, steps }
  const [type, ...rest] = steps
  return typeof type === 'string' && TYPE.test(type) ? { text, type, steps: rest } : undefined
}

export interface PathOptions {
  readonly within?: JsonNode | undefined
  /** One value is wanted: that of the first of the outermost nodes of a type, so that what one thing lacks is not said by the next. */
  readonly single?: boolean
}

/** All nodes of a page, as they are found by type and by id. */
export class JsonGraph {
  readonly #top: readonly JsonNode[]
  #all: readonly JsonNode[] | undefined
  readonly #parents = new Map<JsonNode, JsonNode>()
  #byId: Map<string, JsonNode[]> | undefined

  /** Shape: the outermost nodes, in document order; those of an `@graph` are outermost. */
  constructor(top: readonly JsonNode[]) {
    this.#top = top
  }

  /** Nodes of a type, outermost first, then in document order. Shape: `Product`, without the vocabulary before it. */
  typed(type: string): readonly JsonNode[] {
    return this.#nodes().filter((node) => typesOf(node).includes(type))
  }

  /** Nodes of a type that are not within another of that type: a related product is not the product of the page. */
  outermost(type: string): readonly JsonNode[] {
    const typed = this.typed(type)
    const all = new Set(typed)
    return typed.filter((node) => {
      for (let at = this.#parents.get(node); at !== undefined; at = this.#parents.get(at)) if (all.has(at)) return false
      return true
    })
  }

  /**
   * Values at a path: from `within`, or from the nodes of its type. Shape: lists flattened, null left out, references followed, in document
   * order.
   */
  values(path: JsonPath, options: PathOptions = {}): JsonValue[] {
    let values: JsonValue[] = this.#starts(path, options)
    for (const step of path.steps) values = typeof step === 'number' ? values.slice(step, step + 1) : this.#follow(values, step)
    return values.map((value) => (isNode(value) ? this.#resolved(value) : value))
  }

  /** The outermost node that the first value at a path comes from; on the way a reference is of where it is written. For people. */
  origin(path: JsonPath, options: PathOptions = {}): JsonNode | undefined {
    const [first] = this.values(path, options)
    if (first === undefined) return undefined
    const starts = this.#starts(path, options)
    // A number picks one of all that are found: it can't be followed from one start alone.
    const steps = path.steps.filter((step) => typeof step === 'string')
    const start = starts.find((node) => this.values({ ...path, type: undefined, steps }, { within: node }).includes(first))
    let top = start
    for (let at = top; at !== undefined; at = this.#parents.get(at)) top = at
    return top
  }

  #starts({ type, steps }: JsonPath, { within, single = false }: PathOptions): JsonNode[] {
    const nodes = type === undefined ? (within === undefined ? [] : [within]) : single ? this.outermost(type) : this.typed(type)
    // A reference that carries its type stands for a node that is a start itself.
    const starts = [...new Set(nodes.map((node) => this.#resolved(node)))]
    // `Product[1]` says which of them.
    return single && typeof steps[0] !== 'number' ? starts.slice(0, 1) : starts
  }

  #follow(values: readonly JsonValue[], property: string): JsonValue[] {
    const found: JsonValue[] = []
    for (const value of values) {
      const node = isNode(value) ? this.#holder(this.#resolved(value), property) : undefined
      if (node === undefined) continue
      for (const inner of flattened(node[property] ?? null)) {
        if (found.length >= MAX_VALUES) return found
        found.push(inner)
      }
    }
    return found
  }

  /** A node of which nothing is written but its id, or its id and its type, stands for the one of that id that says more. */
  #resolved(node: JsonNode): JsonNode {
    const id = idOf(node)
    return id === undefined || !isReference(node) ? node : (this.#ofId(id)[0] ?? node)
  }

  /** The node that has the property: itself, or another of its id. */
  #holder(node: JsonNode, property: string): JsonNode | undefined {
    if (Object.hasOwn(node, property)) return node
    const id = idOf(node)
    return id === undefined ? undefined : this.#ofId(id).find((other) => Object.hasOwn(other, property))
  }

  /** Nodes that say something of the thing with this id, the outermost first. */
  #ofId(id: string): readonly JsonNode[] {
    if (this.#byId === undefined) {
      this.#byId = new Map()
      for (const node of this.#nodes()) {
        const own = idOf(node)
        if (own === undefined || isReference(node)) continue
        const same = this.#byId.get(own) ?? []
        this.#byId.set(own, same)
        if (same.length < MAX_NODES_OF_ID) same.push(node)
      }
    }
    return this.#byId.get(id) ?? []
  }

  /**
   * Level by level, so that a product of its own comes before one that is mentioned inside something else. Each once, where it is met
   * first: what a graph holds is outermost though its `@graph` is in a node, and items may name one another.
   */
  #nodes(): readonly JsonNode[] {
    if (this.#all !== undefined) return this.#all
    const all: JsonNode[] = []
    const seen = new Set<JsonNode>()
    let level: readonly PlacedValue[] = this.#top.map((value) => ({ value, parent: undefined }))
    for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth += 1) {
      const next: PlacedValue[] = []
      for (const { value, parent } of level) {
        if (all.length + next.length > MAX_NODES) break
        if (Array.isArray(value)) for (const item of value as readonly JsonValue[]) next.push({ value: item, parent })
        else if (isNode(value) && !seen.has(value)) {
          seen.add(value)
          all.push(value)
          if (parent !== undefined) this.#parents.set(value, parent)
          for (const child of Object.values(value)) {
            if (typeof child === 'object' && child !== null) next.push({ value: child, parent: value })
          }
        }
      }
      level = next
    }
    this.#all = all
    return all
  }
}

interface PlacedValue {
  readonly value: JsonValue
  /** Node that it is a property of. */
  readonly parent: JsonNode | undefined
}

/** What a field takes of a value: a text or a number and, of a money, its currency where that is said apart. */
export interface JsonTaken {
  readonly value: JsonLeaf
  readonly currency?: JsonLeaf
}
export type JsonLeaf = RawScalar | ElementText

/** A value itself, or of a node its `@value` or its `name`. */
export function nameOf(value: JsonValue): JsonTaken | undefined {
  return taken(plainOf(value))
}

const URLS = ['url', 'contentUrl', '@id'] as const

/** A value itself, or of a node the URL that it names or is known by. Shape: an id that begins with `_:` is none. */
export function urlOf(value: JsonValue): JsonTaken | undefined {
  if (!isNode(value) || Object.hasOwn(value, '@value')) return nameOf(value)
  const urls = URLS.map((name) => {
    const inner = firstOf(value, name)
    return isNode(inner) ? idOf(inner) : leafOf(inner)
  })
  return taken(urls.find((url) => url !== undefined && !(typeof url === 'string' && url.startsWith('_:'))))
}

const AMOUNTS = ['price', 'value', 'amount', 'lowPrice', 'minPrice'] as const

/** A value itself, or of a node its amount and its currency. */
export function moneyOf(value: JsonValue): JsonTaken | undefined {
  if (!isNode(value)) return nameOf(value)
  const amount = AMOUNTS.map((name) => plainOf(firstOf(value, name))).find((found) => found !== undefined)
  if (amount === undefined) return nameOf(value)
  const currency = plainOf(firstOf(value, 'priceCurrency')) ?? plainOf(firstOf(value, 'currency'))
  return currency === undefined ? { value: amount } : { value: amount, currency }
}

function taken(value: JsonLeaf | undefined): JsonTaken | undefined {
  return value === undefined ? undefined : { value }
}

function plainOf(value: JsonValue | undefined): JsonLeaf | undefined {
  return isNode(value) ? leafOf(firstOf(value, Object.hasOwn(value, '@value') ? '@value' : 'name')) : leafOf(value)
}

function firstOf(node: JsonNode, name: string): JsonValue | undefined {
  return Object.hasOwn(node, name) ? flattened(node[name] ?? null)[0] : undefined
}

/** JSON can say a number beyond all numbers (1e400): it is none. */
function leafOf(value: JsonValue | undefined): JsonLeaf | undefined {
  if (value instanceof ElementAttribute) return value.value
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  return typeof value === 'string' || typeof value === 'boolean' || value instanceof ElementText ? value : undefined
}

export function isNode(value: JsonValue | undefined): value is JsonNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isLeafOfElement(value)
}

function isLeafOfElement(value: unknown): value is ElementText | ElementAttribute {
  return value instanceof ElementText || value instanceof ElementAttribute
}

function idOf(node: JsonNode): string | undefined {
  const id = Object.hasOwn(node, '@id') ? node['@id'] : undefined
  return typeof id === 'string' ? id : undefined
}

function isReference(node: JsonNode): boolean {
  return Object.keys(node).every((name) => name === '@id' || name === '@type')
}

function typesOf(node: JsonNode): readonly string[] {
  const types = Object.hasOwn(node, '@type') ? node['@type'] : undefined
  const list = Array.isArray(types) ? (types as readonly JsonValue[]) : [types]
  return list.flatMap((type) => (typeof type === 'string' ? [type.replace(/^.*[/#:]/, '')] : []))
}

function flattened(value: JsonValue, depth = 0): JsonValue[] {
  if (depth > MAX_DEPTH) return []
  if (Array.isArray(value))
    return (value as readonly JsonValue[]).flatMap((item) => (Array.isArray(item) ? [] : flattened(item, depth + 1)))
  if (isNode(value) && Array.isArray(value['@list'])) return flattened(value['@list'], depth + 1)
  return value === null ? [] : [value]
}
