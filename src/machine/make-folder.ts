import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those above it that are missing. Each is tried once: Node.js's own recursive way asks for ever where a file system takes
 * none (`/proc`), without hearing a signal. Shape: nothing happens where it is there. Errors: those of the file system; ENOENT where the
 * folder above is there and takes none.
 */
export function makeFolder(path: string, mode?: number): void {
  try {
    mkdirSync(path, mode)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (isFolder(path)) return
    const above = dirname(resolve(path))
    if (code !== 'ENOENT' || above === resolve(path) || isFolder(above)) throw error
    makeFolder(above, mode)
    makeOnce(path, mode)
  }
}

/** Another process may have made it meanwhile. */
function makeOnce(path: string, mode: number | undefined): void {
  try {
    mkdirSync(path, mode)
  } catch (error) {
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
