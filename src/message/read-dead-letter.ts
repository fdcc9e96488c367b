import { HEADER, type Headers, headerInteger, headerValue, type OriginalPlace, readOrigin } from './header-names.ts'
import { copiedPlace } from './put-back.ts'

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
  /** Of a page that was put back: where the copy lies that failed. */
  readonly copy: { readonly partition: number; readonly offset: bigint } | undefined
  /** Set where parts of the original were cut. */
  readonly truncated:
    | { readonly parts: readonly string[]; readonly fullLength: number | undefined; readonly fullSha256: string | undefined }
    | undefined
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
    attempt: headerInteger(headers, HEADER.attempt),
    firstMs: headerInteger(headers, HEADER.firstMs),
    extractor: text(HEADER.extractor),
    replay: text(HEADER.replay),
    original: readOrigin(headers),
    copy: copiedPlace(headers),
    truncated:
      parts === undefined
        ? undefined
        : { parts: parts.split(','), fullLength: headerInteger(headers, HEADER.fullLength), fullSha256: text(HEADER.fullSha256) },
  }
}
