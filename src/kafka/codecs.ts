import { createRequire } from 'node:module'
import * as zlib from 'node:zlib'
import { unzstd } from '../message/zstd-decoder.ts'

type Kafkajs = typeof import('kafkajs')
type Codec = { compress(encoder: { buffer: Buffer }): Promise<Buffer>; decompress(buffer: Buffer): Promise<Buffer> }

/** Packages made for kafkajs, used where the operator has installed them; each exports its codec in a way of its own. */
const OPTIONAL_PACKAGES = {
  Snappy: { name: 'kafkajs-snappy', factory: (loaded: unknown) => loaded },
  LZ4: { name: 'kafkajs-lz4', factory: (loaded: unknown) => new (loaded as new () => { codec: unknown })().codec },
  ZSTD: { name: '@kafkajs/zstd', factory: (loaded: unknown) => (loaded as () => unknown)() },
} as const

/**
 * Makes codecs known to kafkajs beyond its own gzip: zstd, to be read on every Node and written where Node has it, others where a
 * package for kafkajs is installed. A codec that stays unknown ends the consumer that meets it; topics that foreigners write are
 * therefore repacked by the broker.
 */
export function registerCodecs(kafkajs: Kafkajs): void {
  const codecs = kafkajs.CompressionCodecs as Record<number, () => unknown>
  const builtIn = nodeZstd()
  if (builtIn !== undefined) codecs[kafkajs.CompressionTypes.ZSTD] = () => builtIn
  for (const type of ['Snappy', 'LZ4', 'ZSTD'] as const) {
    if (type === 'ZSTD' && builtIn !== undefined) continue
    const { name, factory } = OPTIONAL_PACKAGES[type]
    const loaded = optionalPackage(name)
    if (loaded !== undefined) codecs[kafkajs.CompressionTypes[type]] = factory(loaded) as () => unknown
    else if (type === 'ZSTD') codecs[kafkajs.CompressionTypes.ZSTD] = () => ZSTD_READER
  }
}

type ZstdCall = (input: Buffer, callback: (error: Error | null, output: Buffer) => void) => void

/** Node has zstd since 22.15. */
function nodeZstd(): Codec | undefined {
  const { zstdCompress, zstdDecompress } = zlib as unknown as { zstdCompress?: ZstdCall; zstdDecompress?: ZstdCall }
  if (zstdCompress === undefined || zstdDecompress === undefined) return undefined
  const promised = (call: ZstdCall, input: Buffer): Promise<Buffer> =>
    new Promise((resolve, reject) => call(input, (error, output) => (error === null ? resolve(output) : reject(error))))
  return { compress: ({ buffer }) => promised(zstdCompress, buffer), decompress: (buffer) => promised(zstdDecompress, buffer) }
}

/** Of a batch; what would give more is a bomb and no batch of messages. */
const MOST_UNPACKED = 268_435_456

const ZSTD_READER: Codec = {
  compress: () => Promise.reject(new Error('this Node.js has no zstd to write with')),
  async decompress(buffer) {
    const { bytes, problem } = await unzstd(buffer, MOST_UNPACKED)
    if (problem !== null) throw new Error(`a batch of messages is no zstd (${problem})`)
    return bytes
  },
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
