import { createHash } from 'node:crypto'
import type { ErrorCode } from '../kernel/errors.ts'
import type { EventFields } from '../kernel/observe.ts'
import { HEADER, type Headers, headerValue, type OriginalMessage, originHeaders } from './header-names.ts'
import { copiedHeaders } from './put-back.ts'

export interface DeadLetterContext {
  /** fetch, delay, extract or frontier. */
  readonly stage: string
  readonly code: ErrorCode
  /** For people: what failed, the value, what was expected. Cut at 1,000 characters. */
  readonly message: string
  /** Bounded code, as it stands in the outcome. */
  readonly reason?: string
  readonly attempt?: number
  /** Epoch ms of this failure; kept as `millrace-first-ms` unless the message has failed before. */
  readonly failedAt: number
  /** `NAME:VERSION`. */
  readonly extractor?: string
  /** Where a replay wrote it. */
  readonly replayId?: string
}

/** Key, value and headers of a dead letter; topic and partition are the caller's. */
export interface DeadLetterMessage {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, string | Buffer>>
}

const KEPT_BYTES = 65_536
const MESSAGE_CHARACTERS = 1_000
/**
 * What Kafka's record format adds to a record and its batch, and to each of its headers, at most; and the headers that tell what was cut.
 */
const RECORD_OVERHEAD = 512
const HEADER_OVERHEAD = 10

/**
 * A message that was given up on: the original bytes and headers, and in headers of ours where they came from and why.
 * Shape: fits in `maxBytes`, down to some KiB: a value that would not is cut to its first 64 KiB, and its length and sha256 are kept. Where
 * that is too much, key, headers and value have a quarter of it each: each refusal of a topic whose limit nobody knows makes the next one
 * smaller by a quarter or more.
 */
export function deadLetter(original: OriginalMessage, context: DeadLetterContext, maxBytes: number): DeadLetterMessage {
  const own = ownHeaders(original, context)
  const cut: string[] = []
  const keptBytes = Math.min(KEPT_BYTES, Math.max(0, Math.floor((maxBytes - RECORD_OVERHEAD - headerBytes(own)) / 4)))
  const foreign = keptHeaders(original.headers, own, keptBytes)
  if (foreign.dropped) cut.push('headers')
  const key = original.key !== null && original.key.length > keptBytes ? original.key.subarray(0, keptBytes) : original.key
  if (key !== original.key) cut.push('key')
  const around = RECORD_OVERHEAD + (key?.length ?? 0) + headerBytes(own) + headerBytes(foreign.headers)
  let value = original.value
  const isTight = (value?.length ?? 0) + around > maxBytes || (cut.length > 0 && keptBytes < KEPT_BYTES)
  if (value !== null && isTight && value.length > keptBytes) {
    own[HEADER.fullLength] = String(value.length)
    own[HEADER.fullSha256] = createHash('sha256').update(value).digest('hex')
    value = value.subarray(0, keptBytes)
    cut.unshift('value')
  }
  if (cut.length > 0) own[HEADER.truncated] = cut.join(',')
  return { key, value, headers: { ...foreign.headers, ...own } }
}

/** What `DeadLetterWritten` tells, whichever stage wrote it: where the message lies that was given up on, and why. */
export function deadLetterEvent(original: OriginalMessage, context: DeadLetterContext): EventFields {
  const { topic, partition, offset } = original
  const { stage, code, extractor } = context
  return { stage, code, topic, partition, offset, ...(extractor === undefined ? {} : { extractor }), text: reasonText(original, context) }
}

function ownHeaders(original: OriginalMessage, context: DeadLetterContext): Record<string, string> {
  const attempt = context.attempt === undefined ? headerValue(original.headers, HEADER.attempt) : String(context.attempt)
  return {
    ...originHeaders(original),
    ...copiedHeaders(original),
    [HEADER.firstMs]: headerValue(original.headers, HEADER.firstMs) ?? String(context.failedAt),
    [HEADER.stage]: context.stage,
    [HEADER.errorCode]: context.code,
    [HEADER.errorMessage]: shortened(reasonText(original, context)),
    ...(context.reason === undefined ? {} : { [HEADER.reason]: context.reason }),
    ...(attempt === undefined ? {} : { [HEADER.attempt]: attempt }),
    ...(context.extractor === undefined ? {} : { [HEADER.extractor]: context.extractor }),
    ...(context.replayId === undefined ? {} : { [HEADER.replay]: context.replayId }),
  }
}

/** What its bytes look like says little of a batch that nobody could unpack. */
function reasonText({ headers }: OriginalMessage, { message }: DeadLetterContext): string {
  return headerValue(headers, HEADER.unreadBatch) ?? message
}

/** Headers of the original that fit; those of an earlier life as a dead letter give way to the new ones. */
function keptHeaders(headers: Headers, own: Headers, keptBytes: number): { headers: Record<string, string | Buffer>; dropped: boolean } {
  const replaced: ReadonlySet<string> = new Set([
    ...Object.keys(own),
    HEADER.replay,
    // Its word is in the error message by now; a task that is made of the letter is no batch.
    HEADER.unreadBatch,
    HEADER.truncated,
    HEADER.fullLength,
    HEADER.fullSha256,
  ])
  const kept: Record<string, string | Buffer> = {}
  let bytes = 0
  let dropped = false
  for (const [name, value] of Object.entries(headers)) {
    if (replaced.has(name)) continue
    const size = name.length + value.length + HEADER_OVERHEAD
    if (bytes + size > keptBytes || name === '__proto__') {
      dropped = true
      continue
    }
    bytes += size
    kept[name] = value
  }
  return { headers: kept, dropped }
}

function headerBytes(headers: Headers): number {
  return Object.entries(headers).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + HEADER_OVERHEAD,
    0,
  )
}

function shortened(text: string): string {
  return text.length > MESSAGE_CHARACTERS ? `${text.slice(0, MESSAGE_CHARACTERS)}…` : text
}
