import type { ScalarKind } from '../values/value-type.ts'
import { type CompiledSource, compileSource } from './compile-source.ts'
import { type ConditionDefinition, conditionText, type SourceDefinition } from './definition.ts'
import { type FieldScope, NO_LIMIT, type PageTree, type ParsedTree, type SourceReader } from './field-scope.ts'
import { compilePattern } from './pattern.ts'

/** A condition, ready to be asked of each page or record. */
export interface CompiledCondition<T extends PageTree = ParsedTree> {
  /** As people say it. */
  readonly text: string
  holds(scope: FieldScope<T>): boolean
}

/** Makes a source of a tree ready; see `compileSource`. */
export type SourceCompiler<T extends PageTree> = (source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean) => SourceReader<T>

/** An element or a node is enough, whatever is in it; with an attribute there must be a value, with a pattern one that it matches. */
export function compileCondition<T extends PageTree>(definition: ConditionDefinition, compile: SourceCompiler<T>): CompiledCondition<T> {
  const { source, not } = definition
  const pattern = source.match === undefined ? undefined : compilePattern(source.match)
  const compiled = compile({ ...source, match: undefined }, 'string', true)
  const isPlace = pattern === undefined && (!('attribute' in source) || source.attribute === undefined)
  const isThere = (scope: FieldScope<T>): boolean =>
    (isPlace && compiled.scopes(scope, 1).length > 0) ||
    compiled.raws(scope, NO_LIMIT).some((raw) => pattern?.test(String(raw)) ?? String(raw).trim() !== '')
  return { text: conditionText(definition), holds: (scope) => isThere(scope) !== not }
}

/** A source that gives nothing where its condition does not hold. */
export function conditional<T extends PageTree, S extends SourceReader<T>>(base: S, condition: CompiledCondition<T>): S {
  return {
    ...base,
    raws: (scope: FieldScope<T>, limit: number) => (condition.holds(scope) ? base.raws(scope, limit) : []),
    scopes: (scope: FieldScope<T>, limit: number) => (condition.holds(scope) ? base.scopes(scope, limit) : []),
  }
}

/** `compileSource` with the condition of the source. */
export function compileConditionalSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean): CompiledSource {
  const compiled = compileSource(source, kind, isList)
  if (source.when === undefined) return compiled
  const condition = compileCondition(source.when, compileSource)
  return {
    ...conditional<ParsedTree, CompiledSource>(compiled, condition),
    trace: (scope) =>
      condition.holds(scope)
        ? compiled.trace(scope)
        : { matched: 0, element: undefined, reason: `it counts only where ${condition.text}, which is not so` },
  }
}
