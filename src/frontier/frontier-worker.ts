import type { BlobReader } from '../blobs/blob-store.ts'
import { loadBody } from '../blobs/load-body.ts'
import type { KafkaClient } from '../kafka/client.ts'
import type { ConsumerSettings } from '../kafka/consumer-settings.ts'
import type { DeadLetterPublisher } from '../kafka/dead-letter-publisher.ts'
import { headerText, type KafkaMessage } from '../kafka/message.ts'
import type { MessageProducer } from '../kafka/producer.ts'
import type { TaskPublisher } from '../kafka/task-publisher.ts'
import type { WindowEntry } from '../kafka/window-entry.ts'
import { WindowedConsumer } from '../kafka/windowed-consumer.ts'
import { unlessAborted } from '../kernel/abort.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { type Clock, slept } from '../kernel/clock.ts'
import { endsStage, errorText, isAway, isMillraceError, MillraceError } from '../kernel/errors.ts'
import { Fifo } from '../kernel/fifo.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import { RecentSet } from '../kernel/recent-set.ts'
import { AwaitedSchemas } from '../message/awaited-schemas.ts'
import { decodeText } from '../message/charset.ts'
import type { MessageCodec } from '../message/codec.ts'
import { type DeadLetterContext, deadLetterEvent } from '../message/dead-letter.ts'
import type { Page, UrlTask } from '../message/generated/types.ts'
import { HEADER, ONLY_STAGE } from '../message/header-names.ts'
import { brokenBodyCode, unpackPageBody } from '../message/page-body.ts'
import type { StateStore } from '../state/state-store.ts'
import { type ScopeVerdict, TRAP_REASONS } from '../url/scope.ts'
import { batchSize, type Candidate, type LinkBatch, pageCandidates, readAs } from './frontier-page.ts'
import { LinkSet } from './link-set.ts'
import { LinkScanner } from './links.ts'
import { namedSitemaps, sitemapLinks } from './sitemap-links.ts'

/** Which links of a page are followed. */
export interface LinkChoice {
  /** Of elements that extractors select, by extractor: those that pass. */
  readonly selected: readonly SelectedLinks[]
  /** Of the links by tags those that pass; undefined: none is, and the page need not be read. */
  readonly byTags: ((link: string) => boolean) | undefined
}

export interface SelectedLinks {
  /** Absolute. */
  readonly links: readonly string[]
  readonly passes: (link: string) => boolean
}

export interface FrontierWorkerOptions {
  readonly client: KafkaClient
  readonly groupId: string
  /** The topic of pages. */
  readonly topic: string
  readonly codec: MessageCodec
  readonly publisher: TaskPublisher
  readonly producer: MessageProducer
  readonly deadLetters: DeadLetterPublisher
  /** Where bodies lie that were too large for their message; left out: such pages are dead letters. */
  readonly blobs?: BlobReader
  readonly state: StateStore
  readonly inScope: (url: URL, seed: URL) => ScopeVerdict
  /** Different links of a page that are looked at; the rest is counted alone. */
  readonly maxLinksPerPage: number
  /** What the extractors that match the page say of its links. Errors: for a page whose links can't be selected. */
  readonly linksOf: (page: Page, source: Pick<KafkaMessage, 'topic' | 'partition' | 'offset'>) => Promise<LinkChoice>
  /** The sitemaps that robots.txt of an origin names; undefined: it is not known here. Left out: no sitemap is read. */
  readonly sitemapsOf?: (origin: string) => Promise<readonly string[] | undefined>
  /** True when no further page of the domain will ever be within the budget of the crawl: its links are not followed. */
  readonly isBudgetFull: (task: UrlTask) => Promise<boolean>
  /** True when the crawl has so many URLs that those of further sitemaps would hardly find a place. */
  readonly isWellFilled: (crawlId: string) => Promise<boolean>
  readonly isCrawlStopped: (crawlId: string) => boolean
  /** How long a claim of a task with `dedup: ttl` lives. */
  readonly claimTtlMs: number
  readonly settings?: ConsumerSettings
  readonly observer: Observer
  readonly clock: Clock
}

