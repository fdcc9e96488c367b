import { putAside } from '../message/due-time.ts'
import { HEADER, headerValue, type OriginalMessage } from '../message/header-names.ts'

export interface DelayTimes {
  /** Epoch ms by the clock that put it aside. */
  readonly dueAt: number
  /** ms from now until the task may go back to its lane; negative where it could have. */
  readonly dueInMs: number
  /** ms from now until this topic is done with it: due, or long enough here to go to a shorter one. */
  readonly wakeInMs: number
}

/**
 * When a message of a delay topic is due, and until when this topic holds it. The shortest topic holds until due; the others for their
 * own delay since it was put there, so that each is a plain queue.
 *
 * Nothing was put aside later than now: where the message says so, our clock was set back, and what counts is the time since then.
 * Else all that waits would wait for those hours as well.
 * Shape: undefined where the header is there and no time. A message without one is due at once. Units: `now` is epoch ms.
 */
export function delayTimes(
  message: OriginalMessage,
  topic: { readonly delayMs: number; readonly isShortest: boolean },
  now: number,
): DelayTimes | undefined {
  const isTold = headerValue(message.headers, HEADER.dueMs) !== undefined
  const times = isTold ? putAside(message, now) : { dueAt: message.timestamp, putAt: message.timestamp }
  if (times === undefined) return undefined
  const { dueAt, putAt } = times
  const base = Math.max(now, putAt)
  const wakeAt = topic.isShortest ? dueAt : Math.min(dueAt, putAt + topic.delayMs)
  return { dueAt, dueInMs: dueAt - base, wakeInMs: wakeAt - base }
}
