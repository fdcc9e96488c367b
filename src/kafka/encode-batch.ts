import { crc32c } from './crc32c.ts'

/** A message as the client takes it: its texts not encoded yet. */
export interface BatchMessage {
  readonly key?: Bytes
  readonly value?: Bytes
  readonly headers?: Readonly<Record<string, Bytes | readonly Bytes[] | undefined>> | undefined
  /** Epoch ms in decimal digits; `now` where not given. */
  readonly timestamp?: string | undefined
}

type Bytes = Buffer | string | null | undefined

/** What all records of a batch have in common. */
export interface BatchOptions {
  /** -1 for a producer without idempotence. */
  readonly producerId: bigint
  readonly producerEpoch: number
  readonly firstSequence: number
  readonly transactional: boolean
  /** Epoch ms. */
  readonly now: number
  /** Packs the records; undefined: they stand as they are. */
  readonly codec?: { readonly attribute: number; pack(records: Buffer): Promise<Buffer> } | undefined
}

/** Source: Kafka protocol, record batch: what stands before the records, and the part of it that the checksum does not cover. */
const HEAD_BYTES = 61
const UNCHECKED_BYTES = 21
const LENGTH_AT = 8
const LENGTH_FROM = 12
const MAGIC = 2
const TRANSACTIONAL = 0x10

/**
 * Messages of one partition as a record batch (magic 2), in one buffer that has the right size from the beginning. The client grows a
 * buffer of zeroes by doubling it for every record, every batch and every request, and copies each into the next.
 */
export async function encodeBatch(messages: readonly BatchMessage[], options: BatchOptions): Promise<Buffer> {
  const { first, max } = timesOf(messages, options.now)
  const plans = messages.map((message, index) => planRecord(message, Number(message.timestamp ?? options.now) - first, index))
  const recordBytes = plans.reduce((total, { bytes }) => total + sizeOfVarint(bytes) + bytes, 0)
  const { codec } = options
  if (codec === undefined) {
    const batch = Buffer.allocUnsafe(HEAD_BYTES + recordBytes)
    writeRecords(batch, HEAD_BYTES, plans)
    return finish(batch, messages.length, { ...options, first, max, attributes: 0 })
  }
  const records = Buffer.allocUnsafe(recordBytes)
  writeRecords(records, 0, plans)
  const packed = await codec.pack(records)
  const batch = Buffer.allocUnsafe(HEAD_BYTES + packed.length)
  packed.copy(batch, HEAD_BYTES)
  return finish(batch, messages.length, { ...options, first, max, attributes: codec.attribute })
}

/** Earliest and latest of the times that messages name; `now` where none does. */
function timesOf(messages: readonly BatchMessage[], now: number): { first: number; max: number } {
  let first = Number.POSITIVE_INFINITY
  let max = Number.NEGATIVE_INFINITY
  for (const { timestamp } of messages) {
    if (timestamp === undefined) continue
    first = Math.min(first, Number(timestamp))
    max = Math.max(max, Number(timestamp))
  }
  return first > max ? { first: now, max: now } : { first, max }
}

interface HeadFacts extends BatchOptions {
  readonly first: number
  readonly max: number
  readonly attributes: number
}

/** Writes the head before records that stand already. */
function finish(batch: Buffer, count: number, facts: HeadFacts): Buffer {
  // The offset of a batch is the broker's to set.
  batch.writeBigInt64BE(0n, 0)
  batch.writeInt32BE(batch.length - LENGTH_FROM, LENGTH_AT)
  batch.writeInt32BE(0, 12)
  batch.writeInt8(MAGIC, 16)
  batch.writeInt16BE(facts.attributes | (facts.transactional ? TRANSACTIONAL : 0), 21)
  batch.writeInt32BE(count - 1, 23)
  batch.writeBigInt64BE(BigInt(facts.first), 27)
  batch.writeBigInt64BE(BigInt(facts.max), 35)
  batch.writeBigInt64BE(facts.producerId, 43)
  batch.writeInt16BE(facts.producerEpoch, 51)
  batch.writeInt32BE(facts.firstSequence, 53)
  batch.writeInt32BE(count, 57)
  batch.writeUInt32BE(crc32c(batch.subarray(UNCHECKED_BYTES)), 17)
  return batch
}

/** A record, measured. */
interface RecordPlan {
  /** Without the length that stands before it. */
  readonly bytes: number
  readonly timeDelta: number
  readonly offsetDelta: number
  readonly key: Field
  readonly value: Field
  readonly headers: readonly { readonly name: Field; readonly value: Field }[]
}

/** Shape: -1 bytes where there is nothing. */
interface Field {
  readonly content: Buffer | string
  readonly bytes: number
}

function planRecord(message: BatchMessage, timeDelta: number, offsetDelta: number): RecordPlan {
  const key = fieldOf(message.key)
  const value = fieldOf(message.value)
  const headers: { name: Field; value: Field }[] = []
  for (const [name, given] of Object.entries(message.headers ?? {})) {
    for (const one of Array.isArray(given) ? (given as readonly Bytes[]) : [given as Bytes])
      headers.push({ name: fieldOf(name), value: fieldOf(one) })
  }
  let bytes = 1 + sizeOfVarint(timeDelta) + sizeOfVarint(offsetDelta) + sizeOfField(key) + sizeOfField(value) + sizeOfVarint(headers.length)
  for (const header of headers) bytes += sizeOfField(header.name) + sizeOfField(header.value)
  return { bytes, timeDelta, offsetDelta, key, value, headers }
}

function fieldOf(content: Bytes): Field {
  return content === null || content === undefined ? { content: '', bytes: -1 } : { content, bytes: Buffer.byteLength(content) }
}

function sizeOfField({ bytes }: Field): number {
  return sizeOfVarint(bytes) + Math.max(0, bytes)
}

/** Zigzag, seven bits a byte. Shape: |value| below 2^52, which times and sizes are. */
function sizeOfVarint(value: number): number {
  let size = 1
  for (let left = zigzag(value); left >= 128; left = Math.floor(left / 128)) size += 1
  return size
}

function zigzag(value: number): number {
  return value >= 0 ? value * 2 : -value * 2 - 1
}

function writeRecords(target: Buffer, start: number, plans: readonly RecordPlan[]): void {
  let at = start
  for (const plan of plans) {
    at = writeVarint(target, at, plan.bytes)
    // Attributes, of which a record has none.
    target[at] = 0
    at = writeVarint(target, at + 1, plan.timeDelta)
    at = writeVarint(target, at, plan.offsetDelta)
    at = writeField(target, at, plan.key)
    at = writeField(target, at, plan.value)
    at = writeVarint(target, at, plan.headers.length)
    for (const { name, value } of plan.headers) at = writeField(target, writeField(target, at, name), value)
  }
}

function writeVarint(target: Buffer, start: number, value: number): number {
  let at = start
  let left = zigzag(value)
  for (; left >= 128; left = Math.floor(left / 128)) {
    target[at] = (left % 128) | 128
    at += 1
  }
  target[at] = left
  return at + 1
}

function writeField(target: Buffer, start: number, { content, bytes }: Field): number {
  const at = writeVarint(target, start, bytes)
  if (bytes <= 0) return at
  if (typeof content === 'string') target.write(content, at, bytes, 'utf8')
  else content.copy(target, at)
  return at + bytes
}
