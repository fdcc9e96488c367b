import { statfsSync } from 'node:fs'
import { isMillraceError, MillraceError } from '../../kernel/errors.ts'
import { brokenState } from './broken-state.ts'

/** What was thrown by LMDB or the system under it, as an error of the catalogue. Nothing was kept of the step that threw. */
export function lmdbError(error: unknown, folder: string): MillraceError {
  if (isMillraceError(error)) return error
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : String(error)
  if (DISK.has(code) || (IO.has(code) && isFull(folder))) {
    return new MillraceError('DISK_FULL', `the state in ${folder} can not be written: ${text}. Free disk space; nothing was lost`, {
      cause: error,
      context: { folder },
    })
  }
  if (PERMISSION.has(code)) {
    return new MillraceError(
      'CONFIG_UNREADABLE',
      `the state folder ${folder} can not be opened: ${text}. Give this user the right to write it`,
      {
        cause: error,
        context: { folder },
      },
    )
  }
  if (BROKEN.has(code) || /^MDB_(CORRUPTED|INVALID|PAGE_NOTFOUND|VERSION_MISMATCH|PANIC|BAD_)/.test(text) || error instanceof SyntaxError) {
    return brokenState(folder, text, error)
  }
  // Everything of ours is checked before it gets here, so what is left is the file or the system: too many readers, no memory, I/O.
  if (code !== '' || text.startsWith('MDB_')) {
    return new MillraceError('STATE_UNAVAILABLE', `the state in ${folder} did not answer: ${text}`, { cause: error, context: { folder } })
  }
  return new MillraceError('INTERNAL', `a step on the state in ${folder} failed: ${text}`, { cause: error, context: { folder } })
}

/**
 * The same for a step on a file that is open. A disk that has run full is no end then: nothing of the step was kept, and whoever waits for
 * the store goes on when there is space.
 */
export function lmdbStepError(error: unknown, folder: string): MillraceError {
  const known = lmdbError(error, folder)
  if (known.code !== 'DISK_FULL') return known
  return new MillraceError('STATE_UNAVAILABLE', known.message, { cause: known.cause, context: { folder } })
}

/** ENOSPC, EDQUOT, EFBIG: by number from LMDB, by name from Node. */
const DISK = new Set(['28', '122', '69', '27', 'ENOSPC', 'EDQUOT', 'EFBIG'])
/** EIO: LMDB says so too when the disk took only a part of what it was given. */
const IO = new Set(['5', 'EIO'])
const FULL_BYTES = 16 * 1024 * 1024
/** EACCES, EPERM, EROFS. */
const PERMISSION = new Set(['13', '1', '30', 'EACCES', 'EPERM', 'EROFS'])
/** MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_PANIC, MDB_VERSION_MISMATCH, MDB_INVALID, MDB_INCOMPATIBLE. */
const BROKEN = new Set(['-30796', '-30797', '-30795', '-30794', '-30793', '-30784'])

function isFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < FULL_BYTES
  } catch {
    // The folder is gone: not for want of space.
    return false
  }
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return ''
  return typeof error.code === 'string' || typeof error.code === 'number' ? String(error.code) : ''
}
