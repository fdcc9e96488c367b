import {
  isNode,
  type JsonGraph,
  type JsonNode,
  type JsonPath,
  type JsonValue,
  moneyOf,
  parseJsonPath,
  rawOf,
  urlOf,
} from '../sources/json-node.ts'
import { type MetaEntry, metaGroups, metaNamed, metaValues } from '../sources/meta.ts'
import type { RawValue } from '../values/raw-value.ts'
import type { ScalarKind } from '../values/value-type.ts'
import { type SourceDefinition, sourceText } from './definition.ts'
import type { FieldScope, PageTree, SourceReader } from './field-scope.ts'

/** Sources that read what a page says as a whole, and no element of it: the same for every tree. */

/** What there is for people: how many values, why one that is there gives nothing, and what the first one stands in. */
export interface PageSource<T extends PageTree, P = MetaEntry | JsonNode> extends SourceReader<T> {
  trace(scope: FieldScope<T>): { readonly matched: number; readonly place: P | undefined; readonly reason: string | undefined }
}

export function metaSource<T extends PageTree>(name: string): PageSource<T, MetaEntry> {
  const entries = ({ page, meta }: FieldScope<T>): readonly MetaEntry[] => meta ?? page.meta
  return {
    text: `meta ${name}`,
    machine: true,
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
const OF_NAME = { rawFor: rawOf, needs: 'name' }
const OF_URL = { rawFor: urlOf, needs: 'url' }
const OF_MONEY = { rawFor: moneyOf, needs: 'price' }

export function structuredSource<T extends PageTree>(
  source: Extract<SourceDefinition, { path: string }>,
  kind: ScalarKind | 'record',
  isList: boolean,
  graphOf: (page: T['page']) => JsonGraph,
): PageSource<T, JsonNode> {
  const absolute = parseJsonPath(source.path, { relative: false })
  const relative = parseJsonPath(source.path, { relative: true })
  const { rawFor, needs } = kind === 'money' ? OF_MONEY : kind === 'url' ? OF_URL : OF_NAME
  const pathIn = ({ node }: FieldScope<T>): JsonPath | undefined => (node === undefined ? absolute : relative)
  const values = (scope: FieldScope<T>): JsonValue[] => {
    const path = pathIn(scope)
    return path === undefined ? [] : graphOf(scope.page).values(path, { within: scope.node, single: !isList })
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
      const reason = found.length > 0 && !usable ? `it is a node without a ${needs}; go on to one of its properties` : undefined
      const path = pathIn(scope)
      const place = path === undefined ? undefined : graphOf(scope.page).origin(path, { within: scope.node, single: !isList })
      return { matched: found.length, place, reason }
    },
  }
}
