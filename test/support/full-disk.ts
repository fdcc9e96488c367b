import { statfsSync, writeFileSync } from 'node:fs'

/** Takes the free space of the disk but for `leaveBytes`. */
export function fillDisk(disk: string, path: string, leaveBytes: number): void {
  const { bavail, bsize } = statfsSync(disk)
  const size = Math.max(0, bavail * bsize - leaveBytes)
  const chunk = Buffer.alloc(1_048_576)
  try {
    for (let written = 0; written < size; written += chunk.length)
      writeFileSync(path, chunk.subarray(0, Math.min(chunk.length, size - written)), { flag: 'a' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
