import { writeSync } from 'node:fs'

const STDERR = 2

/**
 * A line in the log of the supervisor. A stream would end the process with the first line that finds no room on the disk, and it is on
 * a full disk that the broker needs its supervisor most: such a line is lost, and there is nowhere to say so.
 */
export function logLine(text: string): void {
  try {
    writeSync(STDERR, `${text}\n`)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error
  }
}
