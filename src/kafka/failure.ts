import { causesOf, MillraceError } from '../kernel/errors.ts'
import type { KafkaConnection } from './connection.ts'

/** A failure of kafkajs by its content; its own retriable flag says little. */
export interface KafkajsFailure {
  /** Name of the Kafka error code where the broker answered with one: `NOT_LEADER_FOR_PARTITION`. */
  readonly type: string | undefined
  /** Class of the innermost error that says something: `KafkaJSConnectionError`. */
  readonly name: string
  readonly message: string
}

/** Type, class and text of anything thrown by kafkajs. It wraps what happened, so the causes are looked at too. Total. */
export function kafkajsFailure(error: unknown): KafkajsFailure {
  let type: string | undefined
  let name = 'unknown'
  let message = ''
  for (const each of causesOf(error)) {
    const found = each as { readonly type?: unknown; readonly name?: unknown; readonly message?: unknown }
    if (typeof found.type === 'string' && type === undefined) type = found.type
    if (typeof found.name === 'string') name = found.name
    if (typeof found.message === 'string') message = found.message
  }
  return { type, name, message }
}

/** The broker knows who asks, and that user may not do this: the same again fails until somebody changes the permissions. */
export function isDenial(kafkaErrorType: string): boolean {
  return kafkaErrorType.endsWith('_AUTHORIZATION_FAILED')
}

/** The error of a call that its user may not do; undefined where it failed for another reason. `what` names the resource. */
export function denied(connection: KafkaConnection, what: string, error: unknown): MillraceError | undefined {
  const { type } = kafkajsFailure(error)
  if (type === undefined || !isDenial(type)) return undefined
  const user = connection.sasl?.username
  const who = user === undefined ? unnamed(connection) : `user ${user}`
  return new MillraceError('KAFKA_DENIED', `${what}: the brokers do not allow it to ${who} (${type})`, {
    cause: error,
    context: { user, type },
  })
}

/** A certificate is a user too, by a name that the brokers make of it. */
function unnamed({ tls }: KafkaConnection): string {
  return tls?.material.cert === undefined ? 'whoever does not log in' : `the user of ${tls.names.cert}`
}

/** What a failed send means for what was in it. */
export type SendFailure =
  /** Of a connection, a leader, a coordinator: the same again, later. */
  | { readonly kind: 'retry'; readonly reason: string; readonly cause: unknown }
  /** A batch is over its topic's limit. */
  | { readonly kind: 'too-large'; readonly reason: string; readonly cause: unknown }
  /** The topic or a partition of it does not exist, or is not known yet. */
  | { readonly kind: 'unknown-partition'; readonly reason: string; readonly cause: unknown }
  /** This user may not write to the topic, or not see it. */
  | { readonly kind: 'denied'; readonly reason: string; readonly cause: unknown }
  /** The broker takes no message of that time: one of the two clocks is wrong, which says nothing against the message. */
  | { readonly kind: 'wrong-time'; readonly reason: string; readonly cause: unknown }
  /** The broker takes no message like this one: no resend mends it. */
  | { readonly kind: 'refused'; readonly reason: string; readonly cause: unknown }

const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'])
const UNKNOWN = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'INVALID_TOPIC_EXCEPTION', 'UNKNOWN_TOPIC_ID'])
const REFUSED = new Set(['INVALID_RECORD', 'UNSUPPORTED_FOR_MESSAGE_FORMAT', 'INVALID_REQUIRED_ACKS'])

/** Total and pure. Unknown failures are retried: giving up would lose what was accepted. */
export function sendFailure(error: unknown): SendFailure {
  const { type, name } = kafkajsFailure(error)
  const reason = type ?? name
  if (type !== undefined && TOO_LARGE.has(type)) return { kind: 'too-large', reason, cause: error }
  if (type !== undefined && UNKNOWN.has(type)) return { kind: 'unknown-partition', reason, cause: error }
  if (type !== undefined && isDenial(type)) return { kind: 'denied', reason, cause: error }
  if (type === 'INVALID_TIMESTAMP') return { kind: 'wrong-time', reason, cause: error }
  if (type !== undefined && REFUSED.has(type)) return { kind: 'refused', reason, cause: error }
  // Thrown by the patched client, or where the metadata of the topic has not come yet.
  if (type === undefined && name === 'KafkaJSMetadataNotLoaded') return { kind: 'unknown-partition', reason, cause: error }
  // TypeErrors too: kafkajs throws them when a connection goes away while it looks for another one.
  return { kind: 'retry', reason, cause: error }
}
