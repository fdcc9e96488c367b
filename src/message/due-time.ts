import { HEADER, type Headers, headerTime, type OriginalMessage } from './header-names.ts'

/**
 * When the task of a message of a delay topic is due, by the clock of the message's own time. A broker refuses messages from hours ahead, and
 * one that was put aside by such a clock is sent again once that is right: it waits as long as it was meant to, from then on.
 * Shape: undefined where the header is absent, or no time. Units: epoch ms.
 */
export function dueTime({ headers, timestamp }: Pick<OriginalMessage, 'headers' | 'timestamp'>): number | undefined {
  const dueAt = headerTime(headers, HEADER.dueMs)
  const putAt = headerTime(headers, HEADER.putMs)
  return dueAt === undefined || putAt === undefined ? dueAt : dueAt - Math.max(0, putAt - timestamp)
}

/** The headers of such a message for a copy of it, which has a time of its own: due as it is, whatever the clock that put it aside. */
export function dueAsItIs(original: Pick<OriginalMessage, 'headers' | 'timestamp'>): Headers {
  const { [HEADER.putMs]: _, ...headers } = original.headers
  const dueAt = dueTime(original)
  return dueAt === undefined ? headers : { ...headers, [HEADER.dueMs]: String(dueAt) }
}
