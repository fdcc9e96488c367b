import { unlessAborted } from '../kernel/abort.ts'
import { type Clock, within } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { KafkaClient } from './client.ts'
import { kafkajsFailure } from './failure.ts'

/** Longest wait for a first connection; a user gets an answer in under 15 s. */
export const REACH_TIMEOUT_MS = 12_000

/**
 * Runs a first connection with a deadline. Shape: the value of `connect`; when the deadline passes first, its late value goes to
 * `discard`. Errors: KAFKA_UNREACHABLE naming every address and what was tried; ABORTED by the signal.
 */
export async function reach<T>(
  client: KafkaClient,
  clock: Clock,
  connect: () => Promise<T>,
  options: { discard?: (late: T) => Promise<void>; signal?: AbortSignal; timeoutMs?: number } = {},
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? REACH_TIMEOUT_MS
  const attempt = connect()
  const { signal } = options
  try {
    const first = await within(clock, timeoutMs, signal === undefined ? attempt : unlessAborted(signal, () => attempt))
    if (first !== 'late') return first
  } catch (error) {
    dropLate(attempt, options.discard)
    if (signal?.aborted) throw new MillraceError('ABORTED', 'connecting to Kafka was stopped', { cause: error })
    throw unreachable(client, kafkajsFailure(error).message, error)
  }
  dropLate(attempt, options.discard)
  throw unreachable(client, `no answer within ${timeoutMs} ms`, undefined)
}

function dropLate<T>(attempt: Promise<T>, discard: ((late: T) => Promise<void>) | undefined): void {
  attempt
    .then((late) => discard?.(late))
    // The caller has its answer already; a connection that fails late is what it was told.
    .catch(() => undefined)
}

function unreachable(client: KafkaClient, reason: string, cause: unknown): MillraceError {
  const brokers = client.connection.brokers.join(', ')
  return new MillraceError(
    'KAFKA_UNREACHABLE',
    `no Kafka broker could be reached: tried ${brokers} (${reason}). Check \`brokers\`, the network, and that the broker runs.`,
    { cause, context: { brokers } },
  )
}
