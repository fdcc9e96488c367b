import type { Element } from 'domhandler'
import {
  ElementText,
  isNode,
  type JsonGraph,
  type JsonLeaf,
  type JsonNode,
  type JsonPath,
  type JsonTaken,
  type JsonValue,
  moneyOf,
  nameOf,
  parseJsonPath,
  urlOf,
} from '../sources/json-node.ts'
import { type MetaEntry, metaGroups, metaNamed, metaValues } from '../sources/meta.ts'
import { RawMoney, type RawScalar, type RawValue, SeenText } from '../values/raw-value.ts'
import type { ScalarKind } from '../values/value-type.ts'
import { type SourceDefinition, sourceText } from './definition.ts'
import type { FieldScope, PageTree, SourceReader } from './field-scope.ts'

/** Sources that read what a page says as a whole, and no element of it: the same for every tree. */

/** What there is for people: how many values, why one that is there gives nothing, and what the first one stands in. */
export interface WholePageSource<T extends PageTree, P = MetaEntry | StructuredOrigin> extends SourceReader<T> {
  trace(scope: FieldScope<T>): { readonly matched: number; readonly place: P | undefined; readonly reason: string | undefined }
}

export function metaSource<T extends PageTree>(name: string): WholePageSource<T, MetaEntry> {
  const entries = ({ page, meta }: FieldScope<T>): readonly MetaEntry[] => meta ?? page.meta
  return {
    text: `meta ${name}`,
    isMachine: true,
    isMade: false,
    raws: (scope, limit) => metaValues(entries(scope), name).slice(0, limit),
    scopes: (scope, limit) =>
      metaGroups(entries(scope), name)
        .slice(0, limit)
        .map((meta) => ({ ...scope, meta })),
    trace(scope) {
      const named = metaNamed(entries(scope), name)
      return { matched: named.length, place: named[0], reason: undefined }
    },
  }
}

/** What a field takes of a node, and what the node must have for it. */
const OF_NAME = { takenOf: nameOf, needs: 'name' }
const OF_URL = { takenOf: urlOf, needs: 'url' }
const OF_MONEY = { takenOf: moneyOf, needs: 'price' }

/** The first value that is found, and the outermost node that it comes from. */
export interface StructuredOrigin {
  readonly value: JsonValue
  readonly top: JsonNode | undefined
}

/** Structured data where a field stands, and how a text of its elements is read; undefined where it has none. */
export interface StructuredPlace<T extends PageTree> {
  graph(scope: FieldScope<T>): JsonGraph
  readonly text: ((element: Element, owners: FieldScope<T>['owners']) => RawScalar) | undefined
}

export function structuredSource<T extends PageTree>(
  source: Extract<SourceDefinition, { path: string }>,
  kind: ScalarKind | 'record',
  isList: boolean,
  { graph, text }: StructuredPlace<T>,
): WholePageSource<T, StructuredOrigin> {
  const absolute = parseJsonPath(source.path, { relative: false })
  const relative = parseJsonPath(source.path, { relative: true })
  const { takenOf, needs } = kind === 'money' ? OF_MONEY : kind === 'url' ? OF_URL : OF_NAME
  const pathIn = ({ node }: FieldScope<T>): JsonPath | undefined => (node === undefined ? absolute : relative)
  const values = (scope: FieldScope<T>): JsonValue[] => {
    const path = pathIn(scope)
    return path === undefined ? [] : graph(scope).values(path, { within: scope.node, single: !isList })
  }
  const rawOf = ({ value, currency }: JsonTaken, { owners }: FieldScope<T>): RawValue => {
    const read = (leaf: JsonLeaf): RawScalar => (leaf instanceof ElementText ? (text?.(leaf.element, owners) ?? '') : leaf)
    const plain = currency === undefined ? read(value) : new RawMoney(read(value), String(read(currency)))
    return value instanceof ElementText ? new SeenText(plain) : plain
  }
  return {
    text: sourceText(source),
    isMachine: true,
    isMade: false,
    raws(scope, limit) {
      const raws: RawValue[] = []
      for (const value of values(scope)) {
        const taken = takenOf(value)
        if (taken !== undefined) raws.push(rawOf(taken, scope))
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
      const usable = found.some((value) => takenOf(value) !== undefined)
      const reason = found.length > 0 && !usable ? `it is a node without a ${needs}; go on to one of its properties` : undefined
      const path = pathIn(scope)
      const [value] = found
      const top = path === undefined ? undefined : graph(scope).origin(path, { within: scope.node, single: !isList })
      return { matched: found.length, place: value === undefined ? undefined : { value, top }, reason }
    },
  }
}
