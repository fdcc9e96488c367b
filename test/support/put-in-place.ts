import { existsSync, renameSync } from 'node:fs'

/** A folder that was made beside its place goes there, whole. Of two test files that make the same one at once the first wins. */
export function putInPlace(made: string, place: string): void {
  try {
    renameSync(made, place)
  } catch (error) {
    if (!existsSync(place)) throw error
  }
}
