import { statfs } from 'node:fs/promises'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { logLine } from './supervisor-log.ts'

/** Kafka ends at the first write that finds no room; it makes segments and indexes before it answers, tens of MiB on a new folder. */
export const ROOM_TO_START_BYTES = 32 * 1024 * 1024

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

/** Why a broker that is not there is not started now; undefined where there is room, or nobody can tell. Shape: DISK_FULL. */
export async function noRoomError(folder: string): Promise<MillraceError | undefined> {
  const freeBytes = await freeDiskBytes(folder).catch(() => ROOM_TO_START_BYTES)
  if (freeBytes >= ROOM_TO_START_BYTES) return undefined
  const mib = (bytes: number): string => (bytes / 1_048_576).toFixed(0)
  const free = mib(freeBytes)
  const text = `Apache Kafka rests, since the disk of ${folder} is full: ${free} MiB are free, and it starts by itself once ${mib(ROOM_TO_START_BYTES)} MiB are`
  return new MillraceError('DISK_FULL', text, { context: { folder } })
}