const STAGE = 'frontier'
/** Pages scanned at the same time: most of their time is waiting for acknowledgements. */
const PAGES_AT_ONCE = 8
/** A larger text is scanned in pieces of this size with a breath between. */
const PIECE_CHARACTERS = 131_072
const MAX_BYTES = 33_554_432
/** After that the store is asked again whether the sitemaps of an origin are published. */
const NOTED_MS = 3_600_000
/** Links of extractors that are compared with each other in one turn. */
const SELECTED_AT_ONCE = 10_000
const RETRY = { firstMs: 100, maxMs: 5_000 } as const

/**
 * Discovery: reads html in a group of its own and turns links into tasks. A replay of extraction does not move this group, so it
 * finds no links.
 *
 * Order per batch of links: claim, produce, accept; the page is complete after the last one. A page that is read again recognises its own
 * claims, also where it stands at another offset by then, and produces the same tasks once more, with the same ids; nothing is lost between
 * the steps, and fetch drops what it has finished.
 *
 * Whoever makes a page decides how many links it has: they are worked in batches, one in a turn of the event loop, which other stages
 * share.
 */
export class FrontierWorker extends BaseService {
  readonly #options: FrontierWorkerOptions
  readonly #consumer: WindowedConsumer
  readonly #schemas: AwaitedSchemas
  readonly #waiting = new Fifo<WindowEntry>()
  /** Crawl, round and origin whose sitemaps are known to be published, with the hour in which that was asked. */
  readonly #noted = new RecentSet(10_000)
  #running = 0
  #lastBreath: Promise<void> = Promise.resolve()

