import { type DeadLetterContext, deadLetter } from '../message/dead-letter.ts'
import type { OriginalMessage } from '../message/header-names.ts'
import type { TopicNames } from '../message/topics.ts'
import { partitionFor } from '../url/partition.ts'
import type { LayoutSource } from './layout.ts'
import type { OutgoingMessage } from './message.ts'

export interface DeadLetterPublisherOptions {
  readonly topics: Pick<TopicNames, 'deadLetters'>
  readonly layout: LayoutSource
  /** Largest batch that the broker takes for dead-letters. */
  readonly maxBytes: number
}

/** Builds the messages of `dead-letters`: original key and bytes, context in headers. */
export class DeadLetterPublisher {
  readonly #options: DeadLetterPublisherOptions

  constructor(options: DeadLetterPublisherOptions) {
    this.#options = options
  }

  message(original: OriginalMessage, context: DeadLetterContext): OutgoingMessage {
    const { topics, layout, maxBytes } = this.#options
    const topic = topics.deadLetters
    return deadLetterMessage(original, context, { topic, partitionCount: layout().partitionsOf(topic), maxBytes })
  }
}

/**
 * The dead letter of a message, in its partition: that of its key, and of a message without one by the partition that it lay in, where
 * `explain` looks for it. Pure. Units: `maxBytes` is of the largest batch that the broker takes.
 */
export function deadLetterMessage(
  original: OriginalMessage,
  context: DeadLetterContext,
  { topic, partitionCount, maxBytes }: { readonly topic: string; readonly partitionCount: number; readonly maxBytes: number },
): OutgoingMessage {
  // By the whole key, which may be cut in the letter.
  const partition = original.key === null ? original.partition % partitionCount : partitionFor(original.key, partitionCount)
  return { topic, partition, ...deadLetter(original, context, maxBytes) }
}
