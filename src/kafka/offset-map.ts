import { deflateRawSync, inflateRawSync } from 'node:zlib'

/**
 * Which offsets above a committed offset are completed, as text for the metadata of the commit.
 *
 * Text: `mo1`, one letter for the codec, base64url of `check(4) varint(span) body`. All numbers are relative to the committed
 * offset. `span` is one more than the highest completed offset; everything at or above it is not completed. Codecs, upper case when
 * the body is deflated, the shortest wins:
 *   g  varint distances between incomplete offsets, the first one counted from the committed offset
 *   r  varint lengths of runs, incomplete first, then alternating; the last run ends at `span`
 *   b  one bit per offset below `span`, 1 = completed, lowest bit first
 * `check` is FNV-1a over the committed offset (decimal) and the rest, so a map next to another offset than its own is not believed.
 *
 * Reading never throws: metadata can come from another program or another version, and losing a map only repeats work.
 */
export interface OffsetMap {
  /** One more than the highest completed offset, relative to the committed offset; 0 where nothing above it is completed. */
  readonly span: number
  /** Incomplete offsets below `span`, relative and ascending. */
  readonly incomplete: readonly number[]
}

export const EMPTY_OFFSET_MAP: OffsetMap = { span: 0, incomplete: [] }

/** What a map says from so many offsets further on. */
export function mapFrom(map: OffsetMap, further: number): OffsetMap {
  if (map.span <= further) return EMPTY_OFFSET_MAP
  const left = map.incomplete.filter((offset) => offset >= further)
  return { span: map.span - further, incomplete: left.map((offset) => offset - further) }
}

/** What a map says of so many offsets. */
export function mapUntil(map: OffsetMap, span: number): OffsetMap {
  return map.span <= span ? map : { span, incomplete: map.incomplete.filter((offset) => offset < span) }
}

/** Kafka's own limit is 4096 UTF-16 units for the whole metadata. */
export const MAX_MAP_CHARS = 4_000

/** A map of so many offsets always fits: a bit for each, and six bits in a character; what stands before them takes less than 40. */
export const SURE_SPAN = (MAX_MAP_CHARS - 40) * 6

export type EncodedOffsetMap = { readonly kind: 'map'; readonly text: string } | { readonly kind: 'too-large'; readonly chars: number }

export type DecodedOffsetMap =
  | { readonly kind: 'map'; readonly map: OffsetMap }
  | { readonly kind: 'unreadable'; readonly reason: 'foreign' | 'version' | 'corrupt' | 'beyond-log-end' }

const MAGIC = 'mo'
const VERSION = '1'
/** Bounds what a map may make us allocate; our own stay far below. */
const MAX_SPAN = 1 << 24
const MAX_INCOMPLETE = 1 << 18
const MAX_BODY_BYTES = MAX_SPAN / 8

/** Shape: the empty map gives empty text. Text longer than `maxChars` is not given out. */
export function encodeOffsetMap(map: OffsetMap, committed: bigint, maxChars: number = MAX_MAP_CHARS): EncodedOffsetMap {
  if (map.span === 0) return { kind: 'map', text: '' }
  const { codec, body } = shortestBody(map)
  const rest = Buffer.concat([Buffer.from(writeVarints([map.span])), body])
  const check = Buffer.alloc(4)
  check.writeUInt32BE(checksum(committed, codec, rest))
  const text = `${MAGIC}${VERSION}${codec}${Buffer.concat([check, rest]).toString('base64url')}`
  return text.length > maxChars ? { kind: 'too-large', chars: text.length } : { kind: 'map', text }
}

/** Shape: `logEnd` is the high watermark; a map that calls offsets completed which were never written is refused. */
export function decodeOffsetMap(text: string, committed: bigint, logEnd: bigint): DecodedOffsetMap {
  if (text === '') return { kind: 'map', map: EMPTY_OFFSET_MAP }
  if (!text.startsWith(MAGIC)) return { kind: 'unreadable', reason: 'foreign' }
  if (text.charAt(MAGIC.length) !== VERSION) return { kind: 'unreadable', reason: 'version' }
  try {
    const map = decodeBody(text.charAt(MAGIC.length + 1), Buffer.from(text.slice(MAGIC.length + 2), 'base64url'), committed)
    if (map === undefined) return { kind: 'unreadable', reason: 'corrupt' }
    if (committed + BigInt(map.span) > logEnd) return { kind: 'unreadable', reason: 'beyond-log-end' }
    return { kind: 'map', map }
  } catch {
    // Only inflate throws: the bytes are no deflate stream, or a far too large one.
    return { kind: 'unreadable', reason: 'corrupt' }
  }
}

function shortestBody(map: OffsetMap): { codec: string; body: Buffer } {
  const gaps = Buffer.from(writeVarints(toGaps(map.incomplete)))
  const runs = Buffer.from(writeVarints(toRuns(map)))
  const candidates: { codec: string; body: Buffer }[] = [
    { codec: 'g', body: gaps },
    { codec: 'r', body: runs },
  ]
  // A bitset far longer than the others never wins, and is what costs time to deflate.
  if (map.span / 8 <= 4 * Math.min(gaps.length, runs.length)) candidates.push({ codec: 'b', body: toBits(map) })
  for (const { codec, body } of [...candidates]) candidates.push({ codec: codec.toUpperCase(), body: deflateRawSync(body, { level: 9 }) })
  return candidates.reduce((best, candidate) => (candidate.body.length < best.body.length ? candidate : best))
}