  constructor(options: FrontierWorkerOptions) {
    super()
    this.#options = options
    const { client, groupId, topic, codec, settings, observer, clock } = options
    // By what is away the page is tried again, and the log says so.
    this.#schemas = new AwaitedSchemas({ codec, clock, observer, whenAway: 'throw' })
    this.#consumer = new WindowedConsumer({
      client,
      groupId,
      topics: [topic],
      maxBytes: MAX_BYTES,
      settings: { maxBytesPerPartition: 1_048_576, ...settings },
      onEntries: (entries) => {
        for (const entry of entries) this.#waiting.push(entry)
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
    await unlessAborted(signal, () => this.#consumer.stop({ mode: 'drain', timeoutMs: 600_000 }))
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
    const progress: Progress = { finished: new Set(), told: 0 }
    for (let attempt = 1; !this.aborted.signal.aborted && entry.isCurrent(); attempt += 1) {
      try {
        await this.#follow(entry, progress)
        entry.complete()
        return
      } catch (error) {
        if (this.aborted.signal.aborted) return
        if (endsStage(error)) throw error
        // Whoever owns its partition by now reads it too.
        if (!entry.isCurrent()) return
        if (!isAway(error)) return await this.#skip(entry, error)
        observer.emit('FrontierRetried', { error: errorText(error) })
        await slept(clock, backoffMs(RETRY, attempt, Math.random()), this.aborted.signal)
      }
    }
  }

  /**
   * Something in this one page: it is kept as a dead letter, the partition goes on. One of its own, also where extract has one of the page:
   * what is put back of that goes to the extractor that failed, and no other stage reads it.
   */
  async #skip(entry: WindowEntry, error: unknown): Promise<void> {
    const { producer, deadLetters, observer, clock } = this.#options
    const { topic, partition, offset } = entry.message
    const context: DeadLetterContext = {
      stage: STAGE,
      code: isMillraceError(error) ? error.code : 'INTERNAL',
      message: errorText(error),
      failedAt: clock.now(),
    }
    observer.emit('PageSkipped', { topic, partition, offset, error: context.message })
    await producer.send([deadLetters.message(entry.message, context)], { signal: this.aborted.signal })
    observer.emit('DeadLetterWritten', deadLetterEvent(entry.message, context))
    entry.complete()
  }

  /** Stops where the partition has gone to another owner, who reads the page too, and where the crawl is stopped meanwhile. */
  async #follow(entry: WindowEntry, progress: Progress): Promise<void> {
    const page = await this.#pageOf(entry)
    if (page === undefined) return
    const kind = readAs(page)
    if (kind === undefined || (kind === 'sitemap' && this.#options.sitemapsOf === undefined)) return
    const crawlId = page.crawlId ?? ''
    const { finished } = progress
    let index = 0
    if (this.#options.isCrawlStopped(crawlId)) return
    for await (const batch of kind === 'html' ? this.#inPage(page, entry.message) : this.#inSitemap(page)) {
      if (!entry.isCurrent() || this.#options.isCrawlStopped(crawlId)) return
      const { candidates, refused } = pageCandidates(page, batch, this.#options.inScope)
      if (index >= progress.told) this.#tellRefused(page, refused)
      index += 1
      progress.told = Math.max(progress.told, index)
      const fresh = candidates.filter(({ identity }) => !finished.has(identity))
      const isOver = kind === 'sitemap' && (await this.#options.isWellFilled(crawlId))
      const within = isOver ? [] : await this.#withinBudget(fresh)
      this.#count('over-budget', fresh.length - within.length)
      await this.#produce(crawlId, batch.claimant, within)
      for (const { identity } of fresh) finished.add(identity)
      await this.#breath()
    }
  }

  /** What is followed, so many at a time that it holds up nobody. */
  async *#inPage(page: Page, source: KafkaMessage): AsyncGenerator<LinkBatch> {
    yield* this.#sitemapsOf(page)
    const from = { foundOn: page.finalUrl, claimant: page.fetchId }
    for await (const links of this.#links(page, source)) yield { links, to: 'pages', ...from }
  }

  /**
   * Once in a crawl for each origin, of whichever page comes first: all of them are one claimant, its robots.txt, and that they are
   * published is noted once they are. So a crash between the two costs nothing but the same tasks once more.
   */
  async *#sitemapsOf(page: Page): AsyncGenerator<LinkBatch> {
    const { sitemapsOf, state, clock } = this.#options
    const { origin } = new URL(page.finalUrl)
    const { round } = page
    const crawlId = page.crawlId ?? ''
    // A crawl of the same name may begin anew while this process lives, but no sooner than hours after its end.
    const key = `${Math.floor(clock.mono() / NOTED_MS)} ${crawlId} ${round} ${origin}`
    if (sitemapsOf === undefined || this.#noted.has(key)) return
    const note = { crawlId, canonicalUrl: `sitemaps of ${origin}`, round, claimant: 'published' }
    const [noted] = await state.lookUpClaims([note])
    if (noted === 'new') {
      const urls = await sitemapsOf(origin)
      if (urls === undefined) return
      yield* namedSitemaps(urls, `${origin}/robots.txt`, batchSize(page))
      await state.claim([note])
    }
    this.#noted.add(key)
  }

  /** What it turns out to be none of, a user may have given as a page: that is told of what should have been one alone. */
  async *#inSitemap(page: Page): AsyncGenerator<LinkBatch> {
    const { kind, passedOver } = yield* sitemapLinks(page, await this.#bodyOf(page), {
      size: batchSize(page),
      breath: () => this.#breath(),
    })
    if (kind === 'none' && page.sitemapLevel > 0) this.#count('not-a-sitemap', 1)
    if (kind !== 'none' && page.truncated !== null) this.#count('sitemap-cut', 1)
    this.#tellPassedOver(page, passedOver)
  }

  async *#links(page: Page, { topic, partition, offset }: KafkaMessage): AsyncGenerator<readonly string[]> {
    const { linksOf, maxLinksPerPage } = this.#options
    const { selected, byTags } = await linksOf(page, { topic, partition, offset })
    const size = batchSize(page)
    let [left, passedOver] = [maxLinksPerPage, 0]
    for (const { links, passes } of selected) {
      const chosen = new LinkSet(left)
      await this.#fill(chosen, links)
      for (const batch of chosen.batches(undefined, size)) yield batch.filter(passes)
      left -= chosen.size
      passedOver += chosen.passedOver
    }
    if (byTags !== undefined) {
      const found = new LinkSet(left)
      const base = await this.#scan(page, found)
      for (const batch of found.batches(base, size)) yield batch.filter(byTags)
      passedOver += found.passedOver
    }
    this.#tellPassedOver(page, passedOver)
  }

  async #fill(set: LinkSet, links: readonly string[]): Promise<void> {
    for (let start = 0; start < links.length; start += SELECTED_AT_ONCE) {
      if (start > 0) await this.#breath()
      for (const link of links.slice(start, start + SELECTED_AT_ONCE)) set.add(link)
    }
  }

  #tellPassedOver(page: Page, passedOver: number): void {
    this.#count('too-many-links', passedOver)
    if (passedOver > 0) {
      const host = new URL(page.finalUrl).hostname
      this.#options.observer.emit('LinksPassedOver', { host, url: page.finalUrl, count: passedOver })
    }
  }

  #tellRefused(page: Page, refused: ReadonlyMap<string, number>): void {
    for (const [verdict, count] of refused) this.#count(verdict, count)
    const trap = TRAP_REASONS.find((reason) => refused.has(reason))
    if (trap !== undefined) this.#options.observer.emit('SiteTrapped', { host: new URL(page.finalUrl).hostname, reason: trap })
  }

