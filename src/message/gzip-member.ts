import zlib from 'node:zlib'

/** Bits of the fourth byte of the header. */
const HAS_CRC = 2
const HAS_EXTRA = 4
const HAS_NAME = 8
const HAS_COMMENT = 16
const TRAILER_BYTES = 8
/** First byte of a member. */
const MAGIC = 0x1f

/**
 * The first member of a gzip file that is followed by something else: some servers append to a body that is packed already, and
 * browsers pass over what comes behind. zlib gives nothing at all in that case.
 * Shape: at most `maxBytes`, or undefined where the member is not whole, its checksum is wrong, or another member follows (which then
 * is the one that is damaged). Source: RFC 1952.
 */
export function firstGzipMember(bytes: Buffer, maxBytes: number): Promise<Buffer | undefined> {
  const start = headerLength(bytes)
  if (start === undefined) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const decoder = zlib.createInflateRaw()
    const pieces: Buffer[] = []
    let length = 0
    decoder.on('data', (piece: Buffer) => {
      pieces.push(piece)
      length += piece.length
      if (length <= maxBytes) return
      decoder.destroy()
      resolve(undefined)
    })
    decoder.on('error', () => resolve(undefined))
    decoder.on('end', () => {
      const content = Buffer.concat(pieces, length)
      const trailer = bytes.subarray(start + decoder.bytesWritten)
      const isWhole = trailer.length > TRAILER_BYTES && trailer.readUInt32LE(0) === crc32(content)
      resolve(isWhole && trailer[TRAILER_BYTES] !== MAGIC ? content : undefined)
    })
    decoder.end(bytes.subarray(start))
  })
}

/** Bytes before the packed content; undefined where this is no whole header. */
export function headerLength(bytes: Buffer): number | undefined {
  if (bytes.length < 10 || bytes[0] !== MAGIC || bytes[1] !== 0x8b || bytes[2] !== 8) return undefined
  const flags = bytes[3] ?? 0
  let at = 10
  if ((flags & HAS_EXTRA) !== 0) {
    if (bytes.length < at + 2) return undefined
    at += 2 + bytes.readUInt16LE(at)
  }
  for (const flag of [HAS_NAME, HAS_COMMENT]) {
    if ((flags & flag) === 0) continue
    const end = bytes.indexOf(0, at)
    if (end === -1) return undefined
    at = end + 1
  }
  if ((flags & HAS_CRC) !== 0) at += 2
  return at < bytes.length ? at : undefined
}

/** zlib's own; the types of this Node do not know it yet. */
function crc32(bytes: Buffer): number {
  return (zlib as unknown as { crc32(data: Buffer): number }).crc32(bytes)
}
