import { partitionsOfKey } from '../../kafka/layout.ts'
import { readOne } from '../../kafka/log-reader.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import type { MessagePlace } from '../../kernel/brand.ts'
import { MillraceError } from '../../kernel/errors.ts'
import type { Lane, Outcome, Page, UrlTask } from '../../message/generated/types.ts'
import { HEADER, headerValue } from '../../message/header-names.ts'
import { recordId } from '../../message/ids.ts'
import { isPutBack, pageSource, pageTime } from '../../message/put-back.ts'
import { readTask } from '../../message/read-task.ts'
import { readable } from '../../message/readable.ts'
import { LANES } from '../../message/topics.ts'
import { canonicalUrl } from '../../url/canonical-url.ts'
import { domainOfUrl } from '../../url/registrable-domain.ts'
import { searchTexts } from '../crawls/url-search.ts'
import type { ListedDeadLetter } from '../dead-letters/dead-letters.ts'
import type { StoredRecord } from '../records/stored-records.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { mergeByTime } from './merge-by-time.ts'
import { type FoundRecord, findRecords, placeOf } from './record-search.ts'
import { searchMessages } from './search-messages.ts'
import { deadLettersOf } from './url-dead-letters.ts'

/** Where a record, or a page, came from. */
export interface Lineage {
  readonly traceId: string | null
  readonly records: readonly FoundRecord[]
  /** Of the page: what an extractor made no records of. Oldest first. */
  readonly deadLetters: readonly ListedDeadLetter[]
  /** Without its body. Null: retention has deleted it. */
  readonly page: { readonly at: MessagePlace; readonly page: Omit<Page, 'body'> } | null
  /** Where the page lies, or lay; null where no record tells of one that is gone. */
  readonly pageAt: MessagePlace | null
  readonly task: { readonly at: MessagePlace; readonly task: UrlTask } | null
  readonly outcomes: readonly { readonly at: MessagePlace; readonly outcome: Outcome }[]
  readonly timing: readonly TimedStep[]
}

export interface TimedStep {
  readonly step: 'enqueued' | 'request sent' | 'first byte' | 'fetched' | 'outcome' | 'extracted'
  /** Epoch ms. */
  readonly at: number
  /** ms since the step before; 0 for the first. Clocks of two machines lie in between. */
  readonly afterMs: number
}

const RECORD_ID = /^[0-9a-f]{32}$/

/**
 * A record back to its page, its task and what became of that; or everything that the log holds of the last page of a URL. Reads the
 * partitions where it can lie, by their bytes. Of a page that retention has deleted it is what is left. Errors: USAGE where nothing is
 * found.
 */
export async function lineage(runtime: Runtime, what: string, signal?: AbortSignal): Promise<Lineage> {
  await runtime.control()
  const search = new LineageSearch(runtime, signal)
  if (RECORD_ID.test(what)) {
    const records = await search.records([Buffer.from(what)], ({ recordId }) => recordId === what)
    if (records.length === 0) throw new MillraceError('USAGE', `no topic of records holds a record with the id ${what}`)
    const page = await search.pageOfRecords(records)
    return page === null ? search.withoutPage(records, await search.outcomesOf(records)) : search.complete(page, records)
  }
  if (!URL.canParse(what)) throw new MillraceError('USAGE', `${JSON.stringify(what)} is neither a record id (32 hex characters) nor a URL`)
  const page = await search.pageOf(new URL(what))
  if (page === null) {
    const { records, outcomes } = await search.leftOf(new URL(what))
    // Behind a redirect: html has it under the URL that was asked for.
    const behind = await search.pageOfRecords(records)
    if (behind !== null) return search.complete(behind, records)
    if (records.length > 0 || outcomes.some(({ outcome }) => outcome.kind === 'FETCHED')) return search.withoutPage(records, outcomes)
    throw new MillraceError('USAGE', `html holds no page of ${what}; \`millrace explain ${what}\` tells where the URL is`)
  }
  const { topic, partition, offset } = page.source
  const records = await search.records([Buffer.from(page.page.bodySha256)], ({ source }) => {
    return source.topic === topic && source.partition === partition && BigInt(source.offset) === offset
  })
  return search.complete(page, records)
}

/** `source`: where fetch wrote it; it may be there no more. */
type FoundPage = NonNullable<Lineage['page']> & { readonly source: MessagePlace }

