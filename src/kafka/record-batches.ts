import type { MessageHeaders } from './message.ts'

/** A record batch as it lies in an answer; its records are still packed. Source: Kafka protocol, record batch v2. */
export interface RawBatch {
  readonly baseOffset: bigint
  /** Offset behind the last one of the batch. */
  readonly nextOffset: bigint
  /** Codec of the records: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. */
  readonly compression: number
  /** A marker of a transaction's end, no messages. */
  readonly isControl: boolean
  readonly inTransaction: boolean
  readonly producerId: string
  /** Epoch ms from which the records count theirs, or that of all of them where the broker set it. */
  readonly timestamp: number
  readonly isAppendTime: boolean
  /** How many records it says it has. */
  readonly count: number
  readonly records: Buffer
  /** All of it, header included. */
  readonly bytes: Buffer
}

export interface RawRecord {
  readonly offset: bigint
  /** Epoch ms. */
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: MessageHeaders
}

const HEADER_BYTES = 61
const MAGIC_AT = 16
const ATTRIBUTES_AT = 21
const LAST_OFFSET_DELTA_AT = 23
const FIRST_TIMESTAMP_AT = 27
const MAX_TIMESTAMP_AT = 35
const PRODUCER_ID_AT = 43
const COUNT_AT = 57
const MAGIC = 2
const APPEND_TIME = 0x08
const TRANSACTIONAL = 0x10
const CONTROL = 0x20

/** The whole batches of a record set; its cut tail and batches of the old format are left out. */
export function rawBatches(bytes: Buffer): RawBatch[] {
  const batches: RawBatch[] = []
  let at = 0
  while (bytes.length - at >= HEADER_BYTES) {
    const end = at + 12 + bytes.readInt32BE(at + 8)
    if (end > bytes.length || end < at + HEADER_BYTES) break
    if (bytes[at + MAGIC_AT] === MAGIC) batches.push(rawBatch(bytes.subarray(at, end)))
    at = end
  }
  return batches
}

function rawBatch(bytes: Buffer): RawBatch {
  const attributes = bytes.readInt16BE(ATTRIBUTES_AT)
  const baseOffset = bytes.readBigInt64BE(0)
  const isAppendTime = (attributes & APPEND_TIME) !== 0
  return {
    baseOffset,
    nextOffset: baseOffset + BigInt(bytes.readInt32BE(LAST_OFFSET_DELTA_AT)) + 1n,
    compression: attributes & 0x07,
    isControl: (attributes & CONTROL) !== 0,
    inTransaction: (attributes & TRANSACTIONAL) !== 0,
    producerId: bytes.readBigInt64BE(PRODUCER_ID_AT).toString(),
    timestamp: Number(bytes.readBigInt64BE(isAppendTime ? MAX_TIMESTAMP_AT : FIRST_TIMESTAMP_AT)),
    isAppendTime,
    count: bytes.readInt32BE(COUNT_AT),
    records: bytes.subarray(HEADER_BYTES),
    bytes,
  }
}

/**
 * The records in whose bytes one of the texts lies. `records` are unpacked. Shape: in order; their bytes are copies. Records are looked
 * at only where a text was found, so that a batch without any costs a search.
 */
export function recordsWith(batch: RawBatch, records: Buffer, texts: readonly Buffer[]): RawRecord[] {
  const found: RawRecord[] = []
  const reader = new VarintReader(records)
  const hits = new Hits(records, texts)
  while (hits.next !== undefined && reader.at < records.length) {
    const length = reader.integer()
    const start = reader.at
    const end = start + length
    if (length <= 0 || end > records.length) break
    // A text that reaches over the beginning or the end of a record lies in none.
    while (hits.next !== undefined && hits.next.at < end && (hits.next.at < start || hits.next.end > end)) hits.moveTo(hits.next.at + 1)
    if (hits.next !== undefined && hits.next.at < end) {
      found.push(rawRecord(batch, reader))
      hits.moveTo(end)
    }
    reader.at = end
  }
  return found
}

/** Where the texts lie, from the front; each is searched for no further than to its next place. */
class Hits {
  readonly #bytes: Buffer
  readonly #places: { readonly text: Buffer; at: number }[]

  constructor(bytes: Buffer, texts: readonly Buffer[]) {
    this.#bytes = bytes
    this.#places = texts.map((text) => ({ text, at: bytes.indexOf(text) }))
  }

  get next(): { readonly at: number; readonly end: number } | undefined {
    let first: { readonly text: Buffer; readonly at: number } | undefined
    for (const place of this.#places) if (place.at !== -1 && (first === undefined || place.at < first.at)) first = place
    return first === undefined ? undefined : { at: first.at, end: first.at + first.text.length }
  }

  moveTo(from: number): void {
    for (const place of this.#places) if (place.at !== -1 && place.at < from) place.at = this.#bytes.indexOf(place.text, from)
  }
}

function rawRecord(batch: RawBatch, reader: VarintReader): RawRecord {
  reader.at += 1
  const timestampDelta = reader.long()
  const offsetDelta = reader.integer()
  const key = reader.bytes()
  const value = reader.bytes()
  // Without a prototype: a header may be called `__proto__` or `constructor`.
  const headers: Record<string, Buffer> = Object.create(null) as Record<string, Buffer>
  for (let left = reader.integer(); left > 0; left -= 1) {
    const name = reader.bytes()?.toString('utf8') ?? ''
    const text = reader.bytes()
    if (text !== null) headers[name] = text
  }
  return {
    offset: batch.baseOffset + BigInt(offsetDelta),
    timestamp: batch.isAppendTime ? batch.timestamp : batch.timestamp + Number(timestampDelta),
    key,
    value,
    headers,
  }
}

/** Zigzag varints, as record format v2 has them. */
class VarintReader {
  at = 0
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  integer(): number {
    let raw = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#bytes[this.at] ?? 0
      this.at += 1
      raw += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    return raw % 2 === 0 ? raw / 2 : -(raw + 1) / 2
  }

  long(): bigint {
    let raw = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.at] ?? 0
      this.at += 1
      raw |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    return (raw >> 1n) ^ -(raw & 1n)
  }

  /** A copy; null where the length is negative. */
  bytes(): Buffer | null {
    const length = this.integer()
    if (length < 0) return null
    const bytes = Buffer.from(this.#bytes.subarray(this.at, this.at + length))
    this.at += length
    return bytes
  }
}
