import { appendFileSync, closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { MillraceError } from '../../kernel/errors.ts'

/**
 * Looks at the head of the file before LMDB maps it into memory: a file of something else would give an error without a hint, and a file
 * that is shorter than its head says would end the process with SIGBUS as soon as a page behind its end is touched.
 */
const MAGIC = 0xbeefc0de
const DATA_VERSION = 2
const META_BYTES = 168

/** LMDB may leave the last pages unwritten where they became free in the same transaction; more than this is damage. */
const UNWRITTEN_TAIL_BYTES = 64 * 1024 * 1024

/** Errors: STATE_BROKEN, saying what was found. A tail that is missing is filled with zeros, which LMDB recognises as no page. */
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
  const first = readMeta(file, 0, path)
  const second = readMeta(file, first.pageBytes, path)
  const newest = second.transaction > first.transaction ? second : first
  return (newest.lastPage + 1) * first.pageBytes
}

function readMeta(file: number, offset: number, path: string): { pageBytes: number; lastPage: number; transaction: number } {
  const head = Buffer.alloc(META_BYTES)
  const read = readSync(file, head, 0, META_BYTES, offset)
  if (read < META_BYTES) throw brokenState(path, 'it ends within its head')
  if (head.readUInt32LE(24) !== MAGIC) throw brokenState(path, 'it is no LMDB file')
  const version = head.readUInt32LE(28)
  if (version !== DATA_VERSION) throw brokenState(path, `its format is ${version}, this version reads ${DATA_VERSION}`)
  const pageBytes = head.readUInt32LE(48)
  if (pageBytes < 512 || pageBytes > 65_536) throw brokenState(path, `its pages have ${pageBytes} bytes`)
  return { pageBytes, lastPage: Number(head.readBigUInt64LE(144)), transaction: Number(head.readBigUInt64LE(152)) }
}

export function brokenState(path: string, found: string, cause?: unknown): MillraceError {
  return new MillraceError(
    'STATE_BROKEN',
    `the state in ${path} can not be used: ${found}. Stop all processes that use it, move the folder away and start again; ` +
      'the state is rebuilt from the topics',
    { cause, context: { path } },
  )
}
