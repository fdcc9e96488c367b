import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const PACKAGE = '@toondepauw/node-zstd'

/** Shape: true where MILLRACE_BENCH_ZSTD names a folder that has the codec; kafkajs has none of its own. */
export function hasZstdCodec(folder: string | undefined): folder is string {
  return folder !== undefined && existsSync(join(folder, 'node_modules', PACKAGE))
}

/** Lets the kafkajs of this process write and read zstd. It is given, since the patched one must be loaded by its owner. */
export function registerZstdCodec(folder: string, { CompressionCodecs, CompressionTypes }: typeof import('kafkajs')): void {
  const { Decoder, Encoder } = createRequire(join(folder, 'package.json'))(PACKAGE) as {
    readonly Encoder: new (level: number) => { encodeSync(bytes: Buffer): Buffer }
    readonly Decoder: new () => { decodeSync(bytes: Buffer): Buffer }
  }
  const encoder = new Encoder(3)
  const decoder = new Decoder()
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (message: { readonly buffer: Buffer }) => encoder.encodeSync(message.buffer),
    decompress: async (bytes: Buffer) => decoder.decodeSync(bytes),
  })
}
