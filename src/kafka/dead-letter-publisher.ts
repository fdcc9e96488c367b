import { type DeadLetterContext, deadLetter } from '../message/dead-letter.ts'
import type { OriginalMessage } from '../message/header-names.ts'
import type { TopicNames } from '../message/topics.ts'
import { partitionFor } from '../url/partition.ts'
import type { LayoutSource } from './layout.ts'
import type { OutgoingMessage } from './message.ts'
import { BATCH_OVERHEAD_BYTES } from './outgoing.ts'

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
    const count = layout().partitionsOf(topics.deadLetters)
    const { key, value, headers } = deadLetter(original, context, maxBytes - BATCH_OVERHEAD_BYTES)
    return {
      topic: topics.deadLetters,
      partition: key === null ? original.partition % count : partitionFor(key, count),
      key,
      value,
      headers,
    }
  }
}
