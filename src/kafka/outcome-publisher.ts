import type { MessageCodec } from '../message/codec.ts'
import type { UrlTask } from '../message/generated/types.ts'
import { outcomeOf, type TaskEnd } from '../message/outcome.ts'
import type { TopicNames } from '../message/topics.ts'
import { makeTraceParent } from '../message/trace.ts'
import { partitionFor } from '../url/partition.ts'
import type { LayoutSource } from './layout.ts'
import type { OutgoingMessage } from './message.ts'

export interface OutcomePublisherOptions {
  readonly topics: Pick<TopicNames, 'outcomes'>
  readonly codec: MessageCodec
  readonly layout: LayoutSource
}

/** Builds the messages of `outcomes`: keyed by the canonical URL, so that all outcomes of a URL lie in one partition. */
export class OutcomePublisher {
  readonly #options: OutcomePublisherOptions

  constructor(options: OutcomePublisherOptions) {
    this.#options = options
  }

  /** To be awaited before the first message, so that its readers can know the schema. Errors: as of `MessageCodec.prepare`. */
  async prepare(): Promise<void> {
    await this.#options.codec.prepare(this.#options.topics.outcomes, 'Outcome')
  }

  message(task: UrlTask, end: TaskEnd): OutgoingMessage {
    const { codec, layout, topics } = this.#options
    const topic = topics.outcomes
    return {
      topic,
      partition: partitionFor(task.canonicalUrl, layout().partitionsOf(topic)),
      key: task.canonicalUrl,
      value: codec.encode('Outcome', outcomeOf(task, end), topic),
      headers: codec.headers('Outcome', task.traceId === null ? undefined : makeTraceParent(task.traceId)),
    }
  }
}
