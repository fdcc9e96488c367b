import { statSync } from 'node:fs'
import { join } from 'node:path'
import { ABORT, open, type RootDatabase } from 'lmdb'
import { TransactionNumber } from './file-head.ts'

/**
 * The opened LMDB environment of a folder, whose transactions never begin from an old state.
 *
 * When lmdb 3.5.6 opens a file that others write, it stores the number of the last transaction, as it read it a moment before, into the
 * memory that all processes share (`mdb_env_open2`, without the write lock). What was committed in that moment is forgotten: the next
 * transaction of any process would begin from the state before, undo what the others did and use pages again that hold data. So each
 * transaction compares its own number with the heads of the file, which it can trust while it holds the write lock. Where they differ it
 * writes nothing, and the file is opened anew, which sets the shared number right.
 *
 * In one process there is one of a file, for all who open it: lmdb shares its environment among them, and while one of them holds that,
 * opening anew gives the same again.
 */
export class LmdbEnvironment {
  readonly #folder: string
  readonly #last: TransactionNumber
  readonly #flushes = new Set<Promise<void>>()
  #opened: Database | undefined
  #holders = 1

  /** Each `open` has its `close`. Errors: of LMDB and the system, STATE_BROKEN. */
  static open(folder: string): LmdbEnvironment {
    const known = shared.get(fileId(folder) ?? '')
    if (known !== undefined) {
      known.#holders += 1
      return known
    }
    const environment = new LmdbEnvironment(folder)
    shared.set(fileId(folder) ?? folder, environment)
    return environment
  }

  private constructor(folder: string) {
    this.#folder = folder
    this.#opened = openDatabase(folder)
    try {
      this.#last = new TransactionNumber(join(folder, 'data.mdb'))
    } catch (error) {
      this.#closeNow()
      throw error
    }
  }

  /**
   * Runs `run` in a transaction, which is undone whole when it throws. Undefined: it would have begun from an old state, nothing was run;
   * {@link reopen}, then try again.
   */
  transaction<T>(run: () => T): { readonly value: T } | undefined {
    let result: { readonly value: T } | undefined
    const db = this.#db
    db.transactionSync(() => {
      if (db.getWriteTxnId() !== this.#last.newest() + 1) return ABORT
      result = { value: run() }
      return undefined
    }, ABORTABLE)
    return result
  }

  /** From here on transactions begin from the newest state. Where it fails, the next use tries again. */
  async reopen(): Promise<void> {
    await this.#flushed()
    this.#closeNow()
    this.#opened = openDatabase(this.#folder)
  }

  /**
   * The next reads outside of a transaction see the latest state of any process; where the shared number is wrong, one transaction less,
   * until the next transaction of any process mends it.
   */
  refresh(): void {
    this.#db.resetReadTxn()
  }

  get(key: Buffer): unknown {
    return this.#db.get(key)
  }

  put(key: Buffer, value: unknown): void {
    this.#db.putSync(key, value)
  }

  remove(key: Buffer): void {
    this.#db.removeSync(key)
  }

  /** Entries from `start` on, up to before `end`, in order of the key. */
  range(start: Buffer, end: Buffer, limit: number): Iterable<{ readonly key: Buffer; readonly value: unknown }> {
    return this.#db.getRange({ start, end, limit })
  }

  isEmpty(): boolean {
    return this.#db.getKeysCount({ limit: 1 }) === 0
  }

  /** Writes all through to the disk, on another thread. Errors: of the system. */
  flush(): Promise<void> {
    const flush = new Promise<void>((resolve, reject) => {
      this.#db.sync((error) => (error ? reject(error) : resolve()))
    })
    const done = (): void => void this.#flushes.delete(flush)
    this.#flushes.add(flush)
    flush.then(done, done)
    return flush
  }

  /** Readers that were killed would keep old pages from being used again: the file would only grow. */
  forgetDeadReaders(): void {
    this.#db.readerCheck()
  }

  /** The last who holds it lets the file go. */
  async close(): Promise<void> {
    this.#holders -= 1
    if (this.#holders > 0) return
    for (const [id, environment] of shared) if (environment === this) shared.delete(id)
    await this.#flushed()
    this.#last.close()
    await this.#opened?.close()
    this.#opened = undefined
  }

  /** On another thread a flush works on what must not be closed meanwhile, whoever has asked for it. */
  async #flushed(): Promise<void> {
    while (this.#flushes.size > 0) await Promise.allSettled(this.#flushes)
  }

  get #db(): Database {
    this.#opened ??= openDatabase(this.#folder)
    return this.#opened
  }

  /** Nothing is asynchronous here, so that closing is over on return. */
  #closeNow(): void {
    // Its own failure to close would add nothing: what matters is that opening works.
    this.#opened?.close().catch(() => undefined)
    this.#opened = undefined
  }
}

/** By the file, as lmdb does it: a folder may be reached by several paths. */
const shared = new Map<string, LmdbEnvironment>()

/** Undefined where there is no file yet. */
function fileId(folder: string): string | undefined {
  const found = statSync(join(folder, 'data.mdb'), { bigint: true, throwIfNoEntry: false })
  return found === undefined ? undefined : `${found.dev}:${found.ino}`
}

/** What exists and is documented by no type. */
interface Database extends RootDatabase<unknown, Buffer> {
  sync(done: (error: Error | null | undefined) => void): void
  getWriteTxnId(): number
}

/** TransactionFlags.ABORTABLE | SYNCHRONOUS_COMMIT: undone when it throws, visible to all on return. */
const ABORTABLE: number = 3

/**
 * Address space, of which only what is used takes memory. A map that is too small is made anew with twice the size, and lmdb keeps the
 * former ones: the same pages would count for the process several times (2.4 times at 66 MB).
 */
const MAP_BYTES = 4 * 1024 ** 3

function openDatabase(folder: string): Database {
  // Not `overlappingSync`: its commits wait for the disk on this thread, some milliseconds each.
  return open({
    path: folder,
    encoding: 'json',
    keyEncoding: 'binary',
    noSync: true,
    overlappingSync: false,
    mapSize: MAP_BYTES,
  }) as Database
}
