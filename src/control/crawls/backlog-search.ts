import { searchPieces } from '../../kafka/log-search.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import { greatestOf } from '../../kernel/bigint.ts'
import { type MessagePlace, type PartitionId, partitionId, type TopicPartition } from '../../kernel/brand.ts'
import { decodeTask } from '../../message/decode-task.ts'
import { putAside } from '../../message/due-time.ts'
import type { UrlTask } from '../../message/generated/types.ts'
import { readable } from '../../message/readable.ts'
import { LANES } from '../../message/topics.ts'
import type { WaitingBounds } from '../groups/waiting-bounds.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { crawlTexts, EVERY_MESSAGE } from './url-search.ts'

/** A message of a lane or a delay topic. */
export interface Queued {
  readonly at: MessagePlace
  readonly message: KafkaMessage
  /** Epoch ms; 0 for what may be worked now. */
  readonly dueAt: number
}

/** Goes through the logs once, from what their groups have finished on, past what can be of none of the crawls; undefined: of any. */
export class BacklogSearch {
  readonly #runtime: Runtime
  readonly #topics: readonly { readonly topic: string; readonly isLane: boolean; readonly texts: readonly Buffer[] }[]
  /** Everything before this was looked at. */
  readonly #searchedTo = new Map<PartitionId, bigint>()
  readonly #firsts = new Map<PartitionId, TopicPartition & { readonly first: bigint }>()

  constructor(runtime: Runtime, crawlIds: readonly string[] | undefined) {
    const { topics } = runtime
    const texts = (by: 'us' | 'anyone'): readonly Buffer[] => crawlIds?.flatMap((crawlId) => crawlTexts(crawlId, by)) ?? EVERY_MESSAGE
    this.#runtime = runtime
    this.#topics = [
      ...LANES.map((lane) => ({ topic: topics.urls[lane], isLane: true, texts: texts('anyone') })),
      ...topics.delays.map(({ topic }) => ({ topic, isLane: false, texts: texts('us') })),
    ]
  }

  /** True where a group stands before what it had finished, so that what was passed over counts again. */
  isRewound(bounds: WaitingBounds): boolean {
    let isBack = false
    for (const [id, at] of this.#firsts) {
      const first = bounds.rangeOf(at)?.first ?? at.first
      isBack ||= first < at.first
      this.#firsts.set(id, { ...at, first })
    }
    return isBack
  }

  restart(): void {
    this.#searchedTo.clear()
  }

  /** `hidden`: messages that are there and can't be read, behind an open transaction. */
  async *next(bounds: WaitingBounds, signal?: AbortSignal): AsyncGenerator<Queued | 'hidden'> {
    const { admin, clock } = this.#runtime
    for (const { topic, isLane, texts } of this.#topics) {
      for (const [partition, end] of await admin.endOffsets(topic, 'read_committed')) {
        const id = partitionId(topic, partition)
        const range = bounds.rangeOf({ topic, partition })
        const first = range?.first ?? 0n
        this.#firsts.set(id, { topic, partition, first })
        const from = greatestOf(this.#searchedTo.get(id) ?? 0n, first)
        for await (const { messages, searchedTo } of searchPieces(admin.session, { topic, partition, from, until: end, texts, signal })) {
          for (const message of messages) {
            yield {
              at: { topic, partition, offset: message.offset },
              message,
              dueAt: isLane ? 0 : (putAside(message, clock.now())?.dueAt ?? 0),
            }
            // Not before it was looked at: a look that fails at it, or ends with it, begins with it the next time.
            this.#searchedTo.set(id, message.offset + 1n)
          }
          this.#searchedTo.set(id, searchedTo)
        }
        if (range !== undefined && end < range.end) yield 'hidden'
      }
    }
  }
}

/** Undefined where it is no task: its stage makes a dead letter of it. */
export async function taskOfQueued({ codec }: Pick<Runtime, 'codec'>, { value }: KafkaMessage): Promise<UrlTask | undefined> {
  await codec.ensureSchemas([value])
  return readable(() => decodeTask(codec, value))
}