class LineageSearch {
  readonly #runtime: Runtime
  readonly #signal: AbortSignal | undefined

  constructor(runtime: Runtime, signal: AbortSignal | undefined) {
    this.#runtime = runtime
    this.#signal = signal
  }

  records(texts: readonly Buffer[], isMeant: (record: StoredRecord) => boolean): Promise<FoundRecord[]> {
    return findRecords(this.#runtime, { texts, isMeant, signal: this.#signal })
  }

  /** The page that records were made of. */
  async pageOfRecords(records: Lineage['records']): Promise<FoundPage | null> {
    const at = sourceOf(records)
    if (at === null) return null
    const message = await readOne(this.#runtime.admin.session, at, at.offset)
    return message === undefined ? this.#copyOf(at, records) : this.#page(message)
  }

  /** The last page of a URL. */
  async pageOf(url: URL): Promise<FoundPage | null> {
    const { topics } = this.#runtime
    const canonical = canonicalUrl(url)
    let last: KafkaMessage | undefined
    for (const partition of await this.#partitionsOf(topics.html, canonical)) {
      for await (const message of this.#messages(topics.html, partition, searchTexts(url)))
        if (message.key?.toString('utf8') === canonical && (last === undefined || isLater(message, last))) last = message
    }
    return last === undefined ? null : this.#page(last)
  }

  /** Of a page that is on html no more: what was put back of it lives longer. */
  async #copyOf(at: MessagePlace, records: Lineage['records']): Promise<FoundPage | null> {
    const asked = (await this.outcomesOf(records)).map(({ outcome }) => outcome.canonicalUrl)
    // Behind a redirect, or where no outcome is left, the record tells of another URL, or of the same.
    const urls = [...asked, ...records.map(({ record }) => record.url)].flatMap((url) => (URL.canParse(url) ? new URL(url) : []))
    const byKey = new Map(urls.map((url) => [canonicalUrl(url), url] as const))
    for (const [key, url] of byKey) {
      for (const partition of await this.#partitionsOf(at.topic, key)) {
        for await (const message of this.#messages(at.topic, partition, searchTexts(url))) {
          const source = pageSource(message)
          if (source.partition === at.partition && source.offset === at.offset) return this.#page(message)
        }
      }
    }
    return null
  }

  async complete(page: FoundPage, records: Lineage['records']): Promise<Lineage> {
    const outcomes = await this.#outcomes(page.page)
    const task = await this.#task(page.page)
    const timing = steps(page.page, outcomes, records)
    const deadLetters = await this.#deadLetters(page.page.canonicalUrl, page.source)
    const { traceId } = page.page
    return { traceId, records, deadLetters, page: { at: page.at, page: page.page }, pageAt: page.at, task, outcomes, timing }
  }

  /** What is left of a page that retention has deleted: records and outcomes live longer, and lead to its task. */
  async withoutPage(records: Lineage['records'], found: Lineage['outcomes']): Promise<Lineage> {
    const last = found.at(-1)?.outcome
    const outcomes = last === undefined ? [] : await this.#outcomes(last)
    const task = last === undefined ? null : await this.#task(last)
    const pageAt = sourceOf(records)
    const traceId = records[0]?.record.traceId ?? last?.traceId ?? null
    const deadLetters = last === undefined || pageAt === null ? [] : await this.#deadLetters(last.canonicalUrl, pageAt)
    return { traceId, records, deadLetters, page: null, pageAt, task, outcomes, timing: steps(task?.task, outcomes, records) }
  }

  /** Of one page, by where fetch wrote it. */
  async #deadLetters(canonical: string, page: MessagePlace): Promise<readonly ListedDeadLetter[]> {
    const url = new URL(canonical)
    const topic = this.#runtime.topics.deadLetters
    const letters = await deadLettersOf(this.#runtime, url, (partition) => this.#messages(topic, partition, searchTexts(url)))
    return letters.filter(({ info: { original } }) => {
      return original?.topic === page.topic && original.partition === page.partition && original.offset === page.offset
    })
  }

  /** Outcomes of the fetches that records were made of, found by what an outcome and a record both hold. */
  async outcomesOf(records: Lineage['records']): Promise<Lineage['outcomes']> {
    const { topics, admin } = this.#runtime
    const texts = records.flatMap(({ record: { traceId, url } }) => [
      ...(traceId === null ? [] : [Buffer.from(traceId)]),
      ...(URL.canParse(url) ? searchTexts(new URL(url)) : []),
    ])
    return this.#outcomesIn(await admin.partitions(topics.outcomes), texts, (outcome) => isOfRecords(outcome, records))
  }

  /** Records and outcomes of the last page of a URL that is on html no more. */
  async leftOf(url: URL): Promise<Pick<Lineage, 'records' | 'outcomes'>> {
    const { topics } = this.#runtime
    const canonical = canonicalUrl(url)
    const texts = searchTexts(url)
    const partitions = await this.#partitionsOf(topics.outcomes, canonical)
    const own = await this.#outcomesIn(partitions, texts, ({ canonicalUrl: key }) => key === canonical)
    const fetches = own.filter(({ outcome }) => outcome.kind === 'FETCHED')
    const traces = fetches.flatMap(({ outcome: { traceId } }) => (traceId === null ? [] : [Buffer.from(traceId)]))
    const all = await this.records([...texts, ...traces], (record) => {
      const isOwn = URL.canParse(record.url) && canonicalUrl(new URL(record.url)) === canonical
      return isOwn || fetches.some(({ outcome }) => isOfRecords(outcome, [{ record }]))
    })
    const fetchedAt = all.reduce((latest, { record }) => Math.max(latest, record.fetchedAt), 0)
    const records = all.filter(({ record }) => record.fetchedAt === fetchedAt)
    const outcomes = records.length === 0 ? fetches : await this.outcomesOf(records)
    return { records, outcomes }
  }

  async #outcomes({ canonicalUrl: key, taskId }: Pick<Outcome, 'canonicalUrl' | 'taskId'>): Promise<Lineage['outcomes'][number][]> {
    const partitions = await this.#partitionsOf(this.#runtime.topics.outcomes, key)
    return this.#outcomesIn(partitions, [Buffer.from(taskId)], (outcome) => outcome.taskId === taskId)
  }

  async #outcomesIn(
    partitions: readonly number[],
    texts: readonly Buffer[],
    isMeant: (outcome: Outcome) => boolean,
  ): Promise<Lineage['outcomes'][number][]> {
    const { topics, codec } = this.#runtime
    const found = await Promise.all(
      partitions.map(async (partition) => {
        const own: Lineage['outcomes'][number][] = []
        for await (const message of this.#messages(topics.outcomes, partition, texts)) {
          const outcome = readable(() => codec.decode('Outcome', message.value))
          if (outcome !== undefined && isMeant(outcome)) own.push({ at: placeOf(message), outcome })
        }
        return own
      }),
    )
    return mergeByTime(found, ({ outcome: { at } }) => at)
  }

