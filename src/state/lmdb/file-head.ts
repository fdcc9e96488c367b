import { closeSync, openSync, readSync } from 'node:fs'
import { brokenState } from './broken-state.ts'

/** One of the two heads at the beginning of an LMDB file; the one with the greater `transaction` is the newer. */
export interface FileHead {
  readonly pageBytes: number
  readonly lastPage: number
  /** Number of the transaction that wrote it; they count up by one. */
  readonly transaction: number
}

/** Errors: STATE_BROKEN, saying what was found. */
export function readHeads(file: number, path: string): readonly [FileHead, FileHead] {
  const first = readHead(file, 0, path)
  return [first, readHead(file, first.pageBytes, path)]
}

/** Tells the number of the last transaction of a file, again and again. */
export class TransactionNumber {
  /** A descriptor on the data file: closing one on the lock file would take the locks of LMDB along. */
  readonly #file: number
  readonly #pageBytes: number
  readonly #bytes = Buffer.alloc(8)

  /** Errors: of the system, STATE_BROKEN. */
  constructor(path: string) {
    this.#file = openSync(path, 'r')
    this.#pageBytes = readHead(this.#file, 0, path).pageBytes
  }

  /** Exact for who holds the write lock; for others it may be old as soon as it is read. */
  newest(): number {
    return Math.max(this.#read(TRANSACTION_AT), this.#read(this.#pageBytes + TRANSACTION_AT))
  }

  close(): void {
    closeSync(this.#file)
  }

  #read(offset: number): number {
    readSync(this.#file, this.#bytes, 0, 8, offset)
    return Number(this.#bytes.readBigUInt64LE(0))
  }
}

const MAGIC = 0xbeefc0de
const DATA_VERSION = 2
const HEAD_BYTES = 168
const TRANSACTION_AT = 152

function readHead(file: number, offset: number, path: string): FileHead {
  const head = Buffer.alloc(HEAD_BYTES)
  const read = readSync(file, head, 0, HEAD_BYTES, offset)
  if (read < HEAD_BYTES) throw brokenState(path, 'it ends within its head')
  if (head.readUInt32LE(24) !== MAGIC) throw brokenState(path, 'it is no LMDB file')
  const version = head.readUInt32LE(28)
  if (version !== DATA_VERSION) throw brokenState(path, `its format is ${version}, this version reads ${DATA_VERSION}`)
  const pageBytes = head.readUInt32LE(48)
  if (pageBytes < 512 || pageBytes > 65_536) throw brokenState(path, `its pages have ${pageBytes} bytes`)
  return { pageBytes, lastPage: Number(head.readBigUInt64LE(144)), transaction: Number(head.readBigUInt64LE(TRANSACTION_AT)) }
}
