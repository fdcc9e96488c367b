import type { TopicPartition } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { SendFailure } from './failure.ts'
import type { OutgoingMessage } from './message.ts'

/** The error of a message that its topic does not take. Units: bytes, as an upper bound before compression. */
export function tooLarge(message: OutgoingMessage, bytes: number, limit: string, cause?: unknown): MillraceError {
  const { topic, partition } = message
  return new MillraceError(
    'KAFKA_MESSAGE_TOO_LARGE',
    `a message of ${bytes} bytes is too large for topic ${topic}: ${limit}. Raise \`topics.maxMessageBytes\`, or make it smaller.`,
    { cause, context: { topic, partition, bytes } },
  )
}

/** The error of everything that waits for a partition which does not exist. */
export function missingPartition({ topic, partition }: TopicPartition, failure: SendFailure): MillraceError {
  return new MillraceError(
    'KAFKA_TOPIC_MISSING',
    `partition ${partition} of topic ${topic} does not exist. Run \`millrace topics apply\`.`,
    { cause: failure.cause, context: { topic, partition } },
  )
}

/** The error of a message that no resend mends. */
export function refused({ topic, partition }: OutgoingMessage, failure: SendFailure): MillraceError {
  return new MillraceError('KAFKA_MESSAGE_REFUSED', `the broker takes no such message on topic ${topic}: ${failure.reason}`, {
    cause: failure.cause,
    context: { topic, partition, reason: failure.reason },
  })
}
