import type { BlobReader } from '../blobs/blob-store.ts'
import { loadBody } from '../blobs/load-body.ts'
import type { KafkaClient } from '../kafka/client.ts'
import type { ConsumerSettings } from '../kafka/consumer-settings.ts'
import { headerText, type KafkaMessage } from '../kafka/message.ts'
import type { TaskPublisher } from '../kafka/task-publisher.ts'
import { type WindowEntry, WindowedConsumer } from '../kafka/windowed-consumer.ts'
import { backoffMs } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText, isMillraceError } from '../kernel/errors.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import { decodeText } from '../message/charset.ts'
import type { MessageCodec } from '../message/codec.ts'
import type { Page } from '../message/generated/types.ts'
import { HEADER, ONLY_STAGE } from '../message/header-names.ts'
import { unpackPageBody } from '../message/page-body.ts'
import type { StateStore } from '../state/state-store.ts'
import { type ScopeVerdict, TRAP_REASONS } from '../url/scope.ts'
import { type Candidate, isFollowed, pageCandidates } from './frontier-page.ts'
import { LinkScanner } from './links.ts'

export interface FrontierWorkerOptions {
  readonly client: KafkaClient
  readonly groupId: string
  /** The topic of pages. */
  readonly topic: string
  readonly codec: MessageCodec
  readonly publisher: TaskPublisher
  /** Where bodies lie that were too large for their message; left out: their links are not found. */
  readonly blobs?: BlobReader
  readonly state: StateStore
  readonly inScope: (url: URL, seed: URL) => ScopeVerdict
  /** Narrows the links of a page, where an extractor that matches it says so. */
  readonly narrowLinks: (page: Page, links: readonly string[]) => readonly string[]
  /** True when a further page of the domain would pass the budget of the crawl: its links are not followed. */
  readonly isBudgetFull: (crawlId: string, domain: string) => Promise<boolean>
  readonly isCrawlStopped: (crawlId: string) => boolean
  /** How long a claim of a task with `dedup: ttl` lives. */
  readonly claimTtlMs: number
  /** Keeps a page whose links could not be followed, with the reason; settled when it is acknowledged. */
  readonly bury: (message: KafkaMessage, error: unknown, signal: AbortSignal) => Promise<void>
  readonly settings?: ConsumerSettings
  readonly observer: Observer
  readonly clock: Clock
}

/** Pages scanned at the same time: most of their time is waiting for acknowledgements. */
const PAGES_AT_ONCE = 8
/** A larger text is scanned in pieces of this size with a breath between. */
const PIECE_CHARACTERS = 131_072
const MAX_BYTES = 33_554_432
const RETRY = { firstMs: 100, maxMs: 5_000 } as const

/**
 * Discovery: reads html in a group of its own and turns links into tasks. A replay of extraction does not move this group, so it
 * finds no links.
 *
 * Order per page: claim, produce, accept, complete. A page that is read again recognises its own claims and produces the same tasks
 * once more, with the same ids; nothing is lost between the steps, and fetch drops what it has finished.
 */
export class FrontierWorker extends BaseService {
  readonly #options: FrontierWorkerOptions
  readonly #consumer: WindowedConsumer
  readonly #waiting: WindowEntry[] = []
  #running = 0

