import zlib from 'node:zlib'
import { type BodyEncoding, isZlib, zstd } from './body-codec.ts'
import { headerLength } from './gzip-member.ts'

/** Of a body that is damaged so many pieces are decoded one after the other, and the piece with the damage is lost. */
const PIECES = 1_000
const LEAST_PIECE = 16
const ZLIB_HEADER_BYTES = 2

/**
 * What a body gives up to where it is damaged. Node's decoders drop all that the write gave which met the damage, a small page as a
 * whole, so the body is given to them piece by piece. Checksums at the end are not looked at: browsers show a page whose checksum is wrong.
 * Shape: at most `maxBytes`; empty where nothing can be decoded.
 */
export function beforeDamage(bytes: Buffer, encoding: BodyEncoding, maxBytes: number): Promise<Buffer> {
  const opened = open(bytes, encoding)
  if (opened === undefined) return Promise.resolve(Buffer.alloc(0))
  const { decoder, packed } = opened
  return new Promise((resolve) => {
    const pieces: Buffer[] = []
    let length = 0
    const finish = (): void => {
      decoder.destroy()
      resolve(Buffer.concat(pieces, Math.min(length, maxBytes)))
    }
    decoder.on('data', (piece: Buffer) => {
      if (length > maxBytes) return
      pieces.push(piece)
      length += piece.length
      if (length > maxBytes) finish()
    })
    decoder.on('error', finish)
    decoder.on('end', finish)
    const step = Math.max(LEAST_PIECE, Math.ceil(packed.length / PIECES))
    for (let at = 0; at < packed.length; at += step) decoder.write(packed.subarray(at, at + step))
    decoder.end()
  })
}

function open(bytes: Buffer, encoding: BodyEncoding): { readonly decoder: zlib.Gunzip; readonly packed: Buffer } | undefined {
  switch (encoding) {
    case 'identity':
      return undefined
    case 'gzip': {
      const start = headerLength(bytes)
      return start === undefined ? undefined : { decoder: zlib.createInflateRaw(), packed: bytes.subarray(start) }
    }
    case 'deflate':
      return { decoder: zlib.createInflateRaw(), packed: isZlib(bytes) ? bytes.subarray(ZLIB_HEADER_BYTES) : bytes }
    case 'br':
      return { decoder: zlib.createBrotliDecompress(), packed: bytes }
    case 'zstd':
      return zstd.createZstdDecompress === undefined ? undefined : { decoder: zstd.createZstdDecompress(), packed: bytes }
  }
}
