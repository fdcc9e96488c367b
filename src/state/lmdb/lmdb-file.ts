import { statSync } from 'node:fs'
import { join } from 'node:path'
import { backoffMs } from '../../kernel/backoff.ts'
import type { Clock } from '../../kernel/clock.ts'
import { MillraceError } from '../../kernel/errors.ts'
import type { Observer } from '../../kernel/observe.ts'
import { makeFolder } from '../../machine/make-folder.ts'
import { brokenState } from './broken-state.ts'
import { LmdbEnvironment } from './environment.ts'
import { checkFile } from './file-check.ts'
import { FileTime, type FileTimeRecord, isSameBoot, timeAfterBoot } from './file-time.ts'
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
  readonly time: FileTime
  readonly #environment: LmdbEnvironment
  readonly #clock: Clock
  readonly #observer: Observer
  #queue: QueuedStep[] = []
  #scheduled = false
  #closed: Promise<void> | undefined
  #disarmFlush: (() => void) | undefined
  #flushing: Promise<void> = Promise.resolve()
  #renewing: Promise<void> | undefined
  /** How often in a row a transaction would have begun from an old state. */
  #staleInARow = 0

  private constructor(folder: string, environment: LmdbEnvironment, time: FileTime, options: LmdbFileOptions) {
    this.folder = folder
    this.#environment = environment
    this.time = time
    this.#clock = options.clock
    this.#observer = options.observer
  }

  /** Errors: STATE_BROKEN (not our file, damaged), DISK_FULL, CONFIG_UNREADABLE (no permission). */
  static async open(folder: string, options: LmdbFileOptions): Promise<LmdbFile> {
    let environment: LmdbEnvironment | undefined
    try {
      makeFolder(folder)
      checkFile(folder)
      environment = LmdbEnvironment.open(folder)
      const time = await readTime(environment, folder, options)
      return new LmdbFile(folder, environment, time, options)
    } catch (error) {
      // What is half open must not keep the file mapped; its own failure to close adds nothing to the reason.
      environment?.close().catch(() => undefined)
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

  /** On the clock of the file (file-time.ts). */
  #now(): number {
    return this.time.now(this.#clock.machineMono())
  }

  /** Epoch ms, for what is kept for days: it goes on while the machine is down. */
  now(): number {
    return this.#clock.now()
  }

  /** Reads one consistent state, the latest of any process. */
  read<T>(read: (now: number) => T): T {
    if (this.#closed !== undefined) throw closedError(this.folder)
    try {
      this.#environment.refresh()
      return read(this.#now())
    } catch (error) {
      throw lmdbError(error, this.folder)
    }
  }

  get<T>(key: Buffer): T | undefined {
    return this.#environment.get(key) as T | undefined
  }

  put(key: Buffer, value: Json): void {
    this.#environment.put(key, value)
  }

  remove(key: Buffer): void {
    this.#environment.remove(key)
  }

  /** Entries whose key begins with `prefix`, in order of the key, from behind `after` on. */
  entries<T>(prefix: Buffer, limit: number, after?: Buffer): { readonly key: Buffer; readonly value: T }[] {
    const start = after === undefined ? prefix : Buffer.concat([after, Buffer.alloc(1)])
    const range = this.#environment.range(start, endOf(prefix), limit)
    return Array.from(range, ({ key, value }) => ({ key, value: value as T }))
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
    while (this.#queue.length > 0) {
      await this.#renewing
      this.#runGroup()
      await this.#renewing
    }
    // Not sooner: the steps that waited may have armed it.
    this.#disarmFlush?.()
    await this.#flushing
    await this.#flush()
    await this.#environment.close()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (this.#queue.length > 0 && this.#renewing === undefined) this.#runGroup()
      if (this.#queue.length > 0 && this.#renewing === undefined) this.#schedule()
    })
  }

  /** One transaction for the steps that wait, as many as fit into the time that the thread may be held. */
  #runGroup(): void {
    const done: { step: QueuedStep; value: unknown }[] = []
    const endBy = this.#clock.mono() + GROUP_MS
    try {
      const run = this.#transaction((now) => {
        for (const step of this.#queue) {
          done.push({ step, value: step.run(now) })
          if (done.length >= GROUP_STEPS || this.#clock.mono() >= endBy) break
        }
      })
      if (run === undefined) {
        this.#renew()
        return
      }
    } catch (error) {
      const failed = this.#queue.splice(0, Math.max(1, done.length + 1))
      if (failed.length === 1) failed[0]?.reject(lmdbStepError(error, this.folder))
      else this.#runEachAlone(failed)
      return
    }
    this.#queue.splice(0, done.length)
    for (const { step, value } of done) step.resolve(value)
  }

  /** Nothing of a group was kept since one of its steps failed: each gets a transaction of its own, so that only that one fails. */
  #runEachAlone(steps: readonly QueuedStep[]): void {
    for (const [index, step] of steps.entries()) {
      try {
        const run = this.#transaction(step.run)
        if (run === undefined) {
          this.#queue.unshift(...steps.slice(index))
          this.#renew()
          return
        }
        step.resolve(run.value)
      } catch (error) {
        step.reject(lmdbStepError(error, this.folder))
      }
    }
  }

  /** Undefined: nothing was run, since the environment must be renewed first. */
  #transaction<T>(run: (now: number) => T): { readonly value: T } | undefined {
    const result = this.#environment.transaction(() => run(this.#now()))
    if (result === undefined) return undefined
    this.#staleInARow = 0
    this.#disarmFlush ??= this.#clock.timer(FLUSH_MS, () => this.#flushLater(), { unref: true })
    return result
  }

  /** Opens the environment anew, then goes on with the steps that wait. */
  #renew(): void {
    this.#staleInARow += 1
    this.#renewing = this.#reopen()
      .catch((error: unknown) => {
        this.#staleInARow = 0
        for (const step of this.#queue.splice(0)) step.reject(lmdbStepError(error, this.folder))
      })
      .then(() => {
        this.#renewing = undefined
        if (this.#queue.length > 0) this.#schedule()
      })
  }

  async #reopen(): Promise<void> {
    if (this.#staleInARow > STALE_LIMIT) throw brokenState(this.folder, STALE)
    await pauseBetween(this.#clock, this.#staleInARow)
    await this.#environment.reopen()
    this.#observer.emit('StateReopened', { folder: this.folder })
  }

  /**
   * How far time has come, for the next start of the machine (file-time.ts). Where the environment must be renewed first, the next flush
   * does it.
   */
  #noteTime(): void {
    this.#environment.transaction(() => this.put(FILE_KEY, { ...this.get<FileRecord>(FILE_KEY), lastAt: this.#now() }))
  }

  #flushLater(): void {
    this.#disarmFlush = undefined
    this.#flushing = this.#flushing.then(() => this.#flush())
  }

  async #flush(): Promise<void> {
    try {
      try {
        this.#noteTime()
      } finally {
        // What a full disk takes no note of is written through all the same.
        await this.#environment.flush()
        this.#environment.forgetDeadReaders()
      }
    } catch (error) {
      // What could not be written through stays in the page cache and is tried again with the next steps.
      this.#observer.emit('StateStoreLost', { reason: 'flush', error: lmdbError(error, this.folder) })
    }
  }
}

