import type { RawValue } from '../values/raw-value.ts'
import { srcsetUrls } from '../values/srcset.ts'
import { NUMBER_TEXT, PLAIN_TEXT, pickedText, type ScalarKind, type TextForm } from '../values/value-type.ts'
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

function isNumeric(kind: ScalarKind | 'record'): kind is ScalarKind {
  return NUMBERS.has(kind)
}

/**
 * How the text of an element is read for a field of a kind. A part that a pattern picks means what it means in the whole; a transform of
 * the author has the text as it is, and every space as the same one.
 */
export function textFormOf({ match, transform }: Pick<SourceDefinition, 'match' | 'transform'>, kind: ScalarKind | 'record'): TextForm {
  if (transform !== undefined || !isNumeric(kind)) return PLAIN_TEXT
  return match === undefined ? NUMBER_TEXT : pickedText(kind)
}
