import { setImmediate as nextTurn } from 'node:timers/promises'
import { Decompress } from 'fzstd'
import type { Unpacked } from './unpacked.ts'

/**
 * zstd for versions of Node.js that have none: read, not written. A sixth as fast as Node's own, so sites are not asked for it, but what
 * they send all the same, and pages that another machine packed, can be read.
 */

/** Wire bytes between two looks at the clock of the others: a few of them may stand for much. */
const PIECE_BYTES = 4_096
/** What is made before others have a turn: some milliseconds' worth. */
const TURN_BYTES = 524_288

/** Shape: total, at most `maxBytes` are kept; other work has its turn in between. */
export async function unzstd(bytes: Uint8Array, maxBytes: number): Promise<Unpacked> {
  const decoding = new Decoding(maxBytes)
  let madeBefore = 0
  for (const piece of pieces(bytes)) {
    if (!decoding.take(piece.chunk, piece.isLast)) break
    if (decoding.length - madeBefore < TURN_BYTES) continue
    madeBefore = decoding.length
    await nextTurn()
  }
  return decoding.result()
}

/** The same at once, for threads that have nothing else to do. */
export function unzstdSync(bytes: Uint8Array, maxBytes: number): Unpacked {
  const decoding = new Decoding(maxBytes)
  for (const piece of pieces(bytes)) if (!decoding.take(piece.chunk, piece.isLast)) break
  return decoding.result()
}

function* pieces(bytes: Uint8Array): Generator<{ readonly chunk: Uint8Array; readonly isLast: boolean }> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    // A copy: the decoder keeps what it can't use yet, and works on it in place.
    yield { chunk: bytes.slice(at, at + PIECE_BYTES), isLast: at + PIECE_BYTES >= bytes.length }
  }
}

class TooMuch extends Error {}

/** Of the library: the input ends too early. */
const UNEXPECTED_END = 5

class Decoding {
  length = 0
  #problem: Unpacked['problem'] = null
  readonly #maxBytes: number
  readonly #made: Buffer[] = []
  readonly #decoder: Decompress

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#decoder = new Decompress((data) => {
      this.#made.push(Buffer.from(data))
      this.length += data.length
      if (this.length > maxBytes) throw new TooMuch()
    })
  }

  /** False: it is over. */
  take(chunk: Uint8Array, isLast: boolean): boolean {
    try {
      this.#decoder.push(chunk, isLast)
      return true
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      this.#problem = error instanceof TooMuch ? 'size' : code === UNEXPECTED_END ? 'cut' : 'broken'
      return false
    }
  }

  result(): Unpacked {
    return { bytes: Buffer.concat(this.#made, Math.min(this.length, this.#maxBytes)), problem: this.#problem }
  }
}
