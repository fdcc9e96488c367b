import { statSync } from 'node:fs'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import type { Clock } from '../../kernel/clock.ts'
import { MillraceError } from '../../kernel/errors.ts'
import type { Observer } from '../../kernel/observe.ts'
import { makeFolder } from '../../machine/make-folder.ts'
import { BootTime } from './boot-time.ts'
import { brokenState, checkFile } from './file-check.ts'
import { endOf, FILE_KEY } from './keys.ts'
import { lmdbError, lmdbStepError } from './lmdb-error.ts'

/**
 * One LMDB file, shared by all processes of a machine that open the folder.
 *
 * Guarantees: a step is one transaction, or takes part in one with other steps (group commit), and is undone whole when it throws;
 * what a step did is seen by every process as soon as its promise resolves, and outlives a kill -9 of any of them. It is written
 * through to the disk once a second: a crash of the whole machine may lose the last second, or damage the file, which then is STATE_BROKEN.
 *
 * Steps run synchronously on this thread: a transaction takes about 0.1 ms, and the asynchronous transactions of lmdb 3.5.6 never
 * return under Node 20. Steps that wait together share one, so that their number and not their sum meets the file.
 */
export class LmdbFile {
  readonly folder: string
  readonly time: BootTime
  readonly #db: Database
  readonly #clock: Clock
  readonly #observer: Observer
  #queue: QueuedStep[] = []
  #scheduled = false
  #closed: Promise<void> | undefined
  #disarmFlush: (() => void) | undefined
  #flushing: Promise<void> = Promise.resolve()

  private constructor(folder: string, db: Database, time: BootTime, options: LmdbFileOptions) {
    this.folder = folder
    this.#db = db
    this.time = time
    this.#clock = options.clock
    this.#observer = options.observer
  }

  /** Errors: STATE_BROKEN (not our file, damaged), DISK_FULL, CONFIG_UNREADABLE (no permission). */
  static open(folder: string, options: LmdbFileOptions): LmdbFile {
    let db: Database | undefined
    try {
      makeFolder(folder)
      checkFile(folder)
      // Not `overlappingSync`: its commits wait for the disk on this thread, some milliseconds each.
      db = open({ path: folder, encoding: 'json', keyEncoding: 'binary', noSync: true, overlappingSync: false }) as Database
      const time = readBoot(db, folder, options)
      return new LmdbFile(folder, db, time, options)
    } catch (error) {
      // What is half open must not keep the file mapped; its own failure to close adds nothing to the reason.
      db?.close().catch(() => undefined)
      throw lmdbError(error, folder)
    }
  }

  /** Runs `step` in a transaction; `now` is read inside it, so that time never runs backwards from one step to the next, in any process. */
  step<T>(step: (now: number) => T): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(closedError(this.folder))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run: step, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** Epoch ms, for what is kept for days: it goes on while the machine is down. */
  now(): number {
    return this.#clock.now()
  }

