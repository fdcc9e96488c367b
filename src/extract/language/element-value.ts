import type { RawValue } from '../values/raw-value.ts'
import { srcsetUrls } from '../values/srcset.ts'
import { collapse, collapseAroundNoBreak, type ScalarKind } from '../values/value-type.ts'
import type { SourceDefinition } from './definition.ts'

/** Selected themselves, they are wanted as they stand. */
export const RAW_TEXT: ReadonlySet<string> = new Set(['script', 'style', 'textarea', 'pre'])

/** What the value of an attribute gives for a field of a kind. */
export function attributeValues(value: string, attribute: string, kind: ScalarKind | 'record'): RawValue[] {
  // In HTML the presence of such an attribute is the value.
  if (kind === 'boolean' && (value === '' || value.toLowerCase() === attribute.toLowerCase())) return [true]
  return kind === 'url' && /srcset$/i.test(attribute) ? srcsetUrls(value) : [value]
}

/** What becomes of white space in the text of an element. A pattern or a transform of the author has every space as the same one. */
export function collapseOf(
  { match, transform }: Pick<SourceDefinition, 'match' | 'transform'>,
  kind: ScalarKind | 'record',
): typeof collapse {
  return kind === 'money' && match === undefined && transform === undefined ? collapseAroundNoBreak : collapse
}
