import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { isMeantFor } from '../../extract/match.ts'
import { readMessages, readOne } from '../../kafka/log-reader.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import { partitionId } from '../../kernel/brand.ts'
import { type ErrorCode, isMillraceError } from '../../kernel/errors.ts'
import type { Page } from '../../message/generated/types.ts'
import { isReadElsewhere } from '../../message/put-back.ts'
import { inFilter, type ReplayFilter } from '../../message/replay-request.ts'
import { isOfDomain } from '../../url/registrable-domain.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { PlannedPartition, ReplayPlan } from './replay-plan.ts'
import { samplePlaces } from './sample.ts'

/** A page as it lies on html. inScope: within the filter, and no copy of a page that lies in the range as well. */
export type StoredPage = { readonly message: KafkaMessage; readonly inScope: boolean } & (
  | { readonly page: Page }
  /**
   * The bytes can't be read as a page here, and why. Where only their schema is unknown it is in scope: whether the filter takes it can't
   * be told, and a replay fails on it.
   */
  | { readonly page: undefined; readonly code: ErrorCode }
)

/** What of html is read. */
export interface PageRange {
  readonly topic: string
  readonly partitions: readonly Pick<PlannedPartition, 'partition' | 'from' | 'until'>[]
}

/** Is the page, which is in scope, one that the stage gives to this extractor. */
export function isRead(extractor: LoadedExtractor, { message, page }: StoredPage): boolean {
  return isMeantFor(message.headers, extractor.name) && (page === undefined || extractor.matches(page))
}

/** A range that is so much longer than the sample is probed; a shorter one is read whole, which is quicker. */
const WHOLE_FACTOR = 4
const WHOLE_LEAST = 200
/** Where hardly any page is wanted the search is given up, so that a sample stays quick on a log of millions. */
const PROBES_PER_PAGE = 20

/** All pages of a plan, partition after partition, in order. Errors: the signal's reason. */
export async function* pagesOfPlan(
  runtime: Runtime,
  plan: PageRange,
  filter: ReplayFilter,
  signal?: AbortSignal,
): AsyncGenerator<StoredPage> {
  const { topic, partitions } = plan
  for (const { partition, from, until } of partitions) {
    if (until <= from) continue
    const range = { from: new Map([[topic, new Map([[partition, from]])]]), until: new Map([[partitionId(topic, partition), until]]) }
    for await (const messages of readMessages(runtime, { ...range, signal }))
      for (const message of messages) yield await decoded(runtime, message, plan, filter)
  }
}

/**
 * Pages from all parts of a plan, until `wanted` of them are to the point. The same plan gives the same pages, and so does a second
 * call. Of a long range single places are probed; a short one is read whole, which is quicker and exact.
 */
export class PageSample {
  readonly #runtime: Runtime
  readonly #plan: ReplayPlan
  readonly #filter: ReplayFilter
  readonly #wanted: number
  readonly #isWanted: (stored: StoredPage) => boolean
  /** Pages that were looked at, those out of scope too, and their stored bytes. */
  looked = 0
  bytes = 0
  /** Of these, pages to the point. */
  found = 0

  constructor(
    runtime: Runtime,
    plan: ReplayPlan,
    filter: ReplayFilter,
    options: { readonly wanted: number; readonly isWanted: (stored: StoredPage) => boolean },
  ) {
    this.#runtime = runtime
    this.#plan = plan
    this.#filter = filter
    this.#wanted = options.wanted
    this.#isWanted = options.isWanted
  }

  /** Shape: pages to the point, at most `wanted`, and those in scope that were met on the way. Errors: the signal's reason. */
  pages(signal?: AbortSignal): AsyncGenerator<StoredPage> {
    this.looked = 0
    this.bytes = 0
    this.found = 0
    return this.#plan.offsets <= BigInt(Math.max(this.#wanted * WHOLE_FACTOR, WHOLE_LEAST)) ? this.#fromWhole(signal) : this.#probed(signal)
  }

  async *#probed(signal: AbortSignal | undefined): AsyncGenerator<StoredPage> {
    const { topic } = this.#plan
    for (const { partition, offset } of samplePlaces(this.#plan, this.#wanted * PROBES_PER_PAGE)) {
      if (this.found >= this.#wanted) return
      signal?.throwIfAborted()
      const message = await readOne(this.#runtime.admin.session, { topic, partition }, offset)
      if (message === undefined) continue
      const stored = await decoded(this.#runtime, message, this.#plan, this.#filter)
      this.#count(stored)
      if (stored.inScope) yield stored
    }
  }

  /** Which pages are to the point is known when all were looked at; then those that were chosen are read again. */
  async *#fromWhole(signal: AbortSignal | undefined): AsyncGenerator<StoredPage> {
    for await (const stored of pagesOfPlan(this.#runtime, this.#plan, this.#filter, signal)) this.#count(stored)
    const total = this.found
    const chosen = evenly(total, this.#wanted)
    let index = -1
    for await (const stored of pagesOfPlan(this.#runtime, this.#plan, this.#filter, signal)) {
      if (!stored.inScope) continue
      if (this.#isToThePoint(stored)) {
        index += 1
        if (chosen !== undefined && !chosen.has(index)) continue
      }
      yield stored
    }
  }

  #count(stored: StoredPage): void {
    this.looked += 1
    this.bytes += stored.message.value?.length ?? 0
    if (this.#isToThePoint(stored)) this.found += 1
  }

  #isToThePoint(stored: StoredPage): boolean {
    return stored.inScope && this.#isWanted(stored)
  }
}

/** Positions of a sample among so many; undefined: all of them. */
function evenly(total: number, wanted: number): ReadonlySet<number> | undefined {
  if (total <= wanted) return undefined
  return new Set(Array.from({ length: wanted }, (_, index) => Math.floor(((index + 0.5) * total) / wanted)))
}

async function decoded(runtime: Runtime, message: KafkaMessage, { partitions }: PageRange, filter: ReplayFilter): Promise<StoredPage> {
  const { codec } = runtime
  const isCopy = isReadElsewhere(message, ({ partition, offset }) =>
    partitions.some((range) => range.partition === partition && offset >= range.from && offset < range.until),
  )
  try {
    await codec.ensureSchemas([message.value])
    const page = codec.decode('Page', message.value)
    return { message, page, inScope: !isCopy && inFilter(page, filter, isOfDomain) }
  } catch (error) {
    if (!isMillraceError(error) || error.disposition !== 'dead-letter') throw error
    // What is broken for good was buried when it was live, and a replay passes it over.
    return { message, page: undefined, code: error.code, inScope: !isCopy && error.code === 'MESSAGE_SCHEMA_UNKNOWN' }
  }
}
