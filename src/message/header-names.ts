import type { MessagePlace } from '../kernel/brand.ts'

/** Headers of our messages; values are UTF-8 text, numbers in decimal, times as epoch ms. */
export const HEADER = {
  traceparent: 'traceparent',
  contentType: 'content-type',
  /** `<full name>:<fingerprint>`. */
  schema: 'millrace-schema',
  attempt: 'millrace-attempt',
  dueMs: 'millrace-due-ms',
  /** When a task was put aside, by the clock that its due time is by. */
  putMs: 'millrace-put-ms',
  /** When the message failed first. */
  firstMs: 'millrace-first-ms',
  reason: 'millrace-reason',
  /** Of a task that was put aside: since when the slots of its site count, as far as its worker knew; none: it knew of no such moment. */
  slotsMs: 'millrace-slots-ms',
  /** Of a task that a challenge has put into the low lane: the lane that was asked for, which is that of what comes of it. */
  askedLane: 'millrace-asked-lane',
  errorCode: 'millrace-error-code',
  errorMessage: 'millrace-error-message',
  origTopic: 'millrace-orig-topic',
  origPartition: 'millrace-orig-partition',
  origOffset: 'millrace-orig-offset',
  origTimestamp: 'millrace-orig-timestamp',
  stage: 'millrace-stage',
  /** `NAME:VERSION` of the extractor that a dead letter of extract is about. */
  extractor: 'millrace-extractor',
  /** Id of the replay that wrote a dead letter of extract, and on the page that is put back of it; one that failed live has none. */
  replay: 'millrace-replay',
  /** What of the original does not stand in the dead letter whole: `value`, `key`, `headers`, comma-separated. */
  truncated: 'millrace-truncated',
  /** Length and sha256 of the whole original value, where it is cut. */
  fullLength: 'millrace-full-length',
  fullSha256: 'millrace-full-sha256',
  /** Version of the layout under which a task was sent to its right partition. */
  moved: 'millrace-moved',
  /** Whom a requeued page is meant for: an extractor by its name, or one of `ONLY_STAGE`. Everybody else passes it over. */
  only: 'millrace-only',
  /** `PARTITION:OFFSET` of the dead letter that a requeued task or page was. */
  requeued: 'millrace-requeued',
  /** `PARTITION:OFFSET` on html of the message that a page which was put back is a copy of; see `put-back.ts`. */
  copyOf: 'millrace-copy-of',
  /** Why a whole batch of messages stands here as it lies in the log, packed, in one message: nothing in it could be read. */
  unreadBatch: 'millrace-unread-batch',
} as const

/** Why a copy waits whose task is not to be fetched before a time, in `millrace-reason`. */
export const NOT_BEFORE = 'not-before'
/** The same where the places of its page budget are held by other tasks, which may give one back. */
export const NO_PLACE = 'page-budget'
/** The same where all proxies of its site are left out; its time is that of the next try. */
export const NO_PROXY = 'proxies-out'

/** Largest time that a Date can hold; what a header says beyond it is no time. Epoch ms. */
export const MAX_TIME = 8_640_000_000_000_000

/** Values of `millrace-only` that no extractor can have as its name. */
export const ONLY_STAGE = { extract: '@extract', frontier: '@frontier' } as const

/** Headers as they come from Kafka or go to it. */
export type Headers = Readonly<Record<string, string | Buffer>>

/** Where a message lies, and what it holds; a message as read from Kafka has this shape. */
export interface OriginalMessage extends MessagePlace {
  /** Epoch ms. */
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Headers
}

/** Text of a header; undefined where it is absent. */
export function headerValue(headers: Headers, name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name]?.toString() : undefined
}

/**
 * Where a message was first read from. Every copy carries these, from the first copy on: they are never overwritten, so that a
 * dead letter of a retry of a moved task still names the message that its producer wrote.
 */
export function originHeaders(message: OriginalMessage): Record<string, string> {
  if (headerValue(message.headers, HEADER.origTopic) !== undefined) {
    const kept = [HEADER.origTopic, HEADER.origPartition, HEADER.origOffset, HEADER.origTimestamp]
    return Object.fromEntries(kept.map((name) => [name, headerValue(message.headers, name) ?? '']))
  }
  return {
    [HEADER.origTopic]: message.topic,
    [HEADER.origPartition]: String(message.partition),
    [HEADER.origOffset]: String(message.offset),
    [HEADER.origTimestamp]: String(message.timestamp),
  }
}

export interface OriginalPlace extends MessagePlace {
  /** Epoch ms. */
  readonly timestamp: number | undefined
}

/** Where the message was first read from; undefined for one that no stage has copied yet. */
export function readOrigin(headers: Headers): OriginalPlace | undefined {
  const topic = headerValue(headers, HEADER.origTopic)
  const partition = headerInteger(headers, HEADER.origPartition)
  const offset = headerValue(headers, HEADER.origOffset)
  if (topic === undefined || partition === undefined || offset === undefined || !/^\d{1,19}$/.test(offset)) return undefined
  return { topic, partition, offset: BigInt(offset), timestamp: headerInteger(headers, HEADER.origTimestamp) }
}

/** Shape: undefined for what is absent, and for what is no time that a Date can hold. Units: epoch ms. */
export function headerTime(headers: Headers, name: string): number | undefined {
  const text = headerValue(headers, name)
  if (text === undefined || !/^\d{1,16}$/.test(text)) return undefined
  const value = Number(text)
  return value <= MAX_TIME ? value : undefined
}

/** Shape: undefined for what is absent, and for what is no number. */
export function headerInteger(headers: Headers, name: string): number | undefined {
  const text = headerValue(headers, name)
  return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined
}
