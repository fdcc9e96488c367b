import zlib from 'node:zlib'
import type { Unpacked } from './unpacked.ts'
import { unzstd, unzstdSync } from './zstd-decoder.ts'

/** Codecs in which a body may stand in a message; the names of HTTP content codings. */
export type BodyEncoding = 'identity' | 'gzip' | 'br' | 'zstd' | 'deflate'

export const BODY_ENCODINGS: readonly BodyEncoding[] = ['identity', 'gzip', 'br', 'zstd', 'deflate']

type Decoder = () => zlib.Gunzip

interface ZstdApi {
  readonly createZstdDecompress?: Decoder
  readonly zstdDecompressSync?: (bytes: Uint8Array, options: { maxOutputLength: number }) => Buffer
  readonly zstdCompress?: (bytes: Uint8Array, done: (error: Error | null, packed: Buffer) => void) => void
}

/** zstd came with Node 22.15. Older ones read it by zstd-decoder.ts, pack by brotli, and ask no site for it. */
export const zstd: ZstdApi = zlib as ZstdApi

export function hasZstd(): boolean {
  return zstd.zstdCompress !== undefined && zstd.createZstdDecompress !== undefined && zstd.zstdDecompressSync !== undefined
}

const PIECE_BYTES = 16_384
/** What is decoded at once where it may be; about 3 ms. */
const AT_ONCE_WIRE_BYTES = 262_144
const AT_ONCE_BYTES = 1_048_576

/**
 * Decodes one coding. Shape: total; memory is bounded by `maxBytes` and one piece of the decoder's output. What is small is decoded on
 * this thread, since handing it to another one costs more; the rest, and what is damaged, in Node's thread pool, piece by piece.
 */
export async function unpack(bytes: Uint8Array, encoding: BodyEncoding, maxBytes: number): Promise<Unpacked> {
  if (encoding !== 'identity' && bytes.length <= AT_ONCE_WIRE_BYTES) {
    const whole = unpackSync(bytes, encoding, Math.min(maxBytes, AT_ONCE_BYTES))
    if (whole.problem === null) return whole
  }
  const plan = decoderOf(bytes, encoding)
  if (plan === 'identity') return bounded(bytes, maxBytes)
  if (plan === undefined) return unzstd(bytes, maxBytes)
  return run(plan(), bytes, maxBytes, encoding === 'br' || encoding === 'deflate')
}

/** The same, at once, for threads that have nothing else to do; without the bytes that a damaged input gave. */
export function unpackSync(bytes: Uint8Array, encoding: BodyEncoding, maxBytes: number): Unpacked {
  const options = { maxOutputLength: Math.max(1, maxBytes), chunkSize: outputSize(bytes, encoding, maxBytes) }
  try {
    switch (encoding) {
      case 'identity':
        return bounded(bytes, maxBytes)
      case 'gzip':
        return bounded(zlib.gunzipSync(bytes, options), maxBytes)
      case 'br':
        return informed(zlib.brotliDecompressSync(bytes, { ...options, info: true } as zlib.BrotliOptions), bytes)
      case 'deflate':
        return informed((isZlib(bytes) ? zlib.inflateSync : zlib.inflateRawSync)(bytes, { ...options, info: true }), bytes)
      case 'zstd':
        if (zstd.zstdDecompressSync === undefined) return unzstdSync(bytes, maxBytes)
        return bounded(zstd.zstdDecompressSync(bytes, options), maxBytes)
    }
  } catch (error) {
    return { bytes: Buffer.alloc(0), problem: problemOf(error) }
  }
}

/** Of what zlib gives with `info`, which its types do not know. */
function informed(given: unknown, input: Uint8Array): Unpacked {
  const { buffer, engine } = given as { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } }
  return { bytes: buffer, problem: null, ...(engine.bytesWritten < input.length ? { hasTail: true } : {}) }
}

