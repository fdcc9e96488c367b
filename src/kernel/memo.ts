import { RecentMap } from './recent-map.ts'

/**
 * Remembers what `compute` said of at least the last `least` names that it met, as `RecentMap` does. For what does not change and is asked
 * again and again.
 */
export function memo<T>(compute: (name: string) => T, least: number): (name: string) => T {
  const known = new RecentMap<string, T>(least)
  return (name) => {
    const found = known.get(name)
    if (found !== undefined || known.has(name)) return found as T
    const value = compute(name)
    known.set(name, value)
    return value
  }
}
