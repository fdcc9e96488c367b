import { hash } from 'node:crypto'

/** Shape: 64 hex characters. */
export function sha256Hex(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex')
}

/**
 * sha256 over the parts, each as UTF-8 behind its length in bytes as a 4-byte big-endian integer: ("ab", "c") differs from ("a", "bc").
 * Numbers are written in decimal, so that `1` and `"1"` are the same part. Shape: 64 hex characters.
 */
export function digestOfParts(parts: readonly (string | number | bigint)[]): string {
  const texts = parts.map(String)
  let size = 0
  for (const text of texts) size += 4 + Buffer.byteLength(text)
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  for (const text of texts) {
    const length = bytes.write(text, at + 4)
    bytes.writeUInt32BE(length, at)
    at += 4 + length
  }
  // In one call: making an object for each hash costs more than hashing so little.
  return hash('sha256', bytes, 'hex')
}
