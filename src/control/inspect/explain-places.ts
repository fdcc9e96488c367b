import { partitionsOfKey } from '../../kafka/layout.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import type { MessagePlace, TopicPartition } from '../../kernel/brand.ts'
import { putAside } from '../../message/due-time.ts'
import type { Outcome, Page } from '../../message/generated/types.ts'
import { HEADER, headerValue } from '../../message/header-names.ts'
import { isPutBack } from '../../message/put-back.ts'
import { readTask } from '../../message/read-task.ts'
import { readable } from '../../message/readable.ts'
import { laneTopics, taskTopics } from '../../message/topics.ts'
import { canonicalUrl } from '../../url/canonical-url.ts'
import { registrableDomain } from '../../url/registrable-domain.ts'
import { isTaskOf, searchTexts } from '../crawls/url-search.ts'
import type { ListedDeadLetter } from '../dead-letters/dead-letters.ts'
import { type WaitingBounds, waitingBounds } from '../groups/waiting-bounds.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { mergeByTime } from './merge-by-time.ts'
import { searchMessages } from './search-messages.ts'
import { deadLettersOf } from './url-dead-letters.ts'

/** A message of a task that its stage has not finished. */
export interface WaitingTask extends MessagePlace {
  readonly taskId: string
  readonly crawlId: string | null
  readonly attempt: number
  readonly lane: string | null
  /** Messages of the partition between the first that is not finished and this one. */
  readonly before: number
  /** Epoch ms at which it comes back to its lane; null in a lane. */
  readonly dueAt: number | null
  /** Why it waits in a delay topic: spill, not-before, or the reason of the last attempt; null in a lane. */
  readonly reason: string | null
  /** Epoch ms; null: none. */
  readonly notBefore: number | null
  readonly expiresAt: number | null
}

export interface PagePlace extends MessagePlace {
  readonly fetchedAt: number
  readonly status: number
}

/** All that the topics hold about a URL. */
export interface UrlPlaces {
  readonly waiting: readonly WaitingTask[]
  /** In the order in which they were written. */
  readonly outcomes: readonly Outcome[]
  /** Of the last fetch; null where there was none, or it has left the log. */
  readonly page: PagePlace | null
  readonly deadLetters: readonly ListedDeadLetter[]
  /** False where a topic was longer than is searched. */
  readonly isComplete: boolean
  /** Bytes of the logs that were looked at. */
  readonly bytes: number
}

/** Of topics that can be large: pages that failed lie whole among dead letters. */
const MAX_DEAD_LETTER_BYTES = 268_435_456
const MAX_PAGE_BYTES = 134_217_728
/** Of the lanes beside the partitions of the key, all together: more than a million URLs. */
const MAX_ELSEWHERE_BYTES = 536_870_912
/** The page and its outcome are written in one go; clocks of two machines lie between the times of html. */
const PAGE_MARGIN_MS = 60_000

/**
 * Looks for a URL where it can be: its key is known, so that is one partition of each topic, and those that the key had before partitions
 * were added. Of the lanes and the delay topics what is not finished, of outcomes and dead letters all. Others than we may write to any
 * partition of a lane, so where nothing was found there the rest of the lanes is searched.
 */
export async function findUrl(runtime: Runtime, url: URL, signal?: AbortSignal): Promise<UrlPlaces> {
  const search = new UrlSearch(runtime, url, signal)
  // Before the rest is read: a task that ends meanwhile is still waiting by them, and one that had ended has its outcome in the log.
  const bounds = await waitingBounds(runtime)
  const [near, outcomes, deadLetters] = await Promise.all([search.waiting(bounds), search.outcomes(), search.deadLetters()])
  const isFound = near.length + outcomes.length + deadLetters.length > 0
  const waiting = isFound ? near : await search.waitingElsewhere(bounds)
  const page = await search.page(outcomes)
  return { waiting, outcomes, page, deadLetters, isComplete: search.isComplete, bytes: search.bytes }
}

class UrlSearch {
  readonly #runtime: Runtime
  readonly #signal: AbortSignal | undefined
  readonly #url: URL
  readonly #canonicalUrl: string
  readonly #domain: string
  readonly #texts: readonly Buffer[]
  isComplete = true
  bytes = 0

  constructor(runtime: Runtime, url: URL, signal: AbortSignal | undefined) {
    this.#runtime = runtime
    this.#signal = signal
    this.#url = url
    this.#canonicalUrl = canonicalUrl(url)
    this.#domain = registrableDomain(url)
    this.#texts = searchTexts(url)
  }

