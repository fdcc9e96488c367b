import { countText } from '../kernel/count-text.ts'
import { MillraceError } from '../kernel/errors.ts'

/**
 * What stands before the Avro bytes and names the schema that wrote them. The first byte tells which framing it is.
 * - Single-object encoding: `C3 01`, then the CRC-64-AVRO fingerprint, 8 bytes little-endian. Needs no service.
 * - Confluent: `00`, then the id in the schema registry, 4 bytes big-endian.
 */
export type Framing =
  | { readonly kind: 'single-object'; readonly fingerprint: string; readonly bodyStart: number }
  | { readonly kind: 'registry'; readonly schemaId: number; readonly bodyStart: number }

const SINGLE_OBJECT_BYTES = 10
const REGISTRY_BYTES = 5
/**
 * Registries give ids from 1 up and hold them in 32 bits with a sign; what begins with a higher one was written by nobody who has asked
 * one.
 */
export const MAX_SCHEMA_ID = 0x7fff_ffff

/** Errors: MESSAGE_EMPTY for no bytes, MESSAGE_FRAMING_UNKNOWN for anything that begins with neither framing, or ends within it. */
export function readFraming(bytes: Uint8Array | null | undefined): Framing {
  if (bytes === null || bytes === undefined || bytes.length === 0) throw new MillraceError('MESSAGE_EMPTY', 'the message has no value')
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const fingerprint = namedFingerprint(buffer)
  if (fingerprint !== undefined) return { kind: 'single-object', fingerprint, bodyStart: SINGLE_OBJECT_BYTES }
  if (buffer[0] === 0x00 && buffer.length >= REGISTRY_BYTES) {
    return { kind: 'registry', schemaId: buffer.readUInt32BE(1), bodyStart: REGISTRY_BYTES }
  }
  const start = buffer.subarray(0, 12).toString('hex')
  throw new MillraceError(
    'MESSAGE_FRAMING_UNKNOWN',
    `the value begins with ${start} and has ${countText(buffer.length, 'byte')}; expected c301 and a fingerprint, or 00 and a schema id`,
  )
}

/** The fingerprint that a value in single-object encoding names, as 16 hex characters; undefined for any other value. */
export function namedFingerprint(value: Buffer | null): string | undefined {
  if (value === null || value[0] !== 0xc3 || value[1] !== 0x01 || value.length < SINGLE_OBJECT_BYTES) return undefined
  return value.readBigUInt64LE(2).toString(16).padStart(16, '0')
}

/** Shape: fingerprint as 16 hex characters. */
export function singleObjectFrame(fingerprint: string, body: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(SINGLE_OBJECT_BYTES + body.length)
  frame[0] = 0xc3
  frame[1] = 0x01
  frame.writeBigUInt64LE(BigInt(`0x${fingerprint}`), 2)
  frame.set(body, SINGLE_OBJECT_BYTES)
  return frame
}

export function registryFrame(schemaId: number, body: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(REGISTRY_BYTES + body.length)
  frame[0] = 0x00
  frame.writeUInt32BE(schemaId, 1)
  frame.set(body, REGISTRY_BYTES)
  return frame
}
