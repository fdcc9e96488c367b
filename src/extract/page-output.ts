import { deadLetterMessage } from '../kafka/dead-letter-publisher.ts'
import type { KafkaMessage, OutgoingMessage } from '../kafka/message.ts'
import { BATCH_OVERHEAD_BYTES, messageBytes } from '../kafka/outgoing.ts'
import type { ErrorCode } from '../kernel/errors.ts'
import type { AvroSchema } from '../message/avro.ts'
import type { DeadLetterContext } from '../message/dead-letter.ts'
import type { Page } from '../message/generated/types.ts'
import { makeTraceParent } from '../message/trace.ts'
import { partitionFor } from '../url/partition.ts'
import { addTotals, type ExtractorTotals, NO_TOTALS } from './offset-metadata.ts'
import type { ExtractedRecord, ExtractionResult, ExtractorSummary } from './page-extraction.ts'

export interface PageOutputOptions {
  readonly recordsTopic: (extractor: ExtractorSummary) => string
  readonly deadLettersTopic: string
  readonly partitionCount: (topic: string) => number
  /** Largest batch of a topic, as far as is known; asked for each page. */
  readonly maxBatchBytes: (topic: string) => number
  readonly recordHeaders: (schema: AvroSchema, traceparent?: string) => Record<string, string>
}

/** Messages of one page, and what they count for by extractor. */
export interface PageOutput {
  readonly messages: readonly OutgoingMessage[]
  /** What the dead letters among them say, in their order. */
  readonly deadLetters: readonly DeadLetterContext[]
  readonly totals: ReadonlyMap<string, ExtractorTotals>
}

/** Why a page, or an extractor on it, failed. */
export interface ExtractFailure {
  readonly code: ErrorCode
  readonly message: string
}

/** When the page was worked, and by which replay. */
export interface WrittenBy {
  /** Epoch ms. */
  readonly extractedAt: number
  readonly replayId: string | null
}

/** A page that was worked, as it lay on html. */
export interface WorkedPage {
  readonly message: KafkaMessage
  readonly page: Page
  readonly by: WrittenBy
}

/** What one extractor has made of it. */
type Counted = Omit<PageOutput, 'totals'> & { readonly counted: ExtractorTotals }

/** Pages as messages: their records, and dead letters with their own bytes. Pure but for span ids. */
export class PageOutputs {
  readonly #options: PageOutputOptions
  readonly #extractors: ReadonlyMap<string, ExtractorSummary>

  constructor(options: PageOutputOptions, extractors: ReadonlyMap<string, ExtractorSummary>) {
    this.#options = options
    this.#extractors = extractors
  }

  /** Results of one page: records, or one dead letter per extractor that failed. */
  of(worked: WorkedPage, results: readonly ExtractionResult[]): PageOutput {
    const messages: OutgoingMessage[] = []
    const deadLetters: DeadLetterContext[] = []
    const totals = new Map<string, ExtractorTotals>()
    for (const result of results) {
      const extractor = this.#extractors.get(result.extractor)
      if (extractor === undefined) continue
      const output = result.kind === 'failure' ? this.#failed(worked, result, extractor) : this.#records(worked, result.records, extractor)
      for (const each of output.messages) messages.push(each)
      deadLetters.push(...output.deadLetters)
      totals.set(extractor.name, addTotals(totals.get(extractor.name) ?? NO_TOTALS, output.counted))
    }
    return { messages, deadLetters, totals }
  }

  /** A message of html that can't be worked for any extractor, as one dead letter. */
  broken(message: KafkaMessage, failure: ExtractFailure, by: WrittenBy): PageOutput {
    return { ...this.#buried(message, contextOf(failure, by)), totals: new Map() }
  }

  /** A page that a replay can't read, as a dead letter of the version that it runs. */
  unread(unread: Omit<WorkedPage, 'page'>, failure: ExtractFailure, extractor: ExtractorSummary): PageOutput {
    const { counted, ...output } = this.#failed(unread, failure, extractor)
    return { ...output, totals: new Map([[extractor.name, counted]]) }
  }

  #records({ message, page, by }: WorkedPage, extracted: readonly ExtractedRecord[], extractor: ExtractorSummary): Counted {
    const { recordsTopic, partitionCount, recordHeaders, maxBatchBytes } = this.#options
    const topic = recordsTopic(extractor)
    const count = partitionCount(topic)
    const headers = recordHeaders(extractor.schema, page.traceId === null ? undefined : makeTraceParent(page.traceId))
    const records = extracted.map(
      ({ key, value }): OutgoingMessage => ({ topic, partition: partitionFor(key, count), key, value, headers, timestamp: by.extractedAt }),
    )
    const limit = largestMessage(maxBatchBytes(topic))
    const largest = largestOf(records)
    // All of a page or nothing of it: a record that no transaction can hold must not hold up the pages behind it.
    if (largest > limit) {
      const text = `a record of ${extractor.name} has ${largest} bytes, and ${topic} takes ${limit}`
      return this.#failed({ message, by }, { code: TOO_LARGE, message: text }, extractor)
    }
    const none = records.length === 0 ? 1 : 0
    return { messages: records, deadLetters: [], counted: { ...NO_TOTALS, pages: 1, records: records.length, none } }
  }

  #failed({ message, by }: Omit<WorkedPage, 'page'>, failure: ExtractFailure, extractor: ExtractorSummary): Counted {
    return { ...this.#buried(message, contextOf(failure, by, extractor)), counted: { ...NO_TOTALS, pages: 1, deadLetters: 1 } }
  }

  #buried(message: KafkaMessage, context: DeadLetterContext): Omit<PageOutput, 'totals'> {
    const { deadLettersTopic: topic, partitionCount, maxBatchBytes } = this.#options
    const letter = deadLetterMessage(message, context, { topic, partitionCount: partitionCount(topic), maxBytes: maxBatchBytes(topic) })
    return { messages: [{ ...letter, timestamp: context.failedAt }], deadLetters: [context] }
  }
}

/** What becomes of a page one of whose records its topic does not take. */
export const TOO_LARGE = 'EXTRACT_RECORD_TOO_LARGE' satisfies ErrorCode

/** Largest message of a batch of so many bytes. Units: bytes. */
export function largestMessage(maxBatchBytes: number): number {
  return maxBatchBytes - BATCH_OVERHEAD_BYTES
}

/** Bytes of the largest of these, as a batch counts them; 0 for none. */
export function largestOf(records: readonly OutgoingMessage[]): number {
  return records.reduce((most, record) => Math.max(most, messageBytes(record)), 0)
}

function contextOf(
  { code, message }: ExtractFailure,
  { extractedAt, replayId }: WrittenBy,
  extractor?: ExtractorSummary,
): DeadLetterContext {
  return {
    stage: 'extract',
    code,
    message,
    failedAt: extractedAt,
    ...(extractor === undefined ? {} : { extractor: `${extractor.name}:${extractor.version}` }),
    ...(replayId === null ? {} : { replayId }),
  }
}