  async waiting(bounds: WaitingBounds): Promise<WaitingTask[]> {
    const { topics } = this.#runtime
    const places: TopicPartition[] = []
    for (const topic of taskTopics(topics))
      for (const partition of await this.#partitionsOf(topic, this.#domain)) places.push({ topic, partition })
    const found = await Promise.all(places.map((place) => this.#waitingAt(place, bounds)))
    return found.flat()
  }

  /**
   * In the lanes, where a producer of another kind may have put it: without a key, or by a number of partitions that only Kafka knew of.
   */
  async waitingElsewhere(bounds: WaitingBounds): Promise<WaitingTask[]> {
    const { topics, admin } = this.#runtime
    const found: WaitingTask[] = []
    const bytesBefore = this.bytes
    for (const topic of laneTopics(topics)) {
      const near = await this.#partitionsOf(topic, this.#domain)
      for (const partition of (await admin.partitions(topic)).filter((each) => !near.includes(each))) {
        const maxBytes = MAX_ELSEWHERE_BYTES - (this.bytes - bytesBefore)
        if (maxBytes > 0) found.push(...(await this.#waitingAt({ topic, partition }, bounds, maxBytes)))
        else this.isComplete = false
      }
    }
    return found
  }

  async #waitingAt({ topic, partition }: TopicPartition, bounds: WaitingBounds, maxBytes?: number): Promise<WaitingTask[]> {
    const range = bounds.rangeOf({ topic, partition })
    if (range === undefined) return []
    const tasks: WaitingTask[] = []
    const limit = maxBytes === undefined ? {} : { maxBytes }
    for await (const message of this.#messages(topic, partition, { from: range.first, until: range.end, ...limit })) {
      const task = bounds.isWaiting(message) ? this.#task(message, range.first) : undefined
      if (task !== undefined) tasks.push(task)
    }
    return tasks
  }

  async outcomes(): Promise<Outcome[]> {
    const { topics, codec } = this.#runtime
    const found = await Promise.all(
      (await this.#partitionsOf(topics.outcomes, this.#canonicalUrl)).map(async (partition) => {
        const own: Outcome[] = []
        for await (const { value } of this.#messages(topics.outcomes, partition)) {
          const outcome = readable(() => codec.decode('Outcome', value))
          if (outcome?.canonicalUrl === this.#canonicalUrl) own.push(outcome)
        }
        return own
      }),
    )
    return mergeByTime(found, ({ at }) => at)
  }

  deadLetters(): Promise<ListedDeadLetter[]> {
    const topic = this.#runtime.topics.deadLetters
    const messages = (partition: number): AsyncIterable<KafkaMessage> =>
      this.#messages(topic, partition, { maxBytes: MAX_DEAD_LETTER_BYTES })
    return deadLettersOf(this.#runtime, this.#url, messages)
  }

  /** Where the page of the last fetch lies: it was written with its outcome. */
  async page(outcomes: readonly Outcome[]): Promise<PagePlace | null> {
    const { topics, codec, admin } = this.#runtime
    const fetched = outcomes.findLast(({ kind }) => kind === 'FETCHED')
    if (fetched === undefined) return null
    const starts = await admin.offsetsForTime(topics.html, fetched.at - PAGE_MARGIN_MS)
    let found: PagePlace | null = null
    for (const partition of await this.#partitionsOf(topics.html, this.#canonicalUrl)) {
      const from = starts.get(partition)
      if (from === undefined) continue
      for await (const message of this.#messages(topics.html, partition, { from, maxBytes: MAX_PAGE_BYTES })) {
        // What was put back of it lies behind it; it counts where the page itself is gone.
        if (!this.#hasKey(message) || (found !== null && isPutBack(message.headers))) continue
        const { topic, offset, value } = message
        const page: Page | undefined = readable(() => codec.decode('Page', value))
        if (page?.fetchId === fetched.fetchId) found = { topic, partition, offset, fetchedAt: page.fetchedAt, status: page.status }
      }
    }
    return found
  }

  /** Of a range with a bound no more than that is looked at. */
  #messages(
    topic: string,
    partition: number,
    { maxBytes, ...range }: { readonly from?: bigint; readonly until?: bigint; readonly maxBytes?: number } = {},
  ): AsyncIterable<KafkaMessage> {
    let left = maxBytes ?? Number.POSITIVE_INFINITY
    const looked = (bytes: number): boolean => {
      this.bytes += bytes
      left -= bytes
      if (left <= 0) this.isComplete = false
      return left > 0
    }
    return searchMessages(this.#runtime, { topic, partition, ...range, texts: this.#texts, signal: this.#signal, looked })
  }

  #hasKey({ key }: KafkaMessage): boolean {
    return key?.toString('utf8') === this.#canonicalUrl
  }

  #task(message: KafkaMessage, first: bigint): WaitingTask | undefined {
    const task = readable(() => readTask(this.#runtime, message))?.task
    if (task === undefined || !isTaskOf(this.#canonicalUrl, task)) return undefined
    const { topic, partition, offset, headers } = message
    const isDelayed = this.#runtime.topics.delays.some((delay) => delay.topic === topic)
    const { taskId, crawlId, attempt, lane, notBefore, expiresAt } = task
    return {
      taskId,
      crawlId,
      attempt,
      topic,
      partition,
      offset,
      lane,
      before: Number(offset - first),
      dueAt: isDelayed ? (putAside(message, this.#runtime.clock.now())?.dueAt ?? null) : null,
      reason: isDelayed ? (headerValue(headers, HEADER.reason) ?? null) : null,
      notBefore,
      expiresAt,
    }
  }

  async #partitionsOf(topic: string, key: string): Promise<readonly number[]> {
    const layout = await this.#runtime.layout()
    return partitionsOfKey(layout(), topic, key)
  }
}
