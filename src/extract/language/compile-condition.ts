import type { ScalarKind } from '../values/value-type.ts'
import { type CompiledSource, compileSource, type FieldScope } from './compile-source.ts'
import { type ConditionDefinition, conditionText, type SourceDefinition } from './definition.ts'

/** A condition, ready to be asked of each page or record. */
export interface CompiledCondition {
  /** As people say it. */
  readonly text: string
  holds(scope: FieldScope): boolean
}

/** An element or a node is enough, whatever is in it; with an attribute, a pattern or a transform there must be a value. */
export function compileCondition(definition: ConditionDefinition): CompiledCondition {
  const { source, not } = definition
  const compiled = compileSource(source, 'string', true)
  const isPlace =
    source.match === undefined && source.transform === undefined && (!('attribute' in source) || source.attribute === undefined)
  const isThere = (scope: FieldScope): boolean =>
    (isPlace && compiled.scopes(scope, 1).length > 0) ||
    compiled.raws(scope, Number.POSITIVE_INFINITY).some((raw) => String(raw).trim() !== '')
  return { text: conditionText(definition), holds: (scope) => isThere(scope) !== not }
}

/** A source that gives nothing where its condition does not hold. */
export function compileConditionalSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean): CompiledSource {
  const compiled = compileSource(source, kind, isList)
  if (source.when === undefined) return compiled
  const condition = compileCondition(source.when)
  return {
    ...compiled,
    raws: (scope, limit) => (condition.holds(scope) ? compiled.raws(scope, limit) : []),
    scopes: (scope, limit) => (condition.holds(scope) ? compiled.scopes(scope, limit) : []),
    trace: (scope) =>
      condition.holds(scope)
        ? compiled.trace(scope)
        : { matched: 0, element: undefined, reason: `it counts only where ${condition.text}, which is not so` },
  }
}