  /** The first message of the task: what its producer wrote. */
  async #task(meant: Pick<Outcome, 'taskId' | 'url'>): Promise<Lineage['task']> {
    const { topics, admin } = this.#runtime
    const domain = domainOfUrl(meant.url)
    if (domain === undefined) return null
    const near: FoundTask[] = []
    for (const lane of LANES)
      for (const task of await this.#tasksIn(lane, await this.#partitionsOf(topics.urls[lane], domain), meant)) near.push(task)
    const first = firstOf(near)
    if (first !== null && !first.isMoved) return { at: first.at, task: first.task }
    // Others than we write to any partition; what we found was sent on from there.
    const all: FoundTask[] = []
    for (const lane of LANES) for (const task of await this.#tasksIn(lane, await admin.partitions(topics.urls[lane]), meant)) all.push(task)
    const written = firstOf(all) ?? first
    return written === null ? null : { at: written.at, task: written.task }
  }

  async #tasksIn(lane: Lane, partitions: readonly number[], { taskId, url }: Pick<Outcome, 'taskId' | 'url'>): Promise<FoundTask[]> {
    const { topics } = this.#runtime
    const texts = [Buffer.from(taskId), ...searchTexts(new URL(url))]
    const found: FoundTask[] = []
    for (const partition of partitions) {
      for await (const message of this.#messages(topics.urls[lane], partition, texts)) {
        const task = readable(() => readTask(this.#runtime, message))?.task
        if (task?.taskId === taskId)
          found.push({ at: placeOf(message), task, isMoved: headerValue(message.headers, HEADER.moved) !== undefined })
      }
    }
    return found
  }

  async #page(message: KafkaMessage): Promise<FoundPage> {
    await this.#runtime.codec.ensureSchemas([message.value])
    const { body: _, ...page } = this.#runtime.codec.decode('Page', message.value)
    return { at: placeOf(message), source: pageSource(message), page }
  }

  async #partitionsOf(topic: string, key: string): Promise<readonly number[]> {
    return partitionsOfKey((await this.#runtime.layout())(), topic, key)
  }

  #messages(topic: string, partition: number, texts: readonly Buffer[]): AsyncIterable<KafkaMessage> {
    return searchMessages(this.#runtime, { topic, partition, texts, signal: this.#signal })
  }
}

/** Two partitions have no order but that of time, and a page that was put back is as old as the page itself. */
function isLater(message: KafkaMessage, than: KafkaMessage): boolean {
  const [one, other] = [pageTime(message), pageTime(than)]
  return one === other ? !isPutBack(message.headers) : one > other
}

interface FoundTask {
  readonly at: MessagePlace
  readonly task: UrlTask
  /** Sent on from a partition in which it did not belong. */
  readonly isMoved: boolean
}

/** What its producer wrote: copies are younger, of a later attempt, or moved. */
function firstOf(found: readonly FoundTask[]): FoundTask | null {
  const [first] = [...found].sort(
    (a, b) =>
      (a.task.enqueuedAt ?? 0) - (b.task.enqueuedAt ?? 0) || a.task.attempt - b.task.attempt || Number(a.isMoved) - Number(b.isMoved),
  )
  return first ?? null
}

/** Where the page of records lies, or lay; null without any. */
function sourceOf([first]: Lineage['records']): MessagePlace | null {
  return first === undefined ? null : { ...first.record.source, offset: BigInt(first.record.source.offset) }
}

/** An outcome names its fetch, and a record is named by it. */
function isOfRecords({ fetchId }: Outcome, records: readonly { readonly record: StoredRecord }[]): boolean {
  if (fetchId === null) return false
  return records.some(({ record }) => recordId(fetchId, record.extractor, record.extractorVersion, record.itemIndex) === record.recordId)
}

/**
 * Pure: when each step was, in the order of time as the clocks tell it. Of a page that is gone the task is all that tells of its begin. A
 * page that was redirected waited before each hop, which no field of it says: its outcome alone knows when its first request was sent.
 */
export function steps(
  page: Pick<Page, 'fetchId' | 'enqueuedAt' | 'fetchedAt' | 'totalMs' | 'ttfbMs' | 'redirects'> | Pick<UrlTask, 'enqueuedAt'> | undefined,
  outcomes: readonly { readonly outcome: Pick<Outcome, 'at' | 'fetchId' | 'queuedMs'> }[],
  records: readonly { readonly record: Pick<StoredRecord, 'extractedAt' | 'fetchedAt'> }[],
): TimedStep[] {
  const known: { step: TimedStep['step']; at: number }[] = []
  if (page?.enqueuedAt !== undefined && page.enqueuedAt !== null) known.push({ step: 'enqueued', at: page.enqueuedAt })
  const fetched = page !== undefined && 'fetchedAt' in page ? page : undefined
  if (fetched !== undefined && fetched.redirects.length === 0) {
    const sent = fetched.fetchedAt - fetched.totalMs
    known.push({ step: 'request sent', at: sent }, { step: 'first byte', at: sent + fetched.ttfbMs })
  } else if (fetched !== undefined) {
    const own = outcomes.find(({ outcome }) => outcome.fetchId === fetched.fetchId)
    if (own !== undefined && fetched.enqueuedAt !== null)
      known.push({ step: 'request sent', at: fetched.enqueuedAt + own.outcome.queuedMs })
  }
  const fetchedAt = fetched?.fetchedAt ?? records[0]?.record.fetchedAt
  if (fetchedAt !== undefined) known.push({ step: 'fetched', at: fetchedAt })
  const outcome = outcomes.at(-1)?.outcome
  if (outcome !== undefined) known.push({ step: 'outcome', at: outcome.at })
  for (const { record } of records) known.push({ step: 'extracted', at: record.extractedAt })
  return known.map(({ step, at }, index) => ({ step, at, afterMs: index === 0 ? 0 : at - (known[index - 1]?.at ?? at) }))
}
