import type { DelayTopic } from '../message/topics.ts'

/**
 * The delay topic in which a task waits next: the longest whose delay is at most the time left, else the shortest. So a task of any
 * distance is held by few topics, each of which is a queue by its time of writing; only the shortest is ordered by due time.
 * Shape: delays from the shortest to the longest, at least one. Units: ms; a time left below 0 counts as 0.
 */
export function chooseDelay(delays: readonly DelayTopic[], leftMs: number): DelayTopic {
  const [shortest] = delays
  if (shortest === undefined) throw new RangeError('there are no delay topics; expected at least one')
  return delays.findLast(({ delayMs }) => delayMs <= leftMs) ?? shortest
}
