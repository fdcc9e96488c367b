/** Null fields over the records of one page, by name. Shape: fields that are never null are left out. */
export function nullsOf(items: readonly { readonly data: unknown }[]): Record<string, number> {
  // A field of code may be named like something that every object has.
  const nulls: Record<string, number> = Object.create(null)
  for (const { data } of items) {
    if (typeof data !== 'object' || data === null) continue
    for (const [field, value] of Object.entries(data)) if (value === null || value === undefined) nulls[field] = (nulls[field] ?? 0) + 1
  }
  return nulls
}
