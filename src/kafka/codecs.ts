import { createRequire } from 'node:module'
import * as zlib from 'node:zlib'
import { systemClock } from '../kernel/clock.ts'
import { unzstd } from '../message/zstd-decoder.ts'
import { lz4Length, snappyLength } from './unpacked-length.ts'

type Kafkajs = typeof import('kafkajs')
type Codec = { compress(encoder: { buffer: Buffer }): Promise<Buffer>; decompress(buffer: Buffer): Promise<Buffer> }

/** Packages made for kafkajs, used where the operator has installed them; each exports its codec in a way of its own. */
const OPTIONAL_PACKAGES = {
  Snappy: { name: 'kafkajs-snappy', make: (loaded: unknown) => (loaded as () => Codec)(), lengthOf: snappyLength },
  LZ4: { name: 'kafkajs-lz4', make: (loaded: unknown) => new (loaded as new () => { codec: () => Codec })().codec(), lengthOf: lz4Length },
} as const
const ZSTD_PACKAGE = '@kafkajs/zstd'

/**
 * Makes codecs known to kafkajs: gzip with a bound, which its own has not; zstd, to be read on every Node, and written where Node has it
 * or a package; others where a package for kafkajs is installed, behind the same bound (lz4 makes 255 bytes of one).
 * A codec that stays unknown ends the consumer that meets it; topics that foreigners write are therefore repacked by the broker.
 */
export function registerCodecs(kafkajs: Kafkajs): void {
  const codecs = kafkajs.CompressionCodecs as Record<number, () => unknown>
  const zstd = nodeZstd() ?? zstdWithout(optionalPackage(ZSTD_PACKAGE))
  codecs[kafkajs.CompressionTypes.GZIP] = () => GZIP
  codecs[kafkajs.CompressionTypes.ZSTD] = () => zstd
  for (const type of ['Snappy', 'LZ4'] as const) {
    const { name, make, lengthOf } = OPTIONAL_PACKAGES[type]
    const loaded = optionalPackage(name)
    if (loaded === undefined) continue
    const codec = withinBound(make(loaded), lengthOf)
    codecs[kafkajs.CompressionTypes[type]] = () => codec
  }
}

/** Of a batch, in bytes; what would give more is a bomb and no batch of messages. */
export const MOST_UNPACKED = 67_108_864

/** The same codec, which is not asked to unpack what would give more than a batch may. Errors: the code of zlib for that. */
export function withinBound(codec: Codec, lengthOf: (packed: Buffer) => number): Codec {
  return {
    compress: (encoder) => codec.compress(encoder),
    async decompress(buffer) {
      const length = lengthOf(buffer)
      if (length <= MOST_UNPACKED) return codec.decompress(buffer)
      throw Object.assign(new RangeError(`${length} bytes when unpacked`), { code: 'ERR_BUFFER_TOO_LARGE' })
    },
  }
}

/** Unpacked in one piece where that is no larger; put together from the usual 16 KiB it takes half as long again. */
const MAX_PIECE_BYTES = 4_194_304
/** Unpacked at once, about a millisecond; to hand that little to another thread and back takes half as much CPU again. */
const MAX_AT_ONCE_BYTES = 524_288
/**
 * And packed so many, between two turns of the event loop. A stranger decides what a batch says of its length, and bytes that unpack to
 * nothing take most: these some 15 ms.
 */
const MAX_PACKED_AT_ONCE = 65_536

type ZlibCall = (input: Buffer, options: zlib.ZlibOptions, callback: (error: Error | null, output: Buffer) => void) => void

function promised(call: ZlibCall, input: Buffer, options: zlib.ZlibOptions = {}): Promise<Buffer> {
  return new Promise((resolve, reject) => call(input, options, (error, output) => (error === null ? resolve(output) : reject(error))))
}

let packedInTurn = 0

const GZIP: Codec = {
  compress: ({ buffer }) => promised(zlib.gzip, buffer),
  async decompress(buffer) {
    // The last four bytes say how long it will be, if they can be trusted; the piece is only where it begins.
    const said = buffer.length < 4 ? 0 : buffer.readUInt32LE(buffer.length - 4)
    if (said <= MAX_AT_ONCE_BYTES && buffer.length <= MAX_PACKED_AT_ONCE) {
      packedInTurn += buffer.length
      if (packedInTurn > MAX_PACKED_AT_ONCE) {
        packedInTurn = buffer.length
        await systemClock.nextTurn()
      }
      const atOnce = gunzipWithin(buffer, said)
      if (atOnce !== undefined) return atOnce
    }
    return promised(zlib.gunzip, buffer, { maxOutputLength: MOST_UNPACKED, chunkSize: Math.min(MAX_PIECE_BYTES, 1_024 + said) })
  },
}

/** Shape: undefined where it gives more than it says: several members in a row, or a lie. Errors: those of zlib where it is no gzip. */
function gunzipWithin(packed: Buffer, said: number): Buffer | undefined {
  try {
    return zlib.gunzipSync(packed, { maxOutputLength: Math.max(1, said), chunkSize: 1_024 + said })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined
    throw error
  }
}

/** Node has zstd since 22.15. */
function nodeZstd(): Codec | undefined {
  const { zstdCompress, zstdDecompress } = zlib as unknown as { zstdCompress?: ZlibCall; zstdDecompress?: ZlibCall }
  if (zstdCompress === undefined || zstdDecompress === undefined) return undefined
  return {
    compress: ({ buffer }) => promised(zstdCompress, buffer),
    decompress: (buffer) => promised(zstdDecompress, buffer, { maxOutputLength: MOST_UNPACKED }),
  }
}

/** Of a Node that has none. A package, where there is one, only writes: what it would unpack has no bound. */
export function zstdWithout(loaded: unknown): Codec {
  const writer = loaded === undefined ? undefined : (loaded as () => () => Codec)()()
  return {
    compress: (encoder) => writer?.compress(encoder) ?? Promise.reject(new Error('this Node.js has no zstd to write with')),
    async decompress(buffer) {
      const { bytes, problem } = await unzstd(buffer, MOST_UNPACKED)
      if (problem !== null) throw new Error(`a batch of messages is no zstd (${problem})`)
      return bytes
    },
  }
}

function optionalPackage(name: string): unknown {
  const require = createRequire(import.meta.url)
  try {
    require.resolve(name)
  } catch {
    // Not installed, which is the usual case.
    return undefined
  }
  return require(name)
}
