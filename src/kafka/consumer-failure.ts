import { causesOf, errorText, MillraceError } from '../kernel/errors.ts'
import type { KafkaConnection } from './connection.ts'
import { denied, kafkajsFailure } from './failure.ts'

/** How long brokers may be away before whoever waits for them gives up. */
export const AWAY_BUDGET_MS = 300_000

/** Who reads what. */
export interface GroupReader {
  readonly group: string
  readonly topics: readonly string[]
  readonly connection: KafkaConnection
}

/** Why the broker did not store a commit, as a bounded word. */
export type CommitRefusal = 'rebalance' | 'not-joined' | 'metadata-too-large' | 'busy' | 'failed'

const REBALANCE_TYPES = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS', 'NOT_COORDINATOR_FOR_GROUP'])

/** What a rejected commit means. Total. */
export function commitRefusal(error: unknown): CommitRefusal {
  const { type, message } = kafkajsFailure(error)
  if (type !== undefined && REBALANCE_TYPES.has(type)) return 'rebalance'
  if (type === 'OFFSET_METADATA_TOO_LARGE') return 'metadata-too-large'
  // Of the patched client, of kafkajs before `run`, and of its consumer after `stop`.
  if (/nothing was committed|was not initialized/.test(message)) return 'not-joined'
  return 'failed'
}

/** What kafkajs calls final though it only says that a broker is away, stops or comes back: by class, and by the broker's own answer. */
const PASSING_NAMES = new Set(['KafkaJSGroupCoordinatorNotFound', 'KafkaJSTimeout', 'KafkaJSLockTimeout'])
const PASSING_TYPES = new Set([...REBALANCE_TYPES, 'UNKNOWN', 'BROKER_NOT_AVAILABLE', 'STALE_BROKER_EPOCH', 'STALE_CONTROLLER_EPOCH'])

/**
 * The error that ends a consumer which crashed, or undefined where a new one may do better: the broker was away, or slow.
 * Source: kafkajs restarts by the same rule, apart from the plain Error that it throws for a connection lost in the wrong moment.
 */
export function fatalCrash(error: unknown, reader: GroupReader): MillraceError | undefined {
  const { group, topics, connection } = reader
  const denial = denied(connection, `reading ${topics.join(', ')} in group ${group}`, error)
  if (denial !== undefined) return denial
  const { type, name, message } = kafkajsFailure(error)
  if (name === 'KafkaJSNotImplemented') {
    const codec = message.replace(/ compression not implemented$/, '')
    return new MillraceError(
      'KAFKA_CONSUMER_CRASHED',
      `a message read by group ${group} is compressed with ${codec}, for which no codec is installed; set compression.type=gzip on the topic, or install one`,
      { cause: error, context: { group } },
    )
  }
  if (type === undefined ? PASSING_NAMES.has(name) : PASSING_TYPES.has(type)) return undefined
  if (isRestartable(error, message)) return undefined
  return new MillraceError('KAFKA_CONSUMER_CRASHED', `the consumer of group ${group} crashed: ${type ?? name}: ${errorText(error)}`, {
    cause: error,
    context: { group },
  })
}

function isRestartable(error: unknown, message: string): boolean {
  if (message === 'Broker not connected') return true
  if (error instanceof Error && error.name === 'KafkaJSNumberOfRetriesExceeded') return true
  const root = [...causesOf(error)].at(-1) as { readonly retriable?: unknown } | undefined
  return root?.retriable === true
}

/** The error of a group that could not be joined at all. */
export function startFailure(error: unknown, group: string, topics: readonly string[]): MillraceError {
  if (error instanceof MillraceError) return error
  // A defect is not to be taken for a network that is down.
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) {
    return new MillraceError('INTERNAL', `group ${group} could not be joined: ${error.message}`, { cause: error, context: { group } })
  }
  const { type } = kafkajsFailure(error)
  if (type === 'UNKNOWN_TOPIC_OR_PARTITION' || type === 'INVALID_TOPIC_EXCEPTION') {
    const text = `not all topics that group ${group} reads exist: ${topics.join(', ')}`
    return new MillraceError('KAFKA_TOPIC_MISSING', text, { cause: error, context: { group } })
  }
  return new MillraceError('KAFKA_UNREACHABLE', `group ${group} could not be joined: ${errorText(error)}`, {
    cause: error,
    context: { group },
  })
}

interface Silence {
  readonly group: string
  /** Since it fetched or joined last. */
  readonly silentMs: number
  /** How long it may try to come back. */
  readonly awayMs: number
  readonly rebalanceTimeoutMs: number
  readonly requestTimeoutMs?: number | undefined
}

/** Shape: undefined while a join, which may wait for the slowest member of the group, and one request may still take so long. */
export function hungConsumer({
  group,
  silentMs,
  awayMs,
  rebalanceTimeoutMs,
  requestTimeoutMs = 30_000,
}: Silence): MillraceError | undefined {
  if (silentMs <= rebalanceTimeoutMs + requestTimeoutMs + 5_000 + awayMs) return undefined
  const text = `the consumer of group ${group} has not fetched for ${Math.round(silentMs / 1000)} s`
  return new MillraceError('KAFKA_CONSUMER_CRASHED', text, { context: { group } })
}
