import type { RawValue } from '../values/raw-value.ts'
import { compileTransforms } from '../values/transform.ts'
import type { SourceDefinition } from './definition.ts'
import { type FieldScope, NO_LIMIT, type PageTree, type SourceReader } from './field-scope.ts'
import { compilePattern, firstGroup } from './pattern.ts'

/** A source whose values are what `match` finds in them, and then what `transform` makes of that. `isBoolean`: the field is one. */
export function refined<T extends PageTree>(definition: SourceDefinition, base: SourceReader<T>, isBoolean: boolean): SourceReader<T> {
  return transformed(definition, matched(definition, base, isBoolean))
}

export function matched<T extends PageTree, S extends SourceReader<T>>({ match }: SourceDefinition, base: S, isBoolean: boolean): S {
  if (match === undefined) return base
  const pattern = compilePattern(match)
  return {
    ...base,
    raws: (scope: FieldScope<T>, limit: number) =>
      base.raws(scope, limit).flatMap((raw): RawValue[] => {
        const found = firstGroup(pattern, String(raw))
        // A pattern on a boolean is the question itself.
        if (isBoolean) return [found !== undefined]
        return found === undefined ? [] : [found]
      }),
  }
}

export function transformed<T extends PageTree, S extends SourceReader<T>>({ transform }: SourceDefinition, base: S): S {
  if (transform === undefined) return base
  const { needsAll, apply } = compileTransforms(transform)
  return {
    ...base,
    isMade: true,
    raws(scope: FieldScope<T>, limit: number): RawValue[] {
      const values = apply(base.raws(scope, needsAll ? NO_LIMIT : limit))
      return limit < values.length ? values.slice(0, limit) : [...values]
    },
  }
}
