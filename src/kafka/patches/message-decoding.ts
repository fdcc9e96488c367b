import type { KafkajsModules } from './kafkajs-modules.ts'

interface Decoder {
  readInt32(): number
  readBytes(size: number): Buffer
  canReadBytes(size: number): boolean
}
type DecoderClass = new (buffer: Buffer) => Decoder
type RecordBatchDecoder = (decoder: Decoder) => Promise<{ readonly records: readonly unknown[] }>
type MessageSetDecoder = (decoder: Decoder, size: number) => unknown

/** The magic byte lies at the same place in all versions of the message format. Source: Kafka protocol, record batch. */
const MAGIC_OFFSET = 16
const RECORD_BATCH_MAGIC = 2
/** Bytes of a batch before its records; less than this is the cut tail of a fetch. */
const RECORD_BATCH_OVERHEAD = 49

/**
 * A batch of any number of records can be read. Stock kafkajs passes the records of a batch as arguments of one call, which
 * overflows the stack at about a hundred thousand: the consumer crashes at the same offset for ever.
 */
export function patchMessageDecoding(modules: KafkajsModules): void {
  const Decoder = modules.load('protocol/decoder.js') as DecoderClass
  const decodeMessageSet = modules.load('protocol/messageSet/decoder.js') as MessageSetDecoder
  const decodeRecordBatch = modules.load('protocol/recordBatch/v0/decoder.js') as RecordBatchDecoder

  modules.replace('protocol/requests/fetch/v4/decodeMessages.js', async (decoder: Decoder): Promise<unknown> => {
    const size = decoder.readInt32()
    if (size <= 0 || !decoder.canReadBytes(size)) return []
    const bytes = decoder.readBytes(size)
    const batches = new Decoder(bytes)
    if (bytes.readInt8(MAGIC_OFFSET) !== RECORD_BATCH_MAGIC) return decodeMessageSet(batches, size)
    const records: unknown[] = []
    while (batches.canReadBytes(RECORD_BATCH_OVERHEAD)) {
      try {
        const batch = await decodeRecordBatch(batches)
        for (const record of batch.records) records.push(record)
      } catch (error) {
        // A fetch is cut at its limit in bytes: the last batch may be incomplete, and comes whole with the next fetch.
        if (error instanceof Error && error.name === 'KafkaJSPartialMessageError') break
        throw error
      }
    }
    return records
  })
}
