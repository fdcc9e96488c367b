import { isNode, type JsonGraph, type JsonValue, moneyOf, parseJsonPath, rawOf } from '../sources/json-node.ts'
import { type MetaEntry, metaGroups, metaValues } from '../sources/meta.ts'
import type { RawValue, ScalarKind } from '../values/value-type.ts'
import { type SourceDefinition, sourceText } from './definition.ts'
import type { FieldScope, PageTree, SourceReader } from './field-scope.ts'

/** Sources that read what a page says as a whole, and no element of it: the same for every tree. */

/** Shape: how many values there are, and why one that is there gives nothing; for people. */
export interface PageSource<T extends PageTree> extends SourceReader<T> {
  trace(scope: FieldScope<T>): { readonly matched: number; readonly element: undefined; readonly reason: string | undefined }
}

export function metaSource<T extends PageTree>(name: string): PageSource<T> {
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
    trace: (scope) => ({ matched: metaValues(entries(scope), name).length, element: undefined, reason: undefined }),
  }
}

export function structuredSource<T extends PageTree>(
  source: Extract<SourceDefinition, { path: string }>,
  kind: ScalarKind | 'record',
  isList: boolean,
  graphOf: (page: T['page']) => JsonGraph,
): PageSource<T> {
  const absolute = parseJsonPath(source.path, { relative: false })
  const relative = parseJsonPath(source.path, { relative: true })
  const rawFor = kind === 'money' ? moneyOf : rawOf
  const values = ({ page, node }: FieldScope<T>): JsonValue[] => {
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
