import { mkdirSync, statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those above it that are missing. Each is tried once: Node.js's own recursive way asks for ever where a file system
 * takes none (`/proc`), without hearing a signal. Shape: nothing happens where it is there. Errors: those of the file system; ENOENT where
 * the folder above is there and takes none.
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

/** As {@link makeFolder}, for a folder that may be on a network: while it does not answer, everything else of the process goes on. */
export async function makeFolderAside(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (await isFolderAside(path)) return
    const above = dirname(resolve(path))
    if (code !== 'ENOENT' || above === resolve(path) || (await isFolderAside(above))) throw error
    await makeFolderAside(above)
    await mkdir(path).catch(async (again: unknown) => {
      if (!(await isFolderAside(path))) throw again
    })
  }
}

async function isFolderAside(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
}
