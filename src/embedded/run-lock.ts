import { makeFolder } from '../machine/make-folder.ts'
import { brokenFolderError } from './broker-folder.ts'
import { type HeldLock, lockedError, tryLock } from './file-lock.ts'

/**
 * The lock that keeps a second `millrace run` out of the same data folder. It does not wait. Errors: DATA_DIR_LOCKED naming pid and
 * start time of the first; DATA_DIR_UNUSABLE when the folder can't be used.
 */
export function acquireRunLock(dataDir: string, what: string): HeldLock {
  try {
    makeFolder(dataDir)
    const attempt = tryLock(dataDir, 'run.lock', what)
    if (attempt.kind === 'held') return attempt.lock
    throw lockedError(dataDir, 'run.lock', attempt.holder)
  } catch (error) {
    throw brokenFolderError(dataDir, error)
  }
}
