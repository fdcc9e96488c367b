/**
 * A decoded value as literals write it. Avro's decoder gives each record as an instance of a class of its own (`ItemData`), which strict
 * equality tells from the same in braces. Shape: a copy; bytes stay the Buffer that they are.
 */
export function plainValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainValue)
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, plainValue(own)]))
}
