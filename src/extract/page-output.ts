import type { KafkaMessage, OutgoingMessage } from '../kafka/message.ts'
import type { AvroSchema } from '../message/avro.ts'
import { deadLetter } from '../message/dead-letter.ts'
import type { Page } from '../message/generated/types.ts'
import { makeTraceParent } from '../message/trace.ts'
import { partitionFor } from '../url/partition.ts'
import { addTotals, type ExtractorTotals, NO_TOTALS } from './offset-metadata.ts'
import type { ExtractionResult, ExtractorSummary } from './page-extraction.ts'

export interface PageOutputOptions {
  readonly recordsTopic: (extractor: ExtractorSummary) => string
  readonly deadLettersTopic: string
  readonly partitionCount: (topic: string) => number
  readonly maxDeadLetterBytes: number
  readonly recordHeaders: (schema: AvroSchema, traceparent?: string) => Record<string, string>
}

/** Messages of one page and what they count for, per extractor. */
export interface PageOutput {
  readonly messages: readonly OutgoingMessage[]
  readonly totals: ReadonlyMap<string, ExtractorTotals>
}

/** Results of one page as messages: records, or one dead letter per extractor that failed, with the page's own bytes. Pure but for span ids. */
export function pageOutput(
  message: KafkaMessage,
  page: Page,
  results: readonly ExtractionResult[],
  extractors: ReadonlyMap<string, ExtractorSummary>,
  extractedAt: number,
  options: PageOutputOptions,
): PageOutput {
  const messages: OutgoingMessage[] = []
  const totals = new Map<string, ExtractorTotals>()
  for (const result of results) {
    const extractor = extractors.get(result.extractor)
    if (extractor === undefined) continue
    const counted: ExtractorTotals =
      result.kind === 'failure'
        ? { ...NO_TOTALS, pages: 1, deadLetters: 1 }
        : { ...NO_TOTALS, pages: 1, records: result.records.length, none: result.records.length === 0 ? 1 : 0 }
    totals.set(extractor.name, addTotals(totals.get(extractor.name) ?? NO_TOTALS, counted))
    if (result.kind === 'failure') {
      messages.push(extractDeadLetter(message, result, extractor, extractedAt, options))
      continue
    }
    const topic = options.recordsTopic(extractor)
    const count = options.partitionCount(topic)
    const headers = options.recordHeaders(extractor.schema, page.traceId === null ? undefined : makeTraceParent(page.traceId))
    for (const { key, value } of result.records) {
      messages.push({ topic, partition: partitionFor(key, count), key, value, headers, timestamp: extractedAt })
    }
  }
  return { messages, totals }
}

/** A message of html that can't be worked for any extractor, as one dead letter. */
export function brokenPageOutput(
  message: KafkaMessage,
  failure: { readonly code: DeadLetterCode; readonly message: string },
  at: number,
  options: PageOutputOptions,
): OutgoingMessage {
  return deadLetterMessage(message, { code: failure.code, message: failure.message }, undefined, at, options)
}

type DeadLetterCode = Parameters<typeof deadLetter>[1]['code']

function extractDeadLetter(
  message: KafkaMessage,
  failure: Extract<ExtractionResult, { kind: 'failure' }>,
  extractor: ExtractorSummary,
  at: number,
  options: PageOutputOptions,
): OutgoingMessage {
  return deadLetterMessage(message, failure, `${extractor.name}:${extractor.version}`, at, options)
}

function deadLetterMessage(
  message: KafkaMessage,
  failure: { readonly code: DeadLetterCode; readonly message: string },
  extractor: string | undefined,
  at: number,
  options: PageOutputOptions,
): OutgoingMessage {
  const built = deadLetter(
    message,
    { stage: 'extract', code: failure.code, message: failure.message, failedAt: at, ...(extractor === undefined ? {} : { extractor }) },
    options.maxDeadLetterBytes,
  )
  const partition = partitionFor(message.key ?? '', options.partitionCount(options.deadLettersTopic))
  return { topic: options.deadLettersTopic, partition, ...built, timestamp: at }
}
