import type { MessagePlace } from '../kernel/brand.ts'
import type { ErrorCode } from '../kernel/errors.ts'
import type { AvroSchema } from '../message/avro.ts'
import type { Page } from '../message/generated/types.ts'

/**
 * What the Kafka side of the stage asks of the side that parses: which extractors read a page, and what they make of it. The one
 * never sees HTML, the other never sees Kafka.
 */
export interface PageExtraction {
  /** Extractors of this group, by name. */
  readonly extractors: ReadonlyMap<string, ExtractorSummary>
  /** Names of those that match, in a fixed order; decided without unpacking the body. */
  matching(page: Page): readonly string[]
  /** One result per name given, in order. Never rejects for what an extractor or a page does; rejects when closed. */
  extract(job: ExtractionJob): Promise<readonly ExtractionResult[]>
}

export interface ExtractorSummary {
  readonly name: string
  readonly version: number
  /** Topic of its records; undefined: the common one. */
  readonly topic: string | undefined
  readonly schema: AvroSchema
  /** sha256 of the canonical definition, hex. */
  readonly definitionSha256: string
}

export interface ExtractionJob {
  readonly page: Page
  readonly source: MessagePlace
  readonly extractors: readonly string[]
  /** Epoch ms. */
  readonly extractedAt: number
  readonly replayId: string | null
}

export type ExtractionResult =
  | { readonly kind: 'records'; readonly extractor: string; readonly records: readonly ExtractedRecord[] }
  | {
      readonly kind: 'failure'
      readonly extractor: string
      readonly code: ErrorCode
      readonly message: string /** Path of the field that is at fault. */
      readonly field?: string
    }

export interface ExtractedRecord {
  /** Key of the message: `<extractor>/<entityKey>`. */
  readonly key: string
  /** The whole record, framed. */
  readonly value: Buffer
}
