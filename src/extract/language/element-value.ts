import type { RawValue } from '../values/raw-value.ts'
import { srcsetUrls } from '../values/srcset.ts'
import { NUMBER_TEXT, PLAIN_TEXT, type ScalarKind, type TextForm } from '../values/value-type.ts'
import type { SourceDefinition } from './definition.ts'

/** Selected themselves, they are wanted as they stand. */
export const RAW_TEXT: ReadonlySet<string> = new Set(['script', 'style', 'textarea', 'pre'])

/** What the value of an attribute gives for a field of a kind. */
export function attributeValues(value: string, attribute: string, kind: ScalarKind | 'record'): RawValue[] {
  // In HTML the presence of such an attribute is the value.
  if (kind === 'boolean' && (value === '' || value.toLowerCase() === attribute.toLowerCase())) return [true]
  return kind === 'url' && /srcset$/i.test(attribute) ? srcsetUrls(value) : [value]
}

const NUMBERS: ReadonlySet<string> = new Set(['int', 'long', 'double', 'decimal', 'money'])

/**
 * How the text of an element is read for a field of a kind. A pattern or a transform of the author has it as it is, and every space as the
 * same one.
 */
export function textFormOf({ match, transform }: Pick<SourceDefinition, 'match' | 'transform'>, kind: ScalarKind | 'record'): TextForm {
  if (match !== undefined || transform !== undefined || !NUMBERS.has(kind)) return PLAIN_TEXT
  return NUMBER_TEXT
}