  /** Reads one consistent state, the latest of any process. */
  read<T>(read: (now: number) => T): T {
    if (this.#closed !== undefined) throw closedError(this.folder)
    try {
      this.#db.resetReadTxn()
      return read(this.#clock.machineMono())
    } catch (error) {
      throw lmdbError(error, this.folder)
    }
  }

  get<T>(key: Buffer): T | undefined {
    return this.#db.get(key) as T | undefined
  }

  put(key: Buffer, value: Json): void {
    this.#db.putSync(key, value)
  }

  remove(key: Buffer): void {
    this.#db.removeSync(key)
  }

  /** Entries whose key begins with `prefix`, in order of the key, from behind `after` on. */
  entries<T>(prefix: Buffer, limit: number, after?: Buffer): { readonly key: Buffer; readonly value: T }[] {
    const start = after === undefined ? prefix : Buffer.concat([after, Buffer.alloc(1)])
    return Array.from(this.#db.getRange({ start, end: endOf(prefix), limit }), (entry) => ({ key: entry.key, value: entry.value as T }))
  }

  sizeBytes(): number {
    return statSync(join(this.folder, 'data.mdb')).size
  }

  /** Finishes the steps that wait, writes all through to the disk and lets the file go. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#disarmFlush?.()
    while (this.#queue.length > 0) this.#runGroup()
    await this.#flushing
    await this.#flush()
    await this.#db.close()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (this.#queue.length > 0) this.#runGroup()
      if (this.#queue.length > 0) this.#schedule()
    })
  }

  /** One transaction for the steps that wait, as many as fit into the time that the thread may be held. */
  #runGroup(): void {
    const done: { step: QueuedStep; value: unknown }[] = []
    const endBy = this.#clock.mono() + GROUP_MS
    try {
      this.#transaction((now) => {
        for (const step of this.#queue) {
          done.push({ step, value: step.run(now) })
          if (done.length >= GROUP_STEPS || this.#clock.mono() >= endBy) break
        }
      })
    } catch (error) {
      const failed = this.#queue.splice(0, Math.max(1, done.length + 1))
      if (failed.length === 1) failed[0]?.reject(lmdbStepError(error, this.folder))
      else for (const step of failed) this.#runAlone(step)
      return
    }
    this.#queue.splice(0, done.length)
    for (const { step, value } of done) step.resolve(value)
  }

  /** Nothing of a group was kept since one of its steps failed: each gets a transaction of its own, so that only that one fails. */
  #runAlone(step: QueuedStep): void {
    let value: unknown
    try {
      this.#transaction((now) => {
        value = step.run(now)
      })
    } catch (error) {
      step.reject(lmdbStepError(error, this.folder))
      return
    }
    step.resolve(value)
  }

  #transaction(run: (now: number) => void): void {
    this.#db.transactionSync(() => run(this.#clock.machineMono()), ABORTABLE)
    this.#disarmFlush ??= this.#clock.timer(FLUSH_MS, () => this.#flushLater(), { unref: true })
  }

  #flushLater(): void {
    this.#disarmFlush = undefined
    this.#flushing = this.#flushing.then(() => this.#flush())
  }

  #flush(): Promise<void> {
    return new Promise((resolve) => {
      this.#db.sync((error) => {
        // What could not be written through stays in the page cache and is tried again with the next steps.
        if (error) this.#observer.emit('StateStoreLost', { reason: 'flush', error: lmdbError(error, this.folder) })
        resolve()
      })
      // Readers that were killed would keep old pages from being used again: the file would only grow.
      this.#db.readerCheck()
    })
  }
}

export interface LmdbFileOptions {
  readonly clock: Clock
  readonly observer: Observer
  /** Id of this start of the machine. */
  readonly bootId: string
}

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** `sync` exists and is documented by no type. */
interface Database extends RootDatabase<unknown, Buffer> {
  sync(done: (error: Error | null | undefined) => void): void
}

interface QueuedStep {
  readonly run: (now: number) => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

/** Format of what lies in the file; a later one is STATE_BROKEN to an older version. */
export const FORMAT = 1
/** TransactionFlags.ABORTABLE | SYNCHRONOUS_COMMIT: undone when a step throws, visible to all on return. */
const ABORTABLE: number = 3
const FLUSH_MS = 1_000
/** How long one group may hold the thread, and the write lock that other processes wait for. */
const GROUP_MS = 4
const GROUP_STEPS = 500

interface FileRecord {
  readonly format: number
  readonly bootId: string
  readonly boot: number
  readonly openedAt: number
}

/** Finds out, in one step, whether the file was last used under this boot; the first process under another one starts a new count. */
function readBoot(db: Database, folder: string, options: LmdbFileOptions): BootTime {
  let restarted = false
  const record = db.transactionSync((): FileRecord => {
    const found = db.get(FILE_KEY) as FileRecord | undefined
    if (found === undefined && db.getKeysCount({ limit: 1 }) > 0) throw brokenState(folder, 'it holds something else')
    if (found !== undefined && found.format !== FORMAT) {
      throw brokenState(folder, `its format is ${found.format}, this version reads ${FORMAT}`)
    }
    const now = options.clock.machineMono()
    // The second condition is for systems that do not tell a boot id: a clock that went back has been started anew.
    if (found !== undefined && found.bootId === options.bootId && found.openedAt <= now) return found
    restarted = found !== undefined
    const next = { format: FORMAT, bootId: options.bootId, boot: (found?.boot ?? 0) + 1, openedAt: now }
    db.putSync(FILE_KEY, next)
    return next
  }, ABORTABLE)
  if (restarted) options.observer.emit('StateWaitsRestarted', { folder })
  return new BootTime(record.boot, record.openedAt)
}

function closedError(folder: string): MillraceError {
  return new MillraceError('STATE_UNAVAILABLE', `the state store in ${folder} was asked for something after it was closed`)
}