function decodeBody(codec: string, bytes: Buffer, committed: bigint): OffsetMap | undefined {
  if (bytes.length < 5) return undefined
  const rest = bytes.subarray(4)
  if (bytes.readUInt32BE(0) !== checksum(committed, codec, rest)) return undefined
  const head = readVarint(rest, 0)
  if (head === undefined || head.value < 1 || head.value > MAX_SPAN) return undefined
  const span = head.value
  const packed = rest.subarray(head.next)
  const letter = codec.toLowerCase()
  const body = codec === letter ? packed : inflateRawSync(packed, { maxOutputLength: MAX_BODY_BYTES })
  const incomplete = letter === 'b' ? fromBits(body, span) : letter === 'g' || letter === 'r' ? fromVarints(letter, body, span) : undefined
  return incomplete === undefined ? undefined : { span, incomplete }
}

function fromVarints(letter: 'g' | 'r', body: Buffer, span: number): number[] | undefined {
  const numbers = readVarints(body)
  if (numbers === undefined) return undefined
  return letter === 'g' ? fromGaps(numbers, span) : fromRuns(numbers, span)
}

function toGaps(incomplete: readonly number[]): number[] {
  let previous = 0
  return incomplete.map((offset) => {
    const gap = offset - previous
    previous = offset
    return gap
  })
}

function fromGaps(gaps: readonly number[], span: number): number[] | undefined {
  if (gaps.length > MAX_INCOMPLETE) return undefined
  const incomplete: number[] = []
  let at = 0
  for (const [index, gap] of gaps.entries()) {
    if (index > 0 && gap === 0) return undefined
    at += gap
    if (at >= span) return undefined
    incomplete.push(at)
  }
  return incomplete
}

function toRuns({ span, incomplete }: OffsetMap): number[] {
  const runs: number[] = []
  let at = 0
  for (let index = 0; index < incomplete.length; ) {
    const start = incomplete[index] ?? 0
    let end = start
    while (index < incomplete.length && incomplete[index] === end) {
      end += 1
      index += 1
    }
    // A map that begins with a completed offset has an incomplete run of length 0 first.
    if (runs.length === 0 && start > 0) runs.push(0)
    if (start > at) runs.push(start - at)
    runs.push(end - start)
    at = end
  }
  if (runs.length === 0) runs.push(0)
  if (span > at) runs.push(span - at)
  return runs
}

function fromRuns(runs: readonly number[], span: number): number[] | undefined {
  const incomplete: number[] = []
  let at = 0
  for (const [index, run] of runs.entries()) {
    if (at + run > span) return undefined
    if (index % 2 === 0) {
      if (incomplete.length + run > MAX_INCOMPLETE) return undefined
      for (let offset = at; offset < at + run; offset += 1) incomplete.push(offset)
    }
    at += run
  }
  return at === span ? incomplete : undefined
}

function toBits({ span, incomplete }: OffsetMap): Buffer {
  const bits = Buffer.alloc(Math.ceil(span / 8), 0xff)
  for (const offset of incomplete) bits[offset >> 3] = (bits[offset >> 3] ?? 0) & ~(1 << (offset & 7))
  return bits
}

function fromBits(bits: Buffer, span: number): number[] | undefined {
  if (bits.length !== Math.ceil(span / 8)) return undefined
  const incomplete: number[] = []
  for (let offset = 0; offset < span; offset += 1) {
    if ((((bits[offset >> 3] ?? 0) >> (offset & 7)) & 1) === 0) incomplete.push(offset)
    if (incomplete.length > MAX_INCOMPLETE) return undefined
  }
  return incomplete
}

function writeVarints(numbers: readonly number[]): number[] {
  const bytes: number[] = []
  for (const number of numbers) {
    let left = number
    while (left >= 0x80) {
      bytes.push((left & 0x7f) | 0x80)
      left >>>= 7
    }
    bytes.push(left)
  }
  return bytes
}

function readVarint(bytes: Buffer, from: number): { value: number; next: number } | undefined {
  let value = 0
  for (let index = from, shift = 0; index < bytes.length && shift < 28; index += 1, shift += 7) {
    const byte = bytes[index] ?? 0
    value += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) return { value, next: index + 1 }
  }
  return undefined
}

function readVarints(bytes: Buffer): number[] | undefined {
  const numbers: number[] = []
  for (let at = 0; at < bytes.length; ) {
    const read = readVarint(bytes, at)
    if (read === undefined) return undefined
    numbers.push(read.value)
    at = read.next
  }
  return numbers
}

/** FNV-1a, 32 bits. */
function checksum(committed: bigint, codec: string, rest: Buffer): number {
  let hash = 0x811c9dc5
  const add = (byte: number): void => {
    hash = Math.imul(hash ^ byte, 0x01000193)
  }
  for (const byte of Buffer.from(`${committed}${codec}`, 'latin1')) add(byte)
  for (const byte of rest) add(byte)
  return hash >>> 0
}
