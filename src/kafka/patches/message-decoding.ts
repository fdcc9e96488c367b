import { HEADER } from '../../message/header-names.ts'
import { MOST_UNPACKED } from '../codecs.ts'
import { type RawBatch, rawBatches } from '../record-batches.ts'
import type { KafkajsModules } from './kafkajs-modules.ts'

interface Decoder {
  readInt8(): number
  readInt32(): number
  readVarInt(): number
  readVarLong(): { toString(): string }
  readVarIntBytes(): Buffer | null
  readVarIntString(): string | null
  readBytes(size: number): Buffer
  canReadBytes(size: number): boolean
}
type DecoderClass = new (buffer: Buffer) => Decoder
type RecordBatchDecoder = (decoder: Decoder) => Promise<{ readonly records: readonly DecodedRecord[] }>
type MessageSetDecoder = (decoder: Decoder, size: number) => unknown

interface BatchContext {
  readonly magicByte: number
  readonly firstOffset: string
  readonly firstTimestamp: string
  readonly maxTimestamp: string
  readonly lastOffsetDelta: number
  readonly producerId: string
  readonly inTransaction: boolean
  readonly isControlBatch: boolean
  /** 1 where the broker set the time. */
  readonly timestampType: number
}

interface DecodedRecord {
  readonly magicByte: number
  readonly attributes: number
  readonly timestamp: string
  readonly offset: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer | null>>
  readonly isControlRecord: boolean
  readonly batchContext: Pick<BatchContext, 'firstOffset' | 'lastOffsetDelta' | 'producerId' | 'inTransaction'>
}

/** The magic byte lies at the same place in all versions of the message format. Source: Kafka protocol, record batch. */
const MAGIC_OFFSET = 16
const RECORD_BATCH_MAGIC = 2
const APPEND_TIME = 1

/** Of a batch. A record takes hundreds of bytes of memory however small it is, and packed nearly none. */
const MOST_RECORDS = 500_000
/** Of a record: those of a message of megabytes would take its reader half a minute. */
const MOST_HEADERS = 50_000
/** About what the objects of a record take. */
const RECORD_BYTES = 512
/** Of an answer: what lies behind is left for the next fetch. */
const ANSWER_BYTES = MOST_UNPACKED

/**
 * No batch can stop a reader, and none makes it run away. Stock kafkajs
 * - passes the records of a batch as arguments of one call, which overflows the stack at about a hundred thousand;
 * - unpacks whatever an answer holds, so that a megabyte becomes a gigabyte, and copies all headers of a record for each of them, so that
 *   a record with ten thousand takes half a minute;
 * - throws at a batch that can't be unpacked.
 * Each time it crashes, or hangs, at the same offset for ever. Here a batch that can't be read stands as one message that holds it as it
 * lies in the log and says why, so that whoever reads it answers it like any other bad message; and an answer is read as far as it fits.
 * A codec that is missing still ends the consumer: the messages are good.
 */
export function patchMessageDecoding(modules: KafkajsModules): void {
  const Decoder = modules.load('protocol/decoder.js') as DecoderClass
  // Before what decodes batches is loaded, which binds it.
  modules.replace('protocol/recordBatch/record/v0/decoder.js', decodeRecord)
  const decodeMessageSet = modules.load('protocol/messageSet/decoder.js') as MessageSetDecoder
  const decodeRecordBatch = modules.load('protocol/recordBatch/v0/decoder.js') as RecordBatchDecoder
  /** What was made of an answer so far, over its partitions: all are read by one decoder. */
  const made = new WeakMap<Decoder, number>()

  const readBatch = async (batch: RawBatch): Promise<readonly DecodedRecord[]> => {
    if (batch.count > MOST_RECORDS) return [unread(batch, `more than ${MOST_RECORDS} messages`)]
    try {
      return (await decodeRecordBatch(new Decoder(batch.bytes))).records
    } catch (error) {
      if (error instanceof Error && error.name === 'KafkaJSNotImplemented') throw error
      return [unread(batch, whyUnread(error))]
    }
  }

  modules.replace('protocol/requests/fetch/v4/decodeMessages.js', async (decoder: Decoder): Promise<unknown> => {
    const size = decoder.readInt32()
    if (size <= 0 || !decoder.canReadBytes(size)) return []
    const bytes = decoder.readBytes(size)
    if (bytes.length > MAGIC_OFFSET && bytes.readInt8(MAGIC_OFFSET) !== RECORD_BATCH_MAGIC)
      return decodeMessageSet(new Decoder(bytes), size)
    const records: DecodedRecord[] = []
    let spent = made.get(decoder) ?? 0
    // A fetch is cut at its limit in bytes: the last batch may be incomplete, and comes whole with the next fetch.
    for (const batch of rawBatches(bytes)) {
      if (spent >= ANSWER_BYTES) break
      for (const record of await readBatch(batch)) {
        records.push(record)
        spent += recordBytes(record)
      }
    }
    made.set(decoder, spent)
    return records
  })
}

function recordBytes({ key, value, headers }: DecodedRecord): number {
  let bytes = RECORD_BYTES + (key?.length ?? 0) + (value?.length ?? 0)
  for (const name in headers) bytes += RECORD_BYTES + (headers[name]?.length ?? 0)
  return bytes
}

function decodeRecord(decoder: Decoder, batch: BatchContext): DecodedRecord {
  const attributes = decoder.readInt8()
  const delta = decoder.readVarLong()
  const timestamp =
    batch.timestampType === APPEND_TIME ? batch.maxTimestamp : String(BigInt(batch.firstTimestamp) + BigInt(delta.toString()))
  const offset = String(BigInt(batch.firstOffset) + BigInt(decoder.readVarInt()))
  const key = decoder.readVarIntBytes()
  const value = decoder.readVarIntBytes()
  // Without a prototype: a header may be called `__proto__`. Of a repeated one the last value is kept.
  const headers = Object.create(null) as Record<string, Buffer | null>
  const count = decoder.readVarInt()
  if (count > MOST_HEADERS) throw new RangeError(`a record has more than ${MOST_HEADERS} headers`)
  for (let left = count; left > 0; left -= 1) {
    if (!decoder.canReadBytes(1)) throw new RangeError('a record ends within its headers')
    const name = decoder.readVarIntString() ?? ''
    headers[name] = decoder.readVarIntBytes()
  }
  return {
    magicByte: batch.magicByte,
    attributes,
    timestamp,
    offset,
    key,
    value,
    headers,
    isControlRecord: batch.isControlBatch,
    batchContext: batch,
  }
}

function whyUnread(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ERR_BUFFER_TOO_LARGE' ? `more than ${MOST_UNPACKED} bytes when unpacked` : message
}

/** The message that stands for a batch. At its last offset, so that whoever is done with it is done with the batch. */
function unread(batch: RawBatch, why: string): DecodedRecord {
  const lastOffset = batch.nextOffset - 1n
  const reason = `offsets ${batch.baseOffset} to ${lastOffset}, a batch of ${batch.count} messages, could not be read: ${why}`
  return {
    magicByte: RECORD_BATCH_MAGIC,
    attributes: 0,
    timestamp: String(batch.timestamp),
    offset: String(lastOffset),
    key: null,
    value: batch.records,
    headers: { [HEADER.unreadBatch]: Buffer.from(reason) },
    isControlRecord: batch.isControl,
    batchContext: {
      firstOffset: String(batch.baseOffset),
      lastOffsetDelta: Number(lastOffset - batch.baseOffset),
      producerId: batch.producerId,
      inTransaction: batch.inTransaction,
    },
  }
}
