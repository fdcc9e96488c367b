import type { Lane, UrlTask } from './generated/types.ts'
import { HEADER, type Headers, headerValue } from './header-names.ts'
import { LANES } from './topics.ts'

/**
 * The lane of what comes of a task: its page and so its links, a hop to another domain, the task that its dead letter becomes. A challenge
 * has moved the later attempts of the task alone.
 */
export function askedLane(headers: Headers, task: Pick<UrlTask, 'lane'>): Lane | null {
  const asked = headerValue(headers, HEADER.askedLane)
  return LANES.find((lane) => lane === asked) ?? task.lane
}
