import { appendFileSync, closeSync, existsSync, fstatSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { brokenState } from './broken-state.ts'
import { readHeads } from './file-head.ts'

/** LMDB may leave the last pages unwritten where they became free in the same transaction; more than this is damage. */
const UNWRITTEN_TAIL_BYTES = 64 * 1024 * 1024

/**
 * Looks at the head of the file before LMDB maps it into memory: a file of something else would give an error without a hint, and a file
 * that is shorter than its head says would end the process with SIGBUS as soon as a page behind its end is touched.
 *
 * Errors: STATE_BROKEN, saying what was found. A tail that is missing is filled with zeros, which LMDB recognises as no page.
 */
export function checkFile(folder: string): void {
  const path = join(folder, 'data.mdb')
  if (!existsSync(path)) return
  const file = openSync(path, 'r')
  let missing: number
  try {
    const { size } = fstatSync(file)
    // An empty file is what a kill between creation and the first write leaves.
    if (size === 0) return
    missing = lastByte(file, path) - size
  } finally {
    closeSync(file)
  }
  if (missing > UNWRITTEN_TAIL_BYTES) throw brokenState(path, `${missing} bytes are missing at its end`)
  // Appending can not overwrite what another process writes at the same moment, as setting the length could cut it off.
  if (missing > 0) appendFileSync(path, Buffer.alloc(missing))
}

/** Length that the newer of the two heads says. */
function lastByte(file: number, path: string): number {
  const [first, second] = readHeads(file, path)
  const newest = second.transaction > first.transaction ? second : first
  return (newest.lastPage + 1) * newest.pageBytes
}
