import { searchPieces } from '../kafka/log-search.ts'
import type { KafkaMessage } from '../kafka/message.ts'
import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import { isMillraceError } from '../kernel/errors.ts'
import type { MessageCodec } from '../message/codec.ts'
import { decodeTask } from '../message/decode-task.ts'
import type { UrlTask } from '../message/generated/types.ts'
import { HEADER, headerValue } from '../message/header-names.ts'
import { LANES } from '../message/topics.ts'
import type { Runtime } from './runtime.ts'
import { writtenAs } from './url-search.ts'
import { type WaitingBounds, waitingBounds } from './waiting-bounds.ts'

/** A task in a delay topic. */
export interface DelayedTask {
  readonly taskId: string
  readonly crawlId: string | null
  readonly url: string
  /** Epoch ms. */
  readonly dueAt: number
  readonly reason: string
}

type Place = TopicPartition & { readonly offset: bigint }

interface Queued {
  readonly at: Place
  readonly message: KafkaMessage
  readonly task: UrlTask
}

/**
 * What of one crawl lies on lanes and delay topics. Whoever waits for its end asks several times a second, and the backlog of another
 * crawl beside it may be of millions: each message is looked at once, however often one asks, and those of others are not decoded.
 */
export class CrawlBacklog {
  readonly #runtime: Runtime
  readonly #all: TaskSearch
  readonly #delays: TaskSearch
  /** The task that the last look found: as long as it waits there is nothing to look for. */
  #found: Place | undefined
  /** By task; the newest copy. */
  readonly #delayed = new Map<string, Queued>()

  constructor(runtime: Runtime, crawlId: string) {
    const { topics } = runtime
    const delays = topics.delays.map(({ topic }) => topic)
    this.#runtime = runtime
    this.#all = new TaskSearch(runtime, [...LANES.map((lane) => topics.urls[lane]), ...delays], crawlId)
    this.#delays = new TaskSearch(runtime, delays, crawlId)
  }

  /** A task of it lies on a topic, and is not known to be finished: a slow site of another crawl holds committed offsets back. */
  async isQueued(): Promise<boolean> {
    // Before the ends of the logs: what is finished by now has its copy, if it has one, before them.
    const bounds = await waitingBounds(this.#runtime)
    if (this.#all.isRewound(bounds)) this.#found = undefined
    if (this.#found !== undefined && bounds.isWaiting(this.#found)) return true
    this.#found = undefined
    for await (const { at } of this.#all.next(bounds)) {
      if (!bounds.isWaiting(at)) continue
      this.#found = at
      return true
    }
    return false
  }

  /** What of it waits in the delay topics. */
  async delayed(): Promise<DelayedTask[]> {
    const bounds = await waitingBounds(this.#runtime)
    if (this.#delays.isRewound(bounds)) this.#delayed.clear()
    for await (const queued of this.#delays.next(bounds)) if (bounds.isWaiting(queued.at)) this.#delayed.set(queued.task.taskId, queued)
    for (const [taskId, { at }] of this.#delayed) if (!bounds.isWaiting(at)) this.#delayed.delete(taskId)
    return [...this.#delayed.values()].map(delayedTask)
  }
}

/** Goes through the logs once, from what their groups have finished on. */
class TaskSearch {
  readonly #runtime: Runtime
  readonly #names: readonly string[]
  readonly #crawlId: string
  readonly #texts: readonly Buffer[]
  /** Everything before this was looked at. */
  readonly #searchedTo = new Map<PartitionId, bigint>()
  readonly #firsts = new Map<PartitionId, TopicPartition & { readonly first: bigint }>()

  constructor(runtime: Runtime, names: readonly string[], crawlId: string) {
    this.#runtime = runtime
    this.#names = names
    this.#crawlId = crawlId
    this.#texts = writtenAs(crawlId)
  }

  /** True where a group stands before what it had finished, so that what was passed over counts again: everything is looked at anew. */
  isRewound(bounds: WaitingBounds): boolean {
    let isBack = false
    for (const [id, at] of this.#firsts) {
      const first = bounds.rangeOf(at)?.first ?? at.first
      isBack ||= first < at.first
      this.#firsts.set(id, { ...at, first })
    }
    if (isBack) this.#searchedTo.clear()
    return isBack
  }

  async *next(bounds: WaitingBounds): AsyncGenerator<Queued> {
    const { admin } = this.#runtime
    for (const topic of this.#names) {
      for (const [partition, end] of await admin.endOffsets(topic, 'read_committed')) {
        const id = partitionId(topic, partition)
        const first = bounds.rangeOf({ topic, partition })?.first ?? 0n
        this.#firsts.set(id, { topic, partition, first })
        const searchedTo = this.#searchedTo.get(id) ?? 0n
        yield* this.#search({ topic, partition }, id, searchedTo > first ? searchedTo : first, end)
      }
    }
  }

  async *#search(at: TopicPartition, id: PartitionId, from: bigint, until: bigint): AsyncGenerator<Queued> {
    const { admin, codec } = this.#runtime
    for await (const { messages, searchedTo } of searchPieces(admin.session, { ...at, from, until, texts: this.#texts })) {
      await codec.ensureSchemas(messages.map(({ value }) => value))
      for (const message of messages) {
        const task = readTask(codec, message.value)
        // Whoever stops here goes on behind it.
        this.#searchedTo.set(id, message.offset + 1n)
        if (task?.crawlId === this.#crawlId) yield { at: { ...at, offset: message.offset }, message, task }
      }
      this.#searchedTo.set(id, searchedTo)
    }
  }
}

export function delayedTask({ task, message }: Pick<Queued, 'task' | 'message'>): DelayedTask {
  const { taskId, crawlId, url } = task
  const { headers } = message
  return { taskId, crawlId, url, dueAt: Number(headerValue(headers, HEADER.dueMs) ?? 0), reason: headerValue(headers, HEADER.reason) ?? '' }
}

/** Undefined where it is no task: its stage makes a dead letter of it. */
export function readTask(codec: MessageCodec, value: KafkaMessage['value']): UrlTask | undefined {
  try {
    return decodeTask(codec, value)
  } catch (error) {
    if (isMillraceError(error) && error.disposition === 'dead-letter') return undefined
    throw error
  }
}
