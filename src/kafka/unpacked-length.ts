/**
 * How long snappy and lz4 would become, by what stands before each piece of them, and without unpacking any: the packages that unpack them
 * take that much memory, whatever a stranger wrote there. What is no such thing counts as nothing; the package
 * refuses it.
 */

/** What Java writes before its pieces: the mark, then two versions. Source: `SnappyOutputStream` of snappy-java ("xerial"). */
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const XERIAL_HEADER = 16

/** Bytes that a message of snappy gives, in one piece or in those of Java. */
export function snappyLength(packed: Buffer): number {
  if (!packed.subarray(0, XERIAL.length).equals(XERIAL)) return declared(packed, 0)
  let length = 0
  for (let at = XERIAL_HEADER; at + 4 <= packed.length; ) {
    const size = packed.readUInt32BE(at)
    length += declared(packed.subarray(0, at + 4 + size), at + 4)
    at += 4 + size
  }
  return length
}

/** A varint of 32 bits. Source: snappy's `format_description.txt`, section 1. */
function declared(packed: Buffer, at: number): number {
  let value = 0
  for (let index = 0; index < 5; index += 1) {
    const byte = packed[at + index]
    if (byte === undefined) return 0
    value += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) break
  }
  return value
}

/** Source: LZ4 Frame Format Description 1.6. */
const FRAME = 0x184d2204
const SKIPPABLE = 0x184d2a50
const AS_IT_IS = 0x8000_0000

/**
 * Bytes that frames of lz4 give at most. A packed block counts as the largest of its frame: so much is taken for it, and writers fill all
 * but the last.
 */
export function lz4Length(packed: Buffer): number {
  let length = 0
  for (let at = 0; at + 8 <= packed.length; ) {
    const mark = packed.readUInt32LE(at)
    if ((mark & 0xffff_fff0) >>> 0 === SKIPPABLE) {
      at += 8 + packed.readUInt32LE(at + 4)
      continue
    }
    if (mark !== FRAME) break
    const frame = frameOf(packed, at)
    at = frame.at
    while (at + 4 <= packed.length) {
      const size = packed.readUInt32LE(at)
      at += 4
      if (size === 0) break
      const isPacked = size < AS_IT_IS
      const stored = isPacked ? size : size - AS_IT_IS
      length += isPacked ? frame.most : Math.min(stored, packed.length)
      at += stored + frame.checksum
    }
    at += frame.end
  }
  return length
}

/** Shape: where its blocks begin, the most of a block, and what stands behind a block and behind the last. */
function frameOf(
  packed: Buffer,
  at: number,
): { readonly at: number; readonly most: number; readonly checksum: number; readonly end: number } {
  const flags = packed.readUInt8(at + 4)
  const most = 2 ** (8 + 2 * ((packed.readUInt8(at + 5) >> 4) & 7))
  const header = 7 + (flags & 0x08 ? 8 : 0) + (flags & 0x01 ? 4 : 0)
  return { at: at + header, most, checksum: flags & 0x10 ? 4 : 0, end: flags & 0x04 ? 4 : 0 }
}