  constructor(options: FrontierWorkerOptions) {
    super()
    this.#options = options
    const { client, groupId, topic, settings, observer, clock } = options
    this.#consumer = new WindowedConsumer({
      client,
      groupId,
      topics: [topic],
      maxBytes: MAX_BYTES,
      settings: { maxBytesPerPartition: 1_048_576, ...settings },
      onEntries: (entries) => {
        this.#waiting.push(...entries)
        this.#pump()
      },
      observer,
      clock,
    })
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    await this.#options.publisher.prepare()
    this.releases.add('consumer', () => this.#consumer.stop({ mode: 'abort', timeoutMs: 0 }))
    this.#consumer.closed.catch((error: unknown) => this.fail(error))
    await this.#consumer.start({ signal })
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    const late = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
    await Promise.race([this.#consumer.stop({ mode: 'drain', timeoutMs: 600_000 }), late])
  }

  #pump(): void {
    while (this.#running < PAGES_AT_ONCE && !this.aborted.signal.aborted) {
      const entry = this.#waiting.shift()
      if (entry === undefined) return
      if (!entry.isCurrent()) continue
      this.#running += 1
      this.#work(entry)
        .catch((error: unknown) => this.fail(error))
        .finally(() => {
          this.#running -= 1
          this.#pump()
        })
    }
  }

  /** Tries until it is done: what fails here is a store or a broker that is away, and the page must not be lost for that. */
  async #work(entry: WindowEntry): Promise<void> {
    const { clock, observer } = this.#options
    for (let attempt = 1; !this.aborted.signal.aborted && entry.isCurrent(); attempt += 1) {
      try {
        await this.#follow(entry)
        entry.complete()
        return
      } catch (error) {
        if (this.aborted.signal.aborted) return
        if (isMillraceError(error) && error.disposition === 'stop') throw error
        if (!isMillraceError(error) || error.disposition !== 'retry') return await this.#skip(entry, error)
        observer.emit('FrontierRetried', { error: errorText(error) })
        const pause = backoffMs(RETRY, attempt, 0.5)
        await clock.sleep(pause, this.aborted.signal).catch(() => undefined)
      }
    }
  }

  /** Something in this one page: it is kept as a dead letter, the partition goes on. */
  async #skip(entry: WindowEntry, error: unknown): Promise<void> {
    const { topic, partition, offset } = entry.message
    this.#options.observer.emit('PageSkipped', { topic, partition, offset, error: errorText(error) })
    await this.#options.bury(entry.message, error, this.aborted.signal)
    entry.complete()
  }

  async #follow(entry: WindowEntry): Promise<void> {
    const page = await this.#pageOf(entry)
    if (page === undefined || !isFollowed(page)) return
    const crawlId = page.crawlId ?? ''
    if (this.#options.isCrawlStopped(crawlId)) return
    const links = this.#options.narrowLinks(page, await this.#linksOf(page))
    const { candidates, refused } = pageCandidates(page, links, this.#options.inScope)
    for (const [verdict, count] of refused) this.#count(verdict, count)
    const trap = TRAP_REASONS.find((reason) => refused.has(reason))
    if (trap !== undefined) this.#options.observer.emit('SiteTrapped', { host: new URL(page.finalUrl).hostname, reason: trap })
    const { topic, partition, offset } = entry.message
    await this.#produce(crawlId, `${topic}:${partition}:${offset}`, await this.#withinBudget(crawlId, candidates))
  }

  /** A message that is no page is extract's to bury: it reads every message of this topic too. */
  async #pageOf(entry: WindowEntry): Promise<Page | undefined> {
    const only = headerText(entry.message.headers, HEADER.only)
    if (only !== undefined && only !== ONLY_STAGE.frontier) return undefined
    try {
      await this.#options.codec.ensureSchemas([entry.message.value])
      return this.#options.codec.decode('Page', entry.message.value)
    } catch (error) {
      if (isMillraceError(error) && error.disposition === 'dead-letter') return undefined
      throw error
    }
  }

  async #linksOf(page: Page): Promise<string[]> {
    const loaded = await loadBody(page, this.#options.blobs)
    const body = loaded.ok ? await unpackPageBody(loaded.page) : loaded
    // A body that is missing or does not unpack is extract's to bury.
    if (!body.ok) return []
    const text = decodeText(body.bytes, page.charset)
    const scanner = new LinkScanner()
    for (let start = 0; start < text.length; start += PIECE_CHARACTERS) {
      if (start > 0) await this.#options.clock.sleep(0)
      scanner.write(text.slice(start, start + PIECE_CHARACTERS))
    }
    return scanner.end(page.finalUrl)
  }

  async #withinBudget(crawlId: string, candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    const full = new Map<string, boolean>()
    for (const { domain } of candidates) if (!full.has(domain)) full.set(domain, await this.#options.isBudgetFull(crawlId, domain))
    const within = candidates.filter(({ domain }) => full.get(domain) === false)
    this.#count('over-budget', candidates.length - within.length)
    return within
  }

  async #produce(crawlId: string, claimant: string, candidates: readonly Candidate[]): Promise<void> {
    const { state, publisher, claimTtlMs, clock } = this.#options
    if (candidates.length === 0) return
    const claims = candidates.map(({ task }) => ({
      crawlId,
      canonicalUrl: task.canonicalUrl,
      round: task.round,
      claimant,
      ...(task.dedup === 'ttl' ? { ttlMs: claimTtlMs } : {}),
    }))
    const verdicts = await state.claim(claims)
    const ours = candidates.filter((_, index) => verdicts[index] !== 'known')
    this.#count('known', candidates.length - ours.length)
    if (ours.length === 0) return
    const now = clock.now()
    await publisher.publish(
      ours.map(({ task }) => ({ ...task, enqueuedAt: now })),
      { signal: this.aborted.signal },
    )
    await state.accept(
      crawlId,
      ours.map(({ task }) => task.taskId),
    )
    this.#count('followed', ours.length)
  }

  #count(verdict: string, count: number): void {
    if (count > 0) this.#options.observer.emit('LinksFound', { verdict, count })
  }
}
