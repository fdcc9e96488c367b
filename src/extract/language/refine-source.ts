import { madeOf, type RawValue, SeenText } from '../values/raw-value.ts'
import { hasEdges, partWithEdges, withoutEdges } from '../values/split-number.ts'
import { compileTransforms } from '../values/transform.ts'
import { collapse, type ScalarKind } from '../values/value-type.ts'
import type { SourceDefinition } from './definition.ts'
import { type FieldScope, NO_LIMIT, type PageTree, type SourceReader } from './field-scope.ts'
import { compilePattern, firstGroupOf, firstPlaceOf } from './pattern.ts'

/** A source whose values are what `match` finds in them, and then what `transform` makes of that, for a field of a kind. */
export function refined<T extends PageTree>(
  definition: SourceDefinition,
  base: SourceReader<T>,
  kind: ScalarKind | 'record',
): SourceReader<T> {
  return transformed(definition, matched(definition, base, kind === 'boolean'), kind)
}

export function matched<T extends PageTree, S extends SourceReader<T>>({ match }: SourceDefinition, base: S, isBoolean: boolean): S {
  if (match === undefined) return base
  const pattern = compilePattern(match)
  const pick = partPicker(pattern)
  return {
    ...base,
    raws: (scope: FieldScope<T>, limit: number) =>
      base.raws(scope, limit).flatMap((raw): RawValue[] => {
        // A pattern on a boolean is the question itself.
        if (isBoolean) return [pattern.test(String(raw))]
        const found = pick(String(raw))
        return found === undefined ? [] : [madeOf(found, raw)]
      }),
  }
}

/** What the pattern finds in a text, with the edges of elements within that, which it does not see. */
function partPicker(pattern: RegExp): (text: string) => string | undefined {
  const [firstGroup, firstPlace] = [firstGroupOf(pattern), firstPlaceOf(pattern)]
  return (text) => {
    if (!hasEdges(text)) return firstGroup(text)
    const place = firstPlace(withoutEdges(text))
    return place === undefined ? undefined : partWithEdges(text, place)
  }
}

/** The last step of a source: of a price that the author looked at first every space is the same one. */
export function transformed<T extends PageTree, S extends SourceReader<T>>(
  { match, transform }: SourceDefinition,
  base: S,
  kind: ScalarKind | 'record',
): S {
  const spaced = kind === 'money' ? withPlainSpaces : (raw: RawValue): RawValue => raw
  if (transform === undefined) {
    if (match === undefined) return base
    return { ...base, raws: (scope: FieldScope<T>, limit: number) => base.raws(scope, limit).map(spaced) }
  }
  const { needsAll, apply } = compileTransforms(transform)
  return {
    ...base,
    isMade: true,
    raws(scope: FieldScope<T>, limit: number): RawValue[] {
      const values = apply(base.raws(scope, needsAll ? NO_LIMIT : limit))
      return (limit < values.length ? values.slice(0, limit) : [...values]).map(spaced)
    },
  }
}

function withPlainSpaces(raw: RawValue): RawValue {
  return typeof raw === 'string' || raw instanceof SeenText ? madeOf(collapse(String(raw)), raw) : raw
}
