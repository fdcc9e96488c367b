import { isUtf8 } from 'node:buffer'
import { type BodyEncoding, isZlib, unpack } from './body-codec.ts'
import { beforeDamage } from './damaged-body.ts'
import { firstGzipMember } from './gzip-member.ts'
import type { Unpacked } from './unpacked.ts'

/** What became of a body that came with a Content-Encoding header. */
export interface DecodedContent {
  /** What to store: as received when one coding decodes cleanly to its end, else the decoded bytes. */
  readonly body: Buffer
  readonly encoding: BodyEncoding
  readonly decoded: Buffer
  /**
   * As Page.truncated has it: size for a body cut at the cap, encoding for one that does not decode to its end, undecoded for one that
   * gives nothing by its label: then body and decoded are the bytes as received.
   */
  readonly truncated: 'size' | 'encoding' | 'undecoded' | null
  /**
   * What was wrong, if anything. mislabelled: the body is not in the coding that the header names; it is undone by its own mark where it
   * has one, passes as it is where it is text, and is undecoded else.
   * unknown-coding: the header names one that does not exist, the same. too-many: more codings than are undone. tail: something follows the
   * packed body, and is passed over.
   */
  readonly problem: 'tail' | 'mislabelled' | 'unknown-coding' | 'too-many' | 'cut' | 'broken' | 'size' | null
}

/** Codings applied one over the other that are undone; more are an attack. */
export const MAX_CODINGS = 5

/**
 * Names of the codings in the order they were applied, lower case; `identity` and empty ones left out. `x-gzip` is gzip.
 * Source: RFC 9110 section 8.4.
 */
