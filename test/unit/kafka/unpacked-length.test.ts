import { describe, expect, it } from 'vitest'
import { MOST_UNPACKED, withinBound, zstdWithout } from '../../../src/kafka/codecs.ts'
import { lz4Length, snappyLength } from '../../../src/kafka/unpacked-length.ts'

const uint32 = (value: number, order: 'BE' | 'LE'): Buffer => {
  const bytes = Buffer.alloc(4)
  if (order === 'BE') bytes.writeUInt32BE(value)
  else bytes.writeUInt32LE(value)
  return bytes
}

/** Zeros as snappy packs them: the length, one byte as it is, copies of 64 of it. */
function snappyZeros(length: number): Buffer {
  const varint: number[] = []
  for (let rest = length; ; rest = Math.floor(rest / 128)) {
    varint.push((rest % 128) | (rest >= 128 ? 0x80 : 0))
    if (rest < 128) break
  }
  const copies = Buffer.alloc(Math.ceil((length - 1) / 64) * 3, Buffer.from([0xfe, 0x01, 0x00]))
  const last = (length - 1) % 64
  if (last > 0) copies[copies.length - 3] = ((last - 1) << 2) | 2
  return Buffer.concat([Buffer.from([...varint, 0x00, 0x00]), copies])
}

const xerial = (...pieces: Buffer[]): Buffer =>
  Buffer.concat([
    Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
    ...pieces.flatMap((piece) => [uint32(piece.length, 'BE'), piece]),
  ])

/** One byte as it is, the others a copy of it: 255 for each byte of the length; then five as they are, as a block has to end. */
function lz4Zeros(length: number): Buffer {
  const more = length - 1 - 5 - 4 - 15
  const lengths = Buffer.alloc(Math.floor(more / 255) + 1, 255)
  lengths[lengths.length - 1] = more % 255
  return Buffer.concat([Buffer.from([0x1f, 0x00, 0x01, 0x00]), lengths, Buffer.from([0x50, 0, 0, 0, 0, 0])])
}

/** Blocks of 4 MiB at most, each with its checksum, and one of all. */
const lz4 = (blocks: readonly Buffer[]): Buffer =>
  Buffer.concat([
    uint32(0x184d2204, 'LE'),
    Buffer.from([0x74, 0x70, 0x00]),
    ...blocks.flatMap((block) => [uint32(block.length, 'LE'), block, Buffer.alloc(4)]),
    Buffer.alloc(8),
  ])

const MIB = 1_048_576

describe('the length of what snappy unpacks to', () => {
  it('is what stands before each piece', () => {
    expect(snappyLength(snappyZeros(1_000))).toBe(1_000)
    expect(snappyLength(xerial(snappyZeros(32_768), snappyZeros(5)))).toBe(32_773)
    expect(snappyLength(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f]))).toBe(2 ** 32 - 1)
  })

  it('is that of what can be read of damaged ones', () => {
    expect([Buffer.alloc(0), Buffer.from([0x80]), xerial(), xerial(Buffer.alloc(0))].map(snappyLength)).toEqual([0, 0, 0, 0])
    expect(snappyLength(xerial(snappyZeros(70_000)).subarray(0, 30))).toBe(70_000)
  })
})

describe('the length of what lz4 unpacks to', () => {
  it('is at most the largest block for each that is packed, over all frames', () => {
    const block = lz4Zeros(MIB)
    expect(block.length).toBeLessThan(MIB / 250)
    expect(lz4Length(lz4([block, block]))).toBe(8 * MIB)
    expect(lz4Length(Buffer.concat([lz4([block]), uint32(0x184d2a53, 'LE'), uint32(2, 'LE'), Buffer.alloc(2), lz4([block])]))).toBe(8 * MIB)
    // As it is, and no longer than it is.
    const plain = Buffer.concat([uint32(0x184d2204, 'LE'), Buffer.from([0x40, 0x40, 0]), uint32(0x8000_0003, 'LE'), Buffer.from('abc')])
    expect(lz4Length(plain)).toBe(3)
  })

  it('is nothing for what is no lz4', () => {
    expect([Buffer.alloc(0), Buffer.from('not packed at all'), lz4([]).subarray(0, 7)].map(lz4Length)).toEqual([0, 0, 0])
  })
})

describe('a codec behind the bound of a batch', () => {
  /** A package would take the memory by now. */
  const unpacks = { compress: async () => Buffer.alloc(0), decompress: async (packed: Buffer) => packed }
  const bombs: [string, Buffer, (packed: Buffer) => number][] = [
    ['snappy in one piece', snappyZeros(MOST_UNPACKED + 1), snappyLength],
    ['snappy that says more than it holds', Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]), snappyLength],
    ['snappy in pieces', xerial(...Array.from({ length: 65 }, () => snappyZeros(MIB))), snappyLength],
    ['lz4', lz4(Array.from({ length: 17 }, () => lz4Zeros(4 * MIB))), lz4Length],
    ['lz4 of blocks of one byte', lz4(Array.from({ length: 17 }, () => Buffer.from([0x10, 0]))), lz4Length],
  ]

  it.each(bombs)('is not asked to unpack a bomb: %s', async (_, bomb, lengthOf) => {
    await expect(withinBound(unpacks, lengthOf).decompress(bomb)).rejects.toMatchObject({ code: 'ERR_BUFFER_TOO_LARGE' })
  })

  it('unpacks what is within it', async () => {
    for (const [packed, lengthOf] of [
      [snappyZeros(MOST_UNPACKED), snappyLength],
      [lz4(Array.from({ length: 16 }, () => lz4Zeros(4 * MIB))), lz4Length],
    ] as const)
      expect(await withinBound(unpacks, lengthOf).decompress(packed)).toBe(packed)
  })
})

describe('zstd on a Node.js that has none', () => {
  /** As the package exports it; what it unpacks has no bound. */
  const loaded = () => () => ({
    compress: async ({ buffer }: { buffer: Buffer }) => Buffer.concat([Buffer.from('packed '), buffer]),
    decompress: async () => Buffer.from('unpacked by the package'),
  })

  it('is written by a package, and read within the bound without it', async () => {
    const codec = zstdWithout(loaded)
    expect(String(await codec.compress({ buffer: Buffer.from('batch') }))).toBe('packed batch')
    expect(String(await codec.decompress(zstdFrame('batch')))).toBe('batch')
    await expect(codec.decompress(Buffer.from('no zstd'))).rejects.toThrow('a batch of messages is no zstd')
  })

  it('can not be written where no package is installed', async () => {
    const codec = zstdWithout(undefined)
    await expect(codec.compress({ buffer: Buffer.from('batch') })).rejects.toThrow('this Node.js has no zstd to write with')
    expect(String(await codec.decompress(zstdFrame('batch')))).toBe('batch')
  })
})

/** One block as it is. Source: RFC 8878, section 3.1.1. */
function zstdFrame(text: string): Buffer {
  const block = Buffer.alloc(3)
  block.writeUIntLE((text.length << 3) | 1, 0, 3)
  return Buffer.concat([uint32(0xfd2fb528, 'LE'), Buffer.from([0x20, text.length]), block, Buffer.from(text)])
}
