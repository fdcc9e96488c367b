import type { MessagePlace } from '../kernel/brand.ts'
import type { Page, RecordEnvelope } from '../message/generated/types.ts'
import { recordId } from '../message/ids.ts'
import type { ExtractedItem } from './declarative-extractor.ts'

/** What the records of one page have in common. */
export interface EnvelopeContext {
  readonly page: Omit<Page, 'body'>
  readonly source: MessagePlace
  readonly extractor: string
  readonly version: number
  /** Epoch ms. */
  readonly extractedAt: number
  readonly replayId: string | null
}

/** A whole record. Same page and same version give the same one, but for extractedAt, replayId and traceId. */
export function recordOf(context: EnvelopeContext, item: ExtractedItem, itemIndex: number): RecordEnvelope & { readonly data: unknown } {
  const { page, source, extractor, version } = context
  return {
    recordId: recordId(page.fetchId, extractor, version, itemIndex),
    url: page.finalUrl,
    extractor,
    extractorVersion: version,
    recordVersion: { fetchedAt: page.fetchedAt, extractorVersion: version },
    itemIndex,
    entityKey: item.entityKey,
    source: { topic: source.topic, partition: source.partition, offset: Number(source.offset) },
    bodySha256: page.bodySha256,
    fetchedAt: page.fetchedAt,
    extractedAt: context.extractedAt,
    crawlId: page.crawlId,
    jobId: page.jobId,
    replayId: context.replayId,
    traceId: page.traceId,
    meta: page.meta,
    data: item.data,
  }
}

/** Key of the message of a record. */
export function recordKey(extractor: string, entityKey: string): string {
  return `${extractor}/${entityKey}`
}
