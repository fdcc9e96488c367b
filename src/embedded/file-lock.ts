import { closeSync, linkSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { folderMark, isOfFolder } from '../machine/folder-mark.ts'
import { describeProcess, isAlive, isLocal, ownIdentity, type ProcessIdentity, parseIdentity } from '../machine/process-identity.ts'
import { readJsonFile, temporaryBeside } from './atomic-file.ts'

/**
 * An exclusive lock between processes that survives kill -9 of its holder.
 *
 * Each holding is a file `<name>.<n>` that names its holder; the highest n counts. Who finds it released, or its holder dead, makes
 * n + 1 by a hard link, which only one process can do. A stale file is therefore never taken away to make room (between looking and
 * taking away, another process may have renewed it), it is outnumbered. Lower files are swept by the next holder. The holder keeps its
 * file open, which keeps the folder's mark (`folderMark`) as well.
 */
export interface LockHolder {
  readonly process: ProcessIdentity
  /** What the holder does, for the message that refuses others. */
  readonly what: string
}

export interface HeldLock {
  /** The dead process whose lock was taken over, when there was one. */
  readonly takenOverFrom: LockHolder | undefined
  release(): void
}

export type LockAttempt = { readonly kind: 'held'; readonly lock: HeldLock } | { readonly kind: 'refused'; readonly holder: LockHolder }

interface LockFile {
  readonly holder: LockHolder | undefined
  readonly released: boolean
}

/** One attempt. Shape: `refused` names the living holder. Errors: those of the file system; DATA_DIR_UNUSABLE without hard links. */
export function tryLock(folder: string, name: string, what: string): LockAttempt {
  const holder: LockHolder = { process: ownIdentity(), what }
  const mark = folderMark(folder)
  for (;;) {
    const top = highest(folder, name)
    const current = top === 0 ? undefined : readLock(folder, `${name}.${top}`)
    if (top > 0 && current === undefined) continue // swept since it was listed: there is a higher one
    if (current?.holder !== undefined && !current.released && isAlive(current.holder.process)) {
      return { kind: 'refused', holder: current.holder }
    }
    const path = join(folder, `${name}.${top + 1}`)
    const handle = createExclusively(path, lockText(mark, holder, false))
    if (handle === undefined) continue
    if (highest(folder, name) !== top + 1) {
      // What was listed first was old: others have come, gone and swept since. The number was free but no longer the highest.
      closeSync(handle)
      rmSync(path, { force: true })
      continue
    }
    for (const n of numbers(folder, name)) if (n <= top) rmSync(join(folder, `${name}.${n}`), { force: true })
    const takenOverFrom = current === undefined || current.released ? undefined : current.holder
    let isHeld = true
    const release = (): void => {
      if (isHeld) giveBack(handle, lockText(mark, holder, true))
      isHeld = false
    }
    return { kind: 'held', lock: { takenOverFrom, release } }
  }
}

/** Waits for the lock. Errors: DATA_DIR_LOCKED naming the holder after `waitMs`; `signal.reason` when aborted. */
export async function waitForLock(options: {
  folder: string
  name: string
  what: string
  waitMs: number
  clock: Clock
  signal?: AbortSignal
}): Promise<HeldLock> {
  const deadline = options.clock.mono() + options.waitMs
  for (;;) {
    options.signal?.throwIfAborted()
    const attempt = tryLock(options.folder, options.name, options.what)
    if (attempt.kind === 'held') return attempt.lock
    if (options.clock.mono() >= deadline) throw lockedError(options.folder, options.name, attempt.holder)
    await options.clock.sleep(20, options.signal)
  }
}

/** The error that names who is in the way. */
export function lockedError(folder: string, name: string, holder: LockHolder): MillraceError {
  const otherwise = isLocal(holder.process) ? '' : `; where that host is gone for good, delete ${join(folder, `${name}.*`)}`
  return new MillraceError(
    'DATA_DIR_LOCKED',
    `the data folder ${folder} is in use by \`${holder.what}\` (${describeProcess(holder.process)}). Wait for it, stop it, or use another folder with --data${otherwise}`,
    { context: { folder, pid: holder.process.pid, startedAt: holder.process.startedAt } },
  )
}

/** Of the same length, whether released or not. */
function lockText(mark: string, holder: LockHolder, released: boolean): string {
  return `${JSON.stringify({ folder: mark, ...holder, released })}${released ? ' ' : ''}\n`
}

/**
 * In place, by the handle that was kept: giving back needs neither room on a full disk nor another handle, and makes no file anew where
 * the folder was removed meanwhile. Whoever reads half of it takes it for held by nobody, which is true.
 */
function giveBack(handle: number, text: string): void {
  try {
    writeSync(handle, text, 0)
  } finally {
    closeSync(handle)
  }
}

/** Shape: the open file; undefined when there is one already. */
function createExclusively(path: string, text: string): number | undefined {
  const temporary = temporaryBeside(path)
  const handle = openSync(temporary, 'wx')
  try {
    writeSync(handle, text)
    linkSync(temporary, path)
    return handle
  } catch (error) {
    closeSync(handle)
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EEXIST') return undefined
    if (code === 'EPERM' || code === 'ENOTSUP' || code === 'EOPNOTSUPP' || code === 'ENOSYS') {
      throw new MillraceError(
        'DATA_DIR_UNUSABLE',
        `the file system of ${path} has no hard links, which the lock needs: use another folder with --data`,
        { cause: error },
      )
    }
    throw error
  } finally {
    rmSync(temporary, { force: true })
  }
}

/**
 * Undefined when the file is gone. Text that is no lock (the machine lost power while it was written) counts as held by nobody, and so does
 * a lock that was copied along with its folder; of a holder on another host nobody can tell, for there the folder may have another mark.
 */
function readLock(folder: string, name: string): LockFile | undefined {
  const file = readJsonFile(join(folder, name))
  if (file.kind === 'missing') return undefined
  if (file.kind === 'broken' || typeof file.value !== 'object' || file.value === null) return { holder: undefined, released: true }
  const { folder: mark, process: identity, what, released } = file.value as Record<string, unknown>
  const parsed = parseIdentity(identity)
  if (parsed === undefined || (isLocal(parsed) && !isOfFolder(folder, mark))) return { holder: undefined, released: true }
  return { holder: { process: parsed, what: typeof what === 'string' ? what : 'another command' }, released: released === true }
}

function numbers(folder: string, name: string): number[] {
  const found: number[] = []
  for (const entry of readdirSync(folder)) {
    if (!entry.startsWith(`${name}.`)) continue
    const suffix = entry.slice(name.length + 1)
    if (/^[1-9]\d*$/.test(suffix)) found.push(Number(suffix))
  }
  return found
}

function highest(folder: string, name: string): number {
  return numbers(folder, name).reduce((top, n) => Math.max(top, n), 0)
}
