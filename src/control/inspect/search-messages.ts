import { searchPieces } from '../../kafka/log-search.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import type { TopicPartition } from '../../kernel/brand.ts'
import type { Runtime } from '../runtime/runtime.ts'

export interface MessageSearch extends TopicPartition {
  readonly texts: readonly Buffer[]
  /** What retention has left where not given. */
  readonly from?: bigint
  /** The end that can be read now where not given. */
  readonly until?: bigint
  readonly signal?: AbortSignal | undefined
  /** Is told the bytes of the log that were looked at, piece by piece; false ends the search. */
  readonly looked?: (bytes: number) => boolean
}

/**
 * Messages of a partition in whose bytes one of the texts lies, in order, their schemas known. A text may lie in very many: one piece of
 * the log is held at a time, so whoever keeps few of them takes no more memory.
 */
export async function* searchMessages({ admin, codec }: Runtime, search: MessageSearch): AsyncGenerator<KafkaMessage> {
  const { topic, partition, texts, signal, looked } = search
  const from = search.from ?? (await admin.earliestOffsets(topic)).get(partition) ?? 0n
  const until = search.until ?? (await admin.endOffsets(topic, 'read_committed')).get(partition) ?? 0n
  const pieces = searchPieces(admin.session, { topic, partition, from, until, texts, signal })
  for await (const { messages, bytes } of pieces) {
    const goesOn = looked?.(bytes) ?? true
    await codec.ensureSchemas(messages.map(({ value }) => value))
    yield* messages
    if (!goesOn) return
  }
}
