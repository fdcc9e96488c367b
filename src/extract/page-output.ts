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
import type { ExtractionResult, ExtractorSummary } from './page-extraction.ts'

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

/** Results of one page as messages: records, or one dead letter per extractor that failed, with the page's own bytes. Pure but for span ids. */
export function pageOutput(
  message: KafkaMessage,
  page: Page,
  results: readonly ExtractionResult[],
  extractors: ReadonlyMap<string, ExtractorSummary>,
  by: WrittenBy,
  options: PageOutputOptions,
): PageOutput {
  const messages: OutgoingMessage[] = []
  const deadLetters: DeadLetterContext[] = []
  const totals = new Map<string, ExtractorTotals>()
  for (const result of results) {
    const extractor = extractors.get(result.extractor)
    if (extractor === undefined) continue
    const output = resultOutput(message, page, result, extractor, by, options)
    for (const each of output.messages) messages.push(each)
    deadLetters.push(...output.deadLetters)
    totals.set(extractor.name, addTotals(totals.get(extractor.name) ?? NO_TOTALS, output.counted))
  }
  return { messages, deadLetters, totals }
}

function resultOutput(
  message: KafkaMessage,
  page: Page,
  result: ExtractionResult,
  extractor: ExtractorSummary,
  by: WrittenBy,
  options: PageOutputOptions,
): Omit<PageOutput, 'totals'> & { readonly counted: ExtractorTotals } {
  if (result.kind === 'failure') {
    const context = contextOf(result, by.extractedAt, extractor, by.replayId)
    return { ...buried(message, context, options), counted: { ...NO_TOTALS, pages: 1, deadLetters: 1 } }
  }
  const topic = options.recordsTopic(extractor)
  const count = options.partitionCount(topic)
  const headers = options.recordHeaders(extractor.schema, page.traceId === null ? undefined : makeTraceParent(page.traceId))
  const records = result.records.map(
    ({ key, value }): OutgoingMessage => ({ topic, partition: partitionFor(key, count), key, value, headers, timestamp: by.extractedAt }),
  )
  const limit = largestMessage(options.maxBatchBytes(topic))
  const largest = largestOf(records)
  // All of a page or nothing of it: a record that no transaction can hold must not hold up the pages behind it.
  if (largest > limit) {
    const text = `a record of ${extractor.name} has ${largest} bytes, and ${topic} takes ${limit}`
    const failure = { kind: 'failure', extractor: extractor.name, code: TOO_LARGE, message: text } as const
    return resultOutput(message, page, failure, extractor, by, options)
  }
  const none = records.length === 0 ? 1 : 0
  return { messages: records, deadLetters: [], counted: { ...NO_TOTALS, pages: 1, records: records.length, none } }
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

/** A message of html that can't be worked for any extractor, as one dead letter. */
export function brokenPageOutput(message: KafkaMessage, failure: ExtractFailure, at: number, options: PageOutputOptions): PageOutput {
  return { ...buried(message, contextOf(failure, at), options), totals: new Map() }
}

/** A page that a replay can't read, as a dead letter of the version that it runs. */
export function unreadPageOutput(
  message: KafkaMessage,
  failure: ExtractFailure,
  extractor: ExtractorSummary,
  by: WrittenBy,
  options: PageOutputOptions,
): PageOutput {
  const counted = { ...NO_TOTALS, pages: 1, deadLetters: 1 }
  return {
    ...buried(message, contextOf(failure, by.extractedAt, extractor, by.replayId), options),
    totals: new Map([[extractor.name, counted]]),
  }
}

function contextOf(
  { code, message }: ExtractFailure,
  failedAt: number,
  extractor?: ExtractorSummary,
  replayId: string | null = null,
): DeadLetterContext {
  return {
    stage: 'extract',
    code,
    message,
    failedAt,
    ...(extractor === undefined ? {} : { extractor: `${extractor.name}:${extractor.version}` }),
    ...(replayId === null ? {} : { replayId }),
  }
}

function buried(message: KafkaMessage, context: DeadLetterContext, options: PageOutputOptions): Omit<PageOutput, 'totals'> {
  const { deadLettersTopic: topic, partitionCount, maxBatchBytes } = options
  const letter = deadLetterMessage(message, context, { topic, partitionCount: partitionCount(topic), maxBytes: maxBatchBytes(topic) })
  return { messages: [{ ...letter, timestamp: context.failedAt }], deadLetters: [context] }
}
