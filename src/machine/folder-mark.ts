import { statSync } from 'node:fs'

/**
 * Which folder this is, wherever it is moved to; a copy of it, or one that was restored from a backup, is another one. Held beside a
 * process of this host, and by nothing that outlives it: devices and inodes get other numbers after a boot, and on another host. Whoever
 * works in the folder keeps a file open in it, or stands in it, so that the number is not given to another folder meanwhile.
 * Shape: empty when it is gone.
 */
export function folderMark(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat === undefined ? '' : `${stat.dev}-${stat.ino}`
}

/**
 * False for what was written in another folder and copied along with it: it names processes that know nothing of this one. What an
 * older version has written says no folder, and counts as written here.
 */
export function isOfFolder(path: string, noted: unknown): boolean {
  return noted === undefined || noted === folderMark(path)
}