export interface LmdbFileOptions {
  readonly clock: Clock
  readonly observer: Observer
  /** Id of this start of the machine. */
  readonly bootId: string
}

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

interface QueuedStep {
  readonly run: (now: number) => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

/** Format of what lies in the file; a later one is STATE_BROKEN to an older version. */
export const FORMAT = 3
/**
 * Read on, but a program that knows no later one may not open the file any more. 1: digests alone for the tasks of crawls; 2: no note of
 * the time.
 */
const FORMATS_BEFORE: readonly number[] = [1, 2]
const FLUSH_MS = 1_000
/** How long one group may hold the thread, and the write lock that other processes wait for. */
const GROUP_MS = 4
const GROUP_STEPS = 500
/** Opening anew mends it, unless again another process opens the file in the middle of a commit: ten times in a row are no chance. */
const STALE_LIMIT = 10
/** Half a second in all. */
const STALE_PAUSE = { firstMs: 2, maxMs: 100 } as const
const STALE = 'the numbers of its transactions do not count up'

interface FileRecord extends FileTimeRecord {
  readonly format: number
}

/** Finds out, in one step, whether the file was last used under this boot; the first process under another one lets its clock go on. */
async function readTime(environment: LmdbEnvironment, folder: string, options: LmdbFileOptions): Promise<FileTime> {
  let restarted = false
  const look = (): FileRecord => {
    const found = environment.get(FILE_KEY) as FileRecord | undefined
    if (found === undefined && !environment.isEmpty()) throw brokenState(folder, 'it holds something else')
    if (found !== undefined && found.format !== FORMAT && !FORMATS_BEFORE.includes(found.format)) {
      throw brokenState(folder, `its format is ${found.format}, this version reads ${FORMAT}`)
    }
    const machineMono = options.clock.machineMono()
    const goesOn = found !== undefined && isSameBoot(found, options.bootId, machineMono)
    restarted = found !== undefined && !goesOn
    const record = { ...(goesOn ? found : timeAfterBoot(found, options.bootId, machineMono)), format: FORMAT }
    environment.put(FILE_KEY, record)
    return record
  }
  let looked = environment.transaction(look)
  for (let stale = 1; looked === undefined; stale += 1) {
    if (stale > STALE_LIMIT) throw brokenState(folder, STALE)
    await pauseBetween(options.clock, stale)
    await environment.reopen()
    looked = environment.transaction(look)
  }
  if (restarted) options.observer.emit('StateTimeResumed', { folder })
  return new FileTime(looked.value)
}

/** Before the first opening anew there is none: mostly that is all it takes. */
async function pauseBetween(clock: Clock, stale: number): Promise<void> {
  if (stale > 1) await clock.sleep(backoffMs(STALE_PAUSE, stale - 1, 1))
}

function closedError(folder: string): MillraceError {
  return new MillraceError('STATE_UNAVAILABLE', `the state store in ${folder} was asked for something after it was closed`)
}
