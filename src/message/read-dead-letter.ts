import { HEADER, type Headers, headerValue } from './header-names.ts'

/** What a dead letter says of itself; anything may be absent when another program wrote it. */
export interface DeadLetterInfo {
  readonly stage: string | undefined
  readonly code: string | undefined
  readonly message: string | undefined
  readonly reason: string | undefined
  readonly attempt: number | undefined
  /** Epoch ms of the first failure. */
  readonly firstMs: number | undefined
  readonly extractor: string | undefined
  /** Id of the replay that wrote it. */
  readonly replay: string | undefined
  /** The message that its producer wrote. */
  readonly original: OriginalPlace | undefined
  /** Set where parts of the original were cut. */
  readonly truncated:
    | { readonly parts: readonly string[]; readonly fullLength: number | undefined; readonly fullSha256: string | undefined }
    | undefined
}

export interface OriginalPlace {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  /** Epoch ms. */
  readonly timestamp: number | undefined
}

/** Shape: total; a header that is not what it should be counts as absent. */
export function readDeadLetter(headers: Headers): DeadLetterInfo {
  const text = (name: string): string | undefined => headerValue(headers, name)
  const parts = text(HEADER.truncated)
  return {
    stage: text(HEADER.stage),
    code: text(HEADER.errorCode),
    message: text(HEADER.errorMessage),
    reason: text(HEADER.reason),
    attempt: integer(text(HEADER.attempt)),
    firstMs: integer(text(HEADER.firstMs)),
    extractor: text(HEADER.extractor),
    replay: text(HEADER.replay),
    original: readOrigin(headers),
    truncated:
      parts === undefined
        ? undefined
        : { parts: parts.split(','), fullLength: integer(text(HEADER.fullLength)), fullSha256: text(HEADER.fullSha256) },
  }
}

/** Where the message was first read from; undefined for one that no stage has copied yet. */
export function readOrigin(headers: Headers): OriginalPlace | undefined {
  const topic = headerValue(headers, HEADER.origTopic)
  const partition = integer(headerValue(headers, HEADER.origPartition))
  const offset = headerValue(headers, HEADER.origOffset)
  if (topic === undefined || partition === undefined || offset === undefined || !/^\d{1,19}$/.test(offset)) return undefined
  return { topic, partition, offset: BigInt(offset), timestamp: integer(headerValue(headers, HEADER.origTimestamp)) }
}

function integer(text: string | undefined): number | undefined {
  return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined
}
