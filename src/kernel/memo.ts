/**
 * Remembers what `compute` said of the last `max` names that were asked for; of more the one that was met first is forgotten. For what
 * does not change and is asked again and again.
 */
export function memo<T>(compute: (name: string) => T, max: number): (name: string) => T {
  const known = new Map<string, T>()
  return (name) => {
    const found = known.get(name)
    if (found !== undefined || known.has(name)) return found as T
    const value = compute(name)
    known.set(name, value)
    const first = known.size > max ? known.keys().next().value : undefined
    if (first !== undefined) known.delete(first)
    return value
  }
}
