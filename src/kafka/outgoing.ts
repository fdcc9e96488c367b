import type { Message, RecordMetadata } from 'kafkajs'
import { type PartitionId, partitionId } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { OutgoingMessage } from './message.ts'
import { tooLarge } from './send-errors.ts'

/** Bytes of an empty record batch, rounded up. Source: Kafka protocol, record batch: 61 bytes. */
export const BATCH_OVERHEAD_BYTES = 70
/** Varints of a record at their longest: length, timestamp delta, offset delta, key length, value length, header count, attributes. */
const RECORD_OVERHEAD_BYTES = 36
const HEADER_OVERHEAD_BYTES = 10

/**
 * Upper bound of what a message takes in a batch, before compression. Units: bytes.
 * The broker's limit is for a whole batch, so callers add BATCH_OVERHEAD_BYTES once.
 */
export function messageBytes(message: OutgoingMessage): number {
  let bytes = RECORD_OVERHEAD_BYTES + byteLength(message.key) + byteLength(message.value)
  for (const [name, value] of Object.entries(message.headers ?? {})) {
    bytes += HEADER_OVERHEAD_BYTES + Buffer.byteLength(name) + byteLength(value)
  }
  return bytes
}

/** The same message as kafkajs takes it. */
export function toKafkajs(message: OutgoingMessage): Message {
  return {
    partition: message.partition,
    key: message.key,
    value: message.value,
    ...(message.headers === undefined ? {} : { headers: { ...message.headers } }),
    ...(message.timestamp === undefined ? {} : { timestamp: String(message.timestamp) }),
  }
}

/**
 * Partitions that were sent to and are not in the answer: nothing of them was stored, whatever the client says.
 * Shape: `topic/partition` texts; empty where all is well.
 */
export function unansweredPartitions(
  sent: Iterable<{ readonly topic: string; readonly partition: number }>,
  answer: readonly RecordMetadata[],
): string[] {
  const answered = new Set(answer.map(({ topicName, partition }) => `${topicName}/${partition}`))
  const missing = new Set<string>()
  for (const { topic, partition } of sent) {
    const name = `${topic}/${partition}`
    if (!answered.has(name)) missing.add(name)
  }
  return [...missing]
}

function byteLength(value: string | Buffer | null): number {
  return value === null ? 0 : Buffer.byteLength(value)
}

/** Refuses what the client would fail on each time it is sent. Errors: INTERNAL, since it is a defect of the caller. */
export function checkMessage(message: OutgoingMessage): void {
  const { topic, partition, key, value, timestamp } = message
  const wrong =
    (topic === '' && 'an empty topic') ||
    ((!Number.isInteger(partition) || partition < 0) && `partition ${partition}`) ||
    (!(key === null || typeof key === 'string' || Buffer.isBuffer(key)) && 'a key that is neither text nor bytes nor null') ||
    (!(value === null || Buffer.isBuffer(value)) && 'a value that is neither bytes nor null') ||
    (timestamp !== undefined && !(Number.isInteger(timestamp) && timestamp >= 0) && `timestamp ${timestamp}`)
  if (wrong !== false) throw new MillraceError('INTERNAL', `a message for topic ${topic} can not be sent: it has ${wrong}`)
}

export interface PieceLimits {
  readonly maxMessages: number
  /** Of a piece over all its partitions; a larger message goes by itself. */
  readonly maxBytes: number
  /** Largest batch that the broker takes for a topic: of one partition in one piece. */
  readonly maxBatchBytes: (topic: string) => number
}

/**
 * Messages cut into pieces that can each be sent in one request. Shape: the order of `messages` is kept, no piece is empty.
 * Errors: KAFKA_MESSAGE_TOO_LARGE when one of them does not fit its topic by itself.
 */
export function piecesOf(messages: readonly OutgoingMessage[], limits: PieceLimits): OutgoingMessage[][] {
  const pieces: OutgoingMessage[][] = []
  let piece: OutgoingMessage[] = []
  let pieceBytes = 0
  let batchBytes = new Map<PartitionId, number>()
  for (const message of messages) {
    const bytes = messageBytes(message)
    const limit = limits.maxBatchBytes(message.topic)
    if (bytes + BATCH_OVERHEAD_BYTES > limit) throw tooLarge(message, bytes, `the topic takes ${limit} bytes`)
    const id = partitionId(message.topic, message.partition)
    const inBatch = batchBytes.get(id) ?? BATCH_OVERHEAD_BYTES
    const full = piece.length >= limits.maxMessages || pieceBytes + bytes > limits.maxBytes || inBatch + bytes > limit
    if (piece.length > 0 && full) {
      pieces.push(piece)
      piece = []
      pieceBytes = 0
      batchBytes = new Map()
    }
    piece.push(message)
    pieceBytes += bytes
    batchBytes.set(id, (batchBytes.get(id) ?? BATCH_OVERHEAD_BYTES) + bytes)
  }
  if (piece.length > 0) pieces.push(piece)
  return pieces
}

/** The message with the time of its sending instead of its own. */
export function withoutTime(message: OutgoingMessage): OutgoingMessage {
  const { timestamp: _timestamp, ...rest } = message
  return rest
}