/** Room for the whole output in one piece, where the input tells how long it is; a wrong guess costs a copy. */
function outputSize(bytes: Uint8Array, encoding: BodyEncoding, maxBytes: number): number {
  const told = encoding === 'gzip' ? toldSize(bytes) : undefined
  if (told === undefined) return PIECE_BYTES
  // One byte more: a buffer that is exactly full makes zlib ask for another one.
  return told <= Math.min(maxBytes, AT_ONCE_BYTES) ? Math.max(64, told + 1) : PIECE_BYTES
}

/** What the end of a gzip stream says of the length of its output; anything at all where that is not one stream. */
function toldSize(bytes: Uint8Array): number | undefined {
  if (bytes.length < 18 || bytes[0] !== 0x1f || bytes[1] !== 0x8b) return undefined
  const [a = 0, b = 0, c = 0, d = 0] = bytes.subarray(-4)
  return a + b * 256 + c * 65_536 + d * 16_777_216
}

/** Text is packed to less than this share of itself by nobody but those who mean harm, and lists. */
const LIKELY_RATIO = 20
/** Of gzip; more can't come out. */
const MAX_GZIP_RATIO = 1_032

/** How much a packed body will have, as far as can be known before it is unpacked. Shape: at most `maxBytes`. */
export function likelyBytes(bytes: Uint8Array, maxBytes: number): number {
  const told = toldSize(bytes) ?? 0
  // One byte more, so that what has just as many is not taken for one that was cut.
  const likely = told <= bytes.length * MAX_GZIP_RATIO ? Math.max(told + 1, bytes.length * LIKELY_RATIO) : bytes.length * LIKELY_RATIO
  return Math.min(maxBytes, likely)
}

function decoderOf(bytes: Uint8Array, encoding: BodyEncoding): Decoder | 'identity' | undefined {
  switch (encoding) {
    case 'identity':
      return 'identity'
    case 'gzip':
      return () => zlib.createGunzip()
    case 'br':
      return () => zlib.createBrotliDecompress()
    case 'deflate':
      return isZlib(bytes) ? () => zlib.createInflate() : () => zlib.createInflateRaw()
    case 'zstd':
      return zstd.createZstdDecompress
  }
}

/** On an input that ends too early the decoders first give what they have, then the error. */
function run(decoder: zlib.Gunzip, input: Uint8Array, maxBytes: number, mayHaveTail: boolean): Promise<Unpacked> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = []
    let length = 0
    const finish = (problem: Unpacked['problem']): void => resolve({ bytes: Buffer.concat(pieces, Math.min(length, maxBytes)), problem })
    decoder.on('data', (piece: Buffer) => {
      pieces.push(piece)
      length += piece.length
      if (length <= maxBytes) return
      decoder.removeAllListeners('data')
      decoder.destroy()
      finish('size')
    })
    decoder.on('end', () => {
      if (mayHaveTail && decoder.bytesWritten < input.length)
        resolve({ bytes: Buffer.concat(pieces, length), problem: null, hasTail: true })
      else finish(null)
    })
    decoder.on('error', (error) => finish(problemOf(error)))
    decoder.end(input)
  })
}

function bounded(bytes: Uint8Array, maxBytes: number): Unpacked {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return buffer.length > maxBytes ? { bytes: buffer.subarray(0, maxBytes), problem: 'size' } : { bytes: buffer, problem: null }
}

/** Z_BUF_ERROR: more input was expected. ERR_BUFFER_TOO_LARGE: more output than `maxOutputLength`. Anything else: damage. */
function problemOf(error: unknown): 'size' | 'cut' | 'broken' {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ERR_BUFFER_TOO_LARGE') return 'size'
  return code === 'Z_BUF_ERROR' ? 'cut' : 'broken'
}

/** Servers send `deflate` both with and without zlib's header (RFC 1950), whose two bytes are a multiple of 31. */
export function isZlib(bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0
}
