import type { ComparableRecord, PageFailure, PageSource } from '../../comparison/compare.ts'
import type { ExtractorHost } from '../../extract/extractor-host.ts'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { ExtractedRecord, ExtractionResult } from '../../extract/page-extraction.ts'
import { largestMessage, largestOf, TOO_LARGE } from '../../extract/page-output.ts'
import { isMillraceError } from '../../kernel/errors.ts'
import { silentObserver } from '../../kernel/observe.ts'
import { singleObjectFrame } from '../../message/framing.ts'
import type { Page, RecordEnvelope } from '../../message/generated/types.ts'
import { pageSource, pageTime } from '../../message/put-back.ts'
import { recordsTopicOf } from '../../message/topics.ts'
import { makeTraceParent } from '../../message/trace.ts'
import { createExtractorHost } from '../extractors/create-extract.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { isRead, type StoredPage } from './stored-pages.ts'

/** What an extractor makes of one stored page. */
export interface TriedPage {
  readonly source: PageSource
  readonly url: string
  /** Epoch ms. */
  readonly fetchedAt: number
  /** It is one that the extractor reads. */
  readonly matched: boolean
  readonly result: readonly ComparableRecord[] | PageFailure
  /** Of its records as they would be written. */
  readonly bytes: number
  /** Of the largest of them; 0 where there is none. */
  readonly largestBytes: number
}

/** As long as what stands before the bytes of a record that is written. */
const FRAMING = singleObjectFrame('0', Buffer.alloc(0))

/**
 * An extractor that runs over stored pages as the stage would, under its limits and in a process of its own, and writes nothing. To
 * be closed.
 */
export class PageTrial {
  readonly #host: ExtractorHost
  readonly #extractor: LoadedExtractor
  readonly #runtime: Runtime
  /** The largest record, as a message, that the topic of the extractor takes. Units: bytes. */
  readonly largestTaken: number

  private constructor(runtime: Runtime, host: ExtractorHost, extractor: LoadedExtractor, largestTaken: number) {
    this.#host = host
    this.#extractor = extractor
    this.#runtime = runtime
    this.largestTaken = largestTaken
  }

  /** Errors: EXTRACTOR_INVALID. */
  static async start(runtime: Runtime, extractor: LoadedExtractor, onOutput?: (text: string) => void): Promise<PageTrial> {
    const own = { framing: () => FRAMING, ...(onOutput === undefined ? {} : { onOutput }), observer: silentObserver }
    const host = await createExtractorHost(runtime, [extractor], own)
    const largestTaken = largestMessage(await maxBatchBytes(runtime, recordsTopicOf(extractor, runtime.topics)))
    await host.start()
    return new PageTrial(runtime, host, extractor, largestTaken)
  }

  /** Shape: a page, in scope, that the extractor does not match gives no records; one that can't be read is a failure, as of a replay. */
  async run(stored: StoredPage): Promise<TriedPage> {
    const { message, page } = stored
    const source = pageSource(message)
    const matched = isRead(this.#extractor, stored)
    const nothing = { source, matched, result: [], bytes: 0, largestBytes: 0 }
    if (page === undefined) {
      const unread = { ...nothing, url: message.key?.toString() ?? '', fetchedAt: pageTime(message) }
      return matched ? { ...unread, result: { code: stored.code, field: undefined } } : unread
    }
    const tried = { source, url: page.finalUrl, fetchedAt: page.fetchedAt }
    if (!matched) return { ...nothing, ...tried }
    const { name } = this.#extractor
    const extractedAt = this.#runtime.clock.now()
    const [result] = await this.#host.extract({ page, source, extractors: [name], extractedAt, replayId: null })
    const records = result?.kind === 'records' ? result.records : []
    const bytes = records.reduce((sum, { value }) => sum + value.length, 0)
    const largestBytes = this.#largestBytes(records, page)
    const read = largestBytes > this.largestTaken ? { code: TOO_LARGE, field: undefined } : this.#read(result)
    return { ...tried, matched: true, result: read, bytes, largestBytes }
  }

  close(): Promise<void> {
    return this.#host.stop({ mode: 'abort', timeoutMs: 0 })
  }

  #largestBytes(records: readonly ExtractedRecord[], { traceId }: Page): number {
    const topic = recordsTopicOf(this.#extractor, this.#runtime.topics)
    const headers = this.#runtime.codec.headers(this.#extractor.schema, traceId === null ? undefined : makeTraceParent(traceId))
    return largestOf(records.map(({ key, value }) => ({ topic, partition: 0, key, value, headers })))
  }

  #read(result: ExtractionResult | undefined): TriedPage['result'] {
    if (result === undefined) return []
    if (result.kind === 'failure') return { code: result.code, field: result.field }
    return result.records.map(({ value }) => this.#extractor.schema.decode(value, FRAMING.length) as RecordEnvelope & ComparableRecord)
  }
}

/** Of a topic as it is, where that may be looked at: it may have been made by hand, and workers are refused then. */
async function maxBatchBytes(runtime: Runtime, topic: string): Promise<number> {
  const wanted = runtime.maxBatchBytes(topic)
  const [found] = await runtime.admin.describeTopics([topic]).catch((error: unknown) => {
    if (!isMillraceError(error, 'KAFKA_DENIED')) throw error
    return []
  })
  return Math.min(wanted, Number(found?.configs['max.message.bytes'] ?? wanted))
}
