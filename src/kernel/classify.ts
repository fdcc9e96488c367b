import { type Disposition, ERRORS, type ErrorCode, MillraceError } from './errors.ts'

export interface Classification {
  readonly code: ErrorCode
  readonly disposition: Disposition
  /** A bounded word for metrics and headers: the code of the system or of the library where there is one. */
  readonly reason: string
}

/** Where an unknown failure happened decides what is done with it: infrastructure stops, one message is put aside. */
export type FailureScope = 'infrastructure' | 'message'

/**
 * What to do with anything that was thrown. Total and pure: every input has an answer and it never throws.
 * Shape: any value -> code of the catalogue, disposition, reason. Unknown values `stop` in infrastructure and become a dead letter
 * in the scope of one message.
 */
export function classify(error: unknown, scope: FailureScope): Classification {
  // Ours: the catalogue has decided already.
  if (error instanceof MillraceError) return of(error.code, error.code)

  const code = textProperty(error, 'code')
  const name = textProperty(error, 'name')

  // An abort is no failure of the work: whoever aborted knows why.
  if (name === 'AbortError' || code === 'ABORT_ERR') return of('ABORTED', 'aborted')
  if (name === 'TimeoutError' || code === 'ETIMEDOUT') return of('TIMEOUT', code ?? 'timeout')

  // The disk: going on would lose data, and a retry can't help until somebody frees space.
  if (code === 'ENOSPC' || code === 'EDQUOT') return of('DISK_FULL', code)

  // Connections: the peer may come back.
  if (code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'EHOSTUNREACH' || code === 'ENETUNREACH') {
    return { code: 'KAFKA_SEND_FAILED', disposition: 'retry', reason: code }
  }

  // kafkajs names: its own retriable flag says nothing useful ("Closed connection" is not retriable by class, yet safe to resend),
  // so the decision is by content. A plain `Error: Broker not connected` comes from an assertion and heals as well.
  const type = textProperty(error, 'type') ?? textProperty(property(error, 'cause'), 'type')
  if (type === 'INVALID_PRODUCER_EPOCH' || type === 'PRODUCER_FENCED' || type === 'INVALID_TXN_STATE') return of('KAFKA_FENCED', type)
  if (type === 'ILLEGAL_GENERATION' || type === 'UNKNOWN_MEMBER_ID' || type === 'REBALANCE_IN_PROGRESS')
    return of('KAFKA_COMMIT_REFUSED', type)
  if (type === 'MESSAGE_TOO_LARGE' || type === 'RECORD_LIST_TOO_LARGE') return of('KAFKA_MESSAGE_TOO_LARGE', type)
  if (type !== undefined && isDenial(type)) return of('KAFKA_DENIED', type)
  if (type !== undefined) return { code: 'KAFKA_REQUEST_FAILED', disposition: 'retry', reason: type }
  if (name?.startsWith('KafkaJS') === true) return { code: 'KAFKA_REQUEST_FAILED', disposition: 'retry', reason: name }
  if (textProperty(error, 'message') === 'Broker not connected') return of('KAFKA_SEND_FAILED', 'not-connected')

  return scope === 'message'
    ? { code: 'INTERNAL', disposition: 'dead-letter', reason: name ?? 'unknown' }
    : of('INTERNAL', name ?? 'unknown')
}

/** The broker knows who asks, and that user may not do this: the same again fails until somebody changes the permissions. */
export function isDenial(kafkaErrorType: string): boolean {
  return kafkaErrorType.endsWith('_AUTHORIZATION_FAILED')
}

function of(code: ErrorCode, reason: string): Classification {
  return { code, disposition: ERRORS[code].disposition, reason }
}

/** A property that may throw when it is read (proxies, getters) is no property. */
function property(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  try {
    return (value as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

function textProperty(value: unknown, key: string): string | undefined {
  const found = property(value, key)
  return typeof found === 'string' ? found : undefined
}
