import { open } from 'node:fs/promises'
import { errorText, MillraceError } from '../kernel/errors.ts'

/** A file that can't be read is told before anything is started. Errors: USAGE naming the option and the path. */
export async function refuseUnreadable(path: string, option: string): Promise<void> {
  try {
    const handle = await open(path)
    const isFolder = (await handle.stat()).isDirectory()
    await handle.close()
    if (isFolder) throw new Error('it is a folder')
  } catch (cause) {
    throw new MillraceError('USAGE', `${option}: can not read ${path}: ${errorText(cause)}`, { cause })
  }
}
