import { HEADER, type Headers, headerTime, type OriginalMessage } from './header-names.ts'

/** Times of a message of a delay topic. Units: epoch ms. */
export interface PutAside {
  /** When its task is due. */
  readonly dueAt: number
  /** When it was put aside, by the same clock. */
  readonly putAt: number
}

/**
 * When the task of a message of a delay topic is due, and since when it waits. What was put aside later than `now` comes from a clock that
 * was ahead of ours: then both are told by the broker's, so that it waits as long as it was meant to. Shape: undefined where the header is
 * absent, or no time.
 */
export function putAside({ headers, timestamp }: Pick<OriginalMessage, 'headers' | 'timestamp'>, now: number): PutAside | undefined {
  const dueAt = headerTime(headers, HEADER.dueMs)
  if (dueAt === undefined) return undefined
  const putAt = headerTime(headers, HEADER.putMs) ?? timestamp
  return putAt > now && putAt > timestamp ? { dueAt: dueAt - (putAt - timestamp), putAt: timestamp } : { dueAt, putAt }
}

/**
 * The headers of such a message for a copy of it: due when it was, and put aside when so much is left. What had been waited already would
 * count anew where the clock of who reads the copy was set back. Units: ms.
 */
export const headersOfCopy = (headers: Headers, dueAt: number, leftMs: number): Headers => ({
  ...headers,
  [HEADER.dueMs]: String(Math.ceil(dueAt)),
  [HEADER.putMs]: String(Math.ceil(dueAt) - Math.ceil(leftMs)),
})
