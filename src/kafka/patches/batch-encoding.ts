import { systemClock } from '../../kernel/clock.ts'
import { type BatchMessage, encodeBatch } from '../encode-batch.ts'
import type { KafkajsModules } from './kafkajs-modules.ts'

interface Encoder {
  buf: Buffer
  offset: number
  readonly buffer: Buffer
}
type EncoderClass = new (initialSize?: number) => Encoder

interface ProduceInput {
  readonly acks: number
  readonly timeout: number
  readonly transactionalId?: string | null
  readonly producerId?: unknown
  readonly producerEpoch?: number
  readonly compression?: number
  readonly topicData: readonly {
    readonly topic: string
    readonly partitions: readonly {
      readonly partition: number
      readonly firstSequence?: number
      readonly messages: readonly BatchMessage[]
    }[]
  }[]
}

interface Request {
  readonly apiKey: number
  readonly apiVersion: number
  encode(): Promise<Encoder | Pieces>
}

/** What a request consists of, not yet in one buffer. */
class Pieces {
  readonly all: Buffer[] = []
}

const PRODUCE = 0
/** The lowest three bits of `compression` name the codec. */
const CODEC_MASK = 0x07

/**
 * Batches are encoded by our own encoder and each request is put together once. Stock kafkajs writes every record into a buffer of its
 * own, those into one of the batch, that into one of the partition and so on, eight times until it reaches the socket; each of these
 * buffers is filled with zeroes and grows by doubling, and the checksum is taken a byte at a time.
 */
export function patchBatchEncoding(modules: KafkajsModules): void {
  const Encoder = modules.load('protocol/encoder.js') as EncoderClass
  const { lookupCodec } = modules.load('protocol/message/compression/index.js') as {
    lookupCodec(type: number): { compress(encoder: { buffer: Buffer }): Promise<Buffer> }
  }

  const batchOf = (input: ProduceInput, messages: readonly BatchMessage[], firstSequence: number, now: number): Promise<Buffer> => {
    const attribute = (input.compression ?? 0) & CODEC_MASK
    return encodeBatch(messages, {
      producerId: idOf(input.producerId),
      producerEpoch: input.producerEpoch ?? 0,
      firstSequence,
      transactional: !!input.transactionalId,
      now,
      codec: attribute === 0 ? undefined : { attribute, pack: async (records) => lookupCodec(attribute).compress({ buffer: records }) },
    })
  }

  modules.replace('protocol/requests/produce/v3/request.js', (input: ProduceInput) => ({
    apiKey: PRODUCE,
    apiVersion: 3,
    apiName: 'Produce',
    expectResponse: () => input.acks !== 0,
    encode: async () => {
      const pieces = new Pieces()
      const { all } = pieces
      all.push(text(input.transactionalId ?? null), int16(input.acks), int32(input.timeout), int32(input.topicData.length))
      for (const { topic, partitions } of input.topicData) {
        all.push(text(topic), int32(partitions.length))
        for (const { partition, messages, firstSequence = 0 } of partitions) {
          const batch = await batchOf(input, messages, firstSequence, systemClock.now())
          all.push(int32(Number(partition)), int32(batch.length), batch)
        }
      }
      return pieces
    },
  }))

  modules.replace(
    'protocol/request.js',
    async ({ correlationId, clientId, request }: { correlationId: number; clientId: string; request: Request }): Promise<Encoder> => {
      const payload = await request.encode()
      const body = payload instanceof Pieces ? payload.all : [payload.buffer]
      const head = [int16(request.apiKey), int16(request.apiVersion), int32(correlationId), text(clientId)]
      const bytes = [...head, ...body].reduce((total, { length }) => total + length, 0)
      const encoder = new Encoder(0)
      encoder.buf = Buffer.concat([int32(bytes), ...head, ...body])
      encoder.offset = encoder.buf.length
      return encoder
    },
  )
}

/** The client has a number type of its own for what may need 64 bits. */
function idOf(producerId: unknown): bigint {
  return producerId === undefined ? -1n : BigInt(String(producerId))
}

function int16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2)
  bytes.writeInt16BE(value, 0)
  return bytes
}

function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32BE(value, 0)
  return bytes
}

function text(value: string | null): Buffer {
  if (value === null) return int16(-1)
  const bytes = Buffer.from(value, 'utf8')
  return Buffer.concat([int16(bytes.length), bytes])
}
