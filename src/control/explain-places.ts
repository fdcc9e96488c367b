import type { KafkaMessage } from '../kafka/message.ts'
import { isMillraceError } from '../kernel/errors.ts'
import { completeTask } from '../message/complete-task.ts'
import { decodeTask } from '../message/decode-task.ts'
import type { Outcome, Page, UrlTask } from '../message/generated/types.ts'
import { HEADER, headerValue } from '../message/header-names.ts'
import { LANES } from '../message/topics.ts'
import { canonicalUrl } from '../url/canonical-url.ts'
import { partitionFor } from '../url/partition.ts'
import { registrableDomain } from '../url/registrable-domain.ts'
import { type ListedDeadLetter, listedDeadLetters } from './dead-letters.ts'
import type { Runtime } from './runtime.ts'
import { searchMessages } from './search-messages.ts'
import { searchTexts } from './url-search.ts'
import { waitingBounds } from './waiting-bounds.ts'

/** A message of a task that its stage has not finished. */
export interface WaitingTask {
  readonly taskId: string
  readonly crawlId: string | null
  readonly attempt: number
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
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

export interface PagePlace {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
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
/** The page and its outcome are written in one go; clocks of two machines lie between the times of html. */
const PAGE_MARGIN_MS = 60_000

/**
 * Looks for a URL where it can be: its key is known, so that is one partition of each topic. Of the lanes and the delay topics what is
 * not finished, of outcomes and dead letters all.
 */
export async function findUrl(runtime: Runtime, url: URL, signal?: AbortSignal): Promise<UrlPlaces> {
  const search = new UrlSearch(runtime, url, signal)
  const [waiting, outcomes, deadLetters] = await Promise.all([search.waiting(), search.outcomes(), search.deadLetters()])
  const page = await search.page(outcomes)
  return { waiting, outcomes, page, deadLetters, isComplete: search.isComplete, bytes: search.bytes }
}

class UrlSearch {
  readonly #runtime: Runtime
  readonly #signal: AbortSignal | undefined
  readonly #canonicalUrl: string
  readonly #domain: string
  readonly #texts: readonly Buffer[]
  isComplete = true
  bytes = 0

  constructor(runtime: Runtime, url: URL, signal: AbortSignal | undefined) {
    this.#runtime = runtime
    this.#signal = signal
    this.#canonicalUrl = canonicalUrl(url)
    this.#domain = registrableDomain(url)
    this.#texts = searchTexts(url)
  }

  async waiting(): Promise<WaitingTask[]> {
    const { topics } = this.#runtime
    const bounds = await waitingBounds(this.#runtime)
    const found = await Promise.all(
      [...LANES.map((lane) => topics.urls[lane]), ...topics.delays.map(({ topic }) => topic)].map(async (topic) => {
        const partition = await this.#partitionOf(topic, this.#domain)
        const range = bounds.rangeOf({ topic, partition })
        if (range === undefined) return []
        const tasks: WaitingTask[] = []
        for await (const message of this.#messages(topic, partition, { from: range.first, until: range.end })) {
          const task = bounds.isWaiting(message) ? this.#task(message, range.first) : undefined
          if (task !== undefined) tasks.push(task)
        }
        return tasks
      }),
    )
    return found.flat()
  }

  async outcomes(): Promise<Outcome[]> {
    const { topics, codec } = this.#runtime
    const partition = await this.#partitionOf(topics.outcomes, this.#canonicalUrl)
    const found: Outcome[] = []
    for await (const { value } of this.#messages(topics.outcomes, partition)) {
      const outcome = readable(() => codec.decode('Outcome', value))
      if (outcome?.canonicalUrl === this.#canonicalUrl) found.push(outcome)
    }
    return found
  }

  async deadLetters(): Promise<ListedDeadLetter[]> {
    const { topics } = this.#runtime
    const topic = topics.deadLetters
    const partitions = new Set([await this.#partitionOf(topic, this.#domain), await this.#partitionOf(topic, this.#canonicalUrl)])
    const found = await Promise.all(
      [...partitions].map(async (partition) => {
        const own: KafkaMessage[] = []
        for await (const message of this.#messages(topic, partition, { maxBytes: MAX_DEAD_LETTER_BYTES }))
          if (this.#hasKey(message) || this.#isTaskOfUrl(message)) own.push(message)
        return own
      }),
    )
    return listedDeadLetters(this.#runtime, found.flat())
  }

  /** Where the page of the last fetch lies: it was written with its outcome. */
  async page(outcomes: readonly Outcome[]): Promise<PagePlace | null> {
    const { topics, codec, admin } = this.#runtime
    const fetched = outcomes.findLast(({ kind }) => kind === 'FETCHED')
    if (fetched === undefined) return null
    const partition = await this.#partitionOf(topics.html, this.#canonicalUrl)
    const from = (await admin.offsetsForTime(topics.html, fetched.at - PAGE_MARGIN_MS)).get(partition)
    if (from === undefined) return null
    let found: PagePlace | null = null
    for await (const message of this.#messages(topics.html, partition, { from, maxBytes: MAX_PAGE_BYTES })) {
      if (!this.#hasKey(message)) continue
      const { topic, offset, value } = message
      const page: Page | undefined = readable(() => codec.decode('Page', value))
      if (page?.fetchId === fetched.fetchId) found = { topic, partition, offset, fetchedAt: page.fetchedAt, status: page.status }
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
    const task = this.#readTask(message)
    if (task === undefined || !this.#isOfUrl(task)) return undefined
    const { topic, partition, offset, headers } = message
    const isDelayed = this.#runtime.topics.delays.some((delay) => delay.topic === topic)
    const due = Number(headerValue(headers, HEADER.dueMs))
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
      dueAt: isDelayed && Number.isFinite(due) ? due : null,
      reason: isDelayed ? (headerValue(headers, HEADER.reason) ?? null) : null,
      notBefore,
      expiresAt,
    }
  }

  #isTaskOfUrl(message: KafkaMessage): boolean {
    const task = this.#readTask(message)
    return task !== undefined && this.#isOfUrl(task)
  }

  #readTask({ topic, partition, offset, timestamp, value }: KafkaMessage): UrlTask | undefined {
    const { codec, clusterId, topics } = this.#runtime
    const lane = LANES.find((name) => topics.urls[name] === topic)
    return readable(
      () =>
        completeTask(decodeTask(codec, value), {
          clusterId,
          topic,
          partition,
          offset,
          timestamp,
          ...(lane === undefined ? {} : { lane }),
        }).task,
    )
  }

  #isOfUrl({ canonicalUrl: own, url }: UrlTask): boolean {
    return own === this.#canonicalUrl || (URL.canParse(url) && canonicalUrl(new URL(url)) === this.#canonicalUrl)
  }

  async #partitionOf(topic: string, key: string): Promise<number> {
    const layout = await this.#runtime.layout()
    return partitionFor(key, layout().partitionsOf(topic))
  }
}

/** What can't be decoded is a dead letter, and no answer. */
function readable<T>(decode: () => T): T | undefined {
  try {
    return decode()
  } catch (error) {
    if (isMillraceError(error) && error.disposition === 'dead-letter') return undefined
    throw error
  }
}
