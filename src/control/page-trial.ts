import { ExtractorHost } from '../extract/extractor-host.ts'
import type { LoadedExtractor } from '../extract/load-extractors.ts'
import type { ExtractionResult } from '../extract/page-extraction.ts'
import { silentObserver } from '../kernel/observe.ts'
import type { Page, RecordEnvelope } from '../message/generated/types.ts'
import { pageSource } from '../message/put-back.ts'
import type { ComparableRecord, PageFailure, PageSource } from '../replay/compare.ts'
import { envelopeText } from './extraction.ts'
import type { Runtime } from './runtime.ts'
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
}

/**
 * An extractor that runs over stored pages as the stage would, under its limits and in a process of its own, and writes nothing. To
 * be closed.
 */
export class PageTrial {
  readonly #host: ExtractorHost
  readonly #extractor: LoadedExtractor
  readonly #clock: Runtime['clock']

  private constructor(host: ExtractorHost, extractor: LoadedExtractor, clock: Runtime['clock']) {
    this.#host = host
    this.#extractor = extractor
    this.#clock = clock
  }

  /** Errors: EXTRACTOR_INVALID. */
  static async start(runtime: Runtime, extractor: LoadedExtractor, onOutput?: (text: string) => void): Promise<PageTrial> {
    const { config, clock } = runtime
    const blobs = await runtime.blobs()
    const host = new ExtractorHost({
      extractors: [extractor],
      envelopeText: envelopeText(runtime),
      threads: config['extract.threads'],
      pageTimeoutMs: config['extract.pageTimeout'],
      pageMemoryBytes: config['extract.pageMemory'],
      parser: config['extract.parser'],
      framing: () => Buffer.alloc(0),
      ...(blobs === undefined ? {} : { blobs }),
      ...(onOutput === undefined ? {} : { onOutput }),
      clock,
      observer: silentObserver,
    })
    await host.start()
    return new PageTrial(host, extractor, clock)
  }

  /** Shape: a page that the extractor does not match gives no records. */
  async run(stored: StoredPage & { readonly page: Page }): Promise<TriedPage> {
    const { message, page } = stored
    const source = pageSource(message)
    const tried = { source, url: page.finalUrl, fetchedAt: page.fetchedAt }
    if (!isRead(this.#extractor, stored)) return { ...tried, matched: false, result: [], bytes: 0 }
    const { name } = this.#extractor
    const [result] = await this.#host.extract({ page, source, extractors: [name], extractedAt: this.#clock.now(), replayId: null })
    const bytes = result?.kind === 'records' ? result.records.reduce((sum, { value }) => sum + value.length, 0) : 0
    return { ...tried, matched: true, result: this.#read(result), bytes }
  }

  close(): Promise<void> {
    return this.#host.stop({ mode: 'abort', timeoutMs: 0 })
  }

  #read(result: ExtractionResult | undefined): TriedPage['result'] {
    if (result === undefined) return []
    if (result.kind === 'failure') return { code: result.code, field: result.field }
    return result.records.map(({ value }) => this.#extractor.schema.decode(value) as RecordEnvelope & ComparableRecord)
  }
}
