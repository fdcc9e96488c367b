import type { MessageCodec } from './codec.ts'
import { type CompletedTask, completeTask } from './complete-task.ts'
import { decodeTask } from './decode-task.ts'
import { HEADER, headerValue, type OriginalMessage } from './header-names.ts'
import { laneOf, type TopicNames } from './topics.ts'

/** What the messages of one deployment are read by. */
export interface TaskSource {
  readonly codec: MessageCodec
  readonly topics: Pick<TopicNames, 'urls'>
  /** Names the log in ids of foreign tasks. */
  readonly clusterId: string
}

/**
 * The task that a message of a lane or a delay topic is: decoded, and filled in by where it lies, so that all who read it have the same
 * task.
 * Errors: as of `decodeTask`; a URL that can't be fetched is none.
 */
export function readTask(
  { codec, topics, clusterId }: TaskSource,
  { topic, partition, offset, timestamp, value, headers }: Omit<OriginalMessage, 'key'>,
): CompletedTask {
  const [lane, traceparent] = [laneOf(topics, topic), headerValue(headers, HEADER.traceparent)]
  return completeTask(decodeTask(codec, value), { clusterId, topic, partition, offset, timestamp, lane, traceparent })
}