  /** A turn of the event loop for each of the pages that are worked at the same time: what one does in it is all that it holds up. */
  #breath(): Promise<void> {
    this.#lastBreath = this.#lastBreath.then(() => this.#options.clock.nextTurn())
    return this.#lastBreath
  }

  /** Shape: undefined for one that was put back for another reader. Errors: of what can't be read, also where extract keeps it as well. */
  async #pageOf({ message }: WindowEntry): Promise<Page | undefined> {
    const only = headerText(message.headers, HEADER.only)
    if (only !== undefined && only !== ONLY_STAGE.frontier) return undefined
    await this.#schemas.learn([message], this.aborted.signal)
    return this.#options.codec.decode('Page', message.value)
  }

  /** Decoded. Errors: of a body that is not there, or does not unpack. */
  async #bodyOf(page: Page): Promise<Buffer> {
    const loaded = await loadBody(page, this.#options.blobs)
    if (!loaded.ok) throw new MillraceError(loaded.code, loaded.detail)
    const body = await unpackPageBody(loaded.page)
    if (!body.ok) throw new MillraceError(brokenBodyCode(page), body.detail)
    return body.bytes
  }

  /** Adds what its tags say. Shape: what the links are relative to. */
  async #scan(page: Page, links: LinkSet): Promise<string | undefined> {
    const text = decodeText(await this.#bodyOf(page), page.charset)
    const scanner = new LinkScanner(links, page.charset)
    for (let start = 0; start < text.length; start += PIECE_CHARACTERS) {
      if (start > 0) await this.#breath()
      scanner.write(text.slice(start, start + PIECE_CHARACTERS))
    }
    return scanner.end(page.finalUrl)
  }

  /** Asked once for each domain of a batch, no longer: budgets fill while a page or a sitemap is read. */
  async #withinBudget(candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    const isFull = new Map<string, Promise<boolean>>()
    const full = await Promise.all(
      candidates.map(({ task, domain }) => {
        const key = `${task.sitemapLevel > 0} ${domain}`
        const known = isFull.get(key) ?? this.#options.isBudgetFull(task)
        isFull.set(key, known)
        return known
      }),
    )
    return candidates.filter((_, index) => full[index] === false)
  }

  async #produce(crawlId: string, claimant: string, candidates: readonly Candidate[]): Promise<void> {
    const { state, publisher, claimTtlMs, clock } = this.#options
    if (candidates.length === 0) return
    const claims = candidates.map(({ task, identity }) => ({
      crawlId,
      canonicalUrl: identity,
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

/** What is kept of a page while it is tried again: a store that comes and goes does not make its links be published again and again. */
interface Progress {
  /** Identities of links that are done, whatever extractors say of the page by then. */
  readonly finished: Set<string>
  /** Batches of which it is counted what was refused. */
  told: number
}