export function contentCodings(header: string | null | undefined): readonly string[] {
  return (header ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .map((name) => (name === 'x-gzip' ? 'gzip' : name))
    .filter((name) => name !== '' && name !== 'identity')
}

/** Of so many bytes, packed, so many may come: what can't be made smaller grows by its marks and headers, a thousandth and a little. */
export function mostPackedBytes(bytes: number): number {
  return bytes + Math.ceil(bytes / 1_000) + 1_024
}

/** Undoes the codings of a whole body. Shape: total; no step makes more than `maxBytes`. */
export async function decodeContent(wire: Buffer, header: string | null | undefined, maxBytes: number): Promise<DecodedContent> {
  const named = contentCodings(header)
  if (wire.length === 0 || named.length === 0) return plain(wire, maxBytes, null)
  if (named.length > MAX_CODINGS) {
    return undecoded(wire, maxBytes, 'too-many')
  }
  // Names such as `utf-8` and `none` are no codings: nothing was done for them.
  const codings = named.filter((name) => asEncoding(name) !== undefined)
  const last = asEncoding(codings.at(-1) ?? '')
  const isOdd = codings.length < named.length
  if (last === undefined || (isOdd && isMislabelled(wire, last)))
    return (
      (await byMark(wire, last ?? 'identity', maxBytes)) ??
      (named.every((name) => NO_CODING.test(name))
        ? plain(wire, maxBytes, 'unknown-coding')
        : unmarked(wire, wire, maxBytes, 'unknown-coding'))
    )
  let current = wire
  let hasTail = false
  let damage: Exclude<Unpacked['problem'], null> | null = null
  for (const name of [...codings].reverse()) {
    const encoding = asEncoding(name) ?? 'identity'
    // What is named twice was often done once.
    if (isMislabelled(current, encoding) && !(await isEmptyStream(current, encoding))) {
      if (damage === null) return (await byMark(current, encoding, maxBytes)) ?? unmarked(wire, current, maxBytes, 'mislabelled')
      return damage === 'size' || isText(current) ? cut(current, damage) : undecoded(wire, maxBytes, damage)
    }
    const unpacked = await unpack(current, encoding, maxBytes)
    const isWithTail = unpacked.hasTail === true
    // One that ends before it has begun is none: any bytes may begin like an empty stream.
    const problem = isWithTail && unpacked.bytes.length === 0 ? 'broken' : unpacked.problem
    // Without a mark it is only now known that nothing was packed.
    const isPlain = problem !== null && (encoding === 'br' || encoding === 'deflate') && isPlainText(current)
    if (isPlain) return damage === null ? plain(current, maxBytes, 'mislabelled') : cut(current, damage)
    const isDamaged = problem === 'broken' || problem === 'cut'
    const member = isDamaged && encoding === 'gzip' ? await firstGzipMember(current, maxBytes) : undefined
    hasTail ||= isWithTail || member !== undefined
    if (member !== undefined || problem === null) {
      current = member ?? unpacked.bytes
      continue
    }
    const salvaged = problem === 'broken' ? await beforeDamage(current, encoding, maxBytes) : unpacked.bytes
    const given = salvaged.length > unpacked.bytes.length ? salvaged : unpacked.bytes
    const isOther = damage === null && (problem === 'broken' || given.length === 0)
    const marked = isOther ? await byMark(current, encoding, maxBytes) : undefined
    if (marked !== undefined) return marked
    if (given.length === 0 && problem !== 'size') return undecoded(wire, maxBytes, problem)
    // What the codings below give of the piece is the page; the piece itself is packed.
    damage ??= problem
    current = given
  }
  if (damage !== null) return cut(current, damage)
  const only = codings.length === 1 ? asEncoding(codings[0] ?? '') : undefined
  // With its tail it would be broken for readers too: stored decoded.
  if (hasTail) return { body: current, encoding: 'identity', decoded: current, truncated: null, problem: 'tail' }
  // One that grew by being packed is not stored beyond the cap.
  if (only !== undefined && wire.length <= maxBytes) return { body: wire, encoding: only, decoded: current, truncated: null, problem: null }
  return { body: current, encoding: 'identity', decoded: current, truncated: null, problem: null }
}

function asEncoding(name: string): BodyEncoding | undefined {
  return name === 'gzip' || name === 'br' || name === 'zstd' || name === 'deflate' ? name : undefined
}

function plain(wire: Buffer, maxBytes: number, problem: 'mislabelled' | 'unknown-coding' | null): DecodedContent {
  const kept = wire.length > maxBytes ? wire.subarray(0, maxBytes) : wire
  const isCut = kept.length < wire.length
  return { body: kept, encoding: 'identity', decoded: kept, truncated: isCut ? 'size' : null, problem: isCut ? 'size' : problem }
}

/** Names of character sets and the like: whatever the body is, no bytes were packed under them. */
const NO_CODING =
  /^(?:none|binary|[78]bit|utf-?\d+(?:le|be)?|(?:us-)?ascii|iso-?8859-\d+|windows-\d+|gbk|gb\d+|big5|shift_jis|euc-\w+|koi8-\w)$/

/** Not in the coding that is named, nor in one that can be told: a page that was not packed at all, or packed in a way that nobody says. */
function unmarked(wire: Buffer, current: Buffer, maxBytes: number, problem: 'mislabelled' | 'unknown-coding'): DecodedContent {
  return isText(current) ? plain(current, maxBytes, problem) : undecoded(wire, maxBytes, problem)
}

function cut(bytes: Buffer, problem: Exclude<Unpacked['problem'], null>): DecodedContent {
  return { body: bytes, encoding: 'identity', decoded: bytes, truncated: problem === 'size' ? 'size' : 'encoding', problem }
}

/** Shape: the bytes as received, at most `maxBytes` of them. */
function undecoded(
  wire: Buffer,
  maxBytes: number,
  problem: 'broken' | 'cut' | 'too-many' | 'mislabelled' | 'unknown-coding',
): DecodedContent {
  const kept = wire.subarray(0, maxBytes)
  return { body: kept, encoding: 'identity', decoded: kept, truncated: 'undecoded', problem }
}

/**
 * By what the bytes themselves say, where that is beyond doubt: they begin with the mark of another coding, and decode by it to their end.
 * Browsers fail on such a page, or show the packed bytes. Shape: undefined where there is no such mark.
 */
async function byMark(wire: Buffer, named: BodyEncoding, maxBytes: number): Promise<DecodedContent | undefined> {
  for (const encoding of MARKED) {
    if (encoding === named || !hasMark(wire, encoding)) continue
    const { bytes, problem, hasTail } = await unpack(wire, encoding, maxBytes)
    const stored = hasTail === true ? ({ body: bytes, encoding: 'identity' } as const) : { body: wire, encoding }
    if (problem === null) return { ...stored, decoded: bytes, truncated: null, problem: 'mislabelled' }
    if (problem === 'size') return { body: bytes, encoding: 'identity', decoded: bytes, truncated: 'size', problem: 'mislabelled' }
  }
  return undefined
}

/** brotli has no mark, and neither has deflate without its wrapper. */
const MARKED = ['gzip', 'zstd', 'deflate'] as const

function hasMark(wire: Buffer, encoding: (typeof MARKED)[number]): boolean {
  return encoding === 'deflate' ? isZlib(wire) : !isMislabelled(wire, encoding)
}

/** gzip and zstd begin with their own magic; the other codings do not, but text does not begin like them either. */
function isMislabelled(wire: Buffer, encoding: BodyEncoding): boolean {
  if (encoding === 'gzip') return wire[0] !== 0x1f || (wire.length > 1 && wire[1] !== 0x8b)
  if (encoding === 'zstd') return !(wire.length >= 4 && wire.readUInt32LE(0) === 0xfd2fb528) && !isSkippable(wire)
  const head = wire.subarray(0, 16)
  return head.every((byte) => (byte >= 0x20 && byte < 0x7f) || byte === 0x09 || byte === 0x0a || byte === 0x0d)
}

/** An empty brotli stream is one byte, which is printable for most windows: `;` for the usual one. */
async function isEmptyStream(wire: Buffer, encoding: BodyEncoding): Promise<boolean> {
  return wire.length === 1 && (await unpack(wire, encoding, 1)).problem === null
}

/** A zstd stream may begin with frames that are passed over. */
function isSkippable(wire: Buffer): boolean {
  return wire.length >= 4 && (wire.readUInt32LE(0) & 0xfffffff0) >>> 0 === 0x184d2a50
}

const TEXT_HEAD_BYTES = 512
/** Of UTF-8 and UTF-16; latin1. */
const BYTE_ORDER_MARK = /^(?:\xef\xbb\xbf|\xfe\xff|\xff\xfe)/

/** Source: WHATWG MIME Sniffing, section 7.2, by which browsers tell text from other things. */
function isText(bytes: Buffer): boolean {
  const head = bytes.subarray(0, TEXT_HEAD_BYTES)
  return BYTE_ORDER_MARK.test(head.toString('latin1')) || !head.some(isBinary)
}

/** Bytes of a packed body are as good as random: they are text for a few bytes at most, and hardly ever UTF-8. */
function isPlainText(bytes: Buffer): boolean {
  return !bytes.subarray(0, TEXT_HEAD_BYTES).some(isBinary) && (bytes.length >= TEXT_HEAD_BYTES || isUtf8(bytes))
}

function isBinary(byte: number): boolean {
  return byte <= 0x08 || byte === 0x0b || (byte >= 0x0e && byte <= 0x1a) || (byte >= 0x1c && byte <= 0x1f)
}
