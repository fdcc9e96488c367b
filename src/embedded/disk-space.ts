import { statfs } from 'node:fs/promises'
import { errorText } from '../kernel/errors.ts'
import { logLine } from './supervisor-log.ts'

/** Kafka ends at the first write that finds no room; it makes segments and indexes before it answers, tens of MiB on a new folder. */
const ROOM_TO_START_BYTES = 32 * 1024 * 1024

/** Free space for this user on the disk of a folder. Errors: as of the file system. */
export async function freeDiskBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** False while the broker would only end again for want of space; true where nobody can tell. */
export async function hasRoomToStart(folder: string): Promise<boolean> {
  try {
    return (await freeDiskBytes(folder)) >= ROOM_TO_START_BYTES
  } catch (error) {
    logLine(`the free space of ${folder} can't be read: ${errorText(error)}`)
    return true
  }
}
