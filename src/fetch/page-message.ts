import type { LayoutSource } from '../kafka/layout.ts'
import type { OutgoingMessage } from '../kafka/message.ts'
import { decideCharset } from '../message/charset.ts'
import type { MessageCodec } from '../message/codec.ts'
import type { Page, UrlTask } from '../message/generated/types.ts'
import { fetchId } from '../message/ids.ts'
import { packPageBody } from '../message/page-body.ts'
import type { TopicNames } from '../message/topics.ts'
import { makeTraceParent } from '../message/trace.ts'
import { partitionFor } from '../url/partition.ts'
import { type HttpResponse, headerValues } from './http-exchange.ts'

export interface FetchedAnswer {
  readonly task: UrlTask
  readonly finalUrl: URL
  readonly response: HttpResponse
  readonly robots: Page['robots']
  readonly policy: Page['policy']
  /** Epoch ms at which the answer was complete. */
  readonly fetchedAt: number
  /** All hops together, ms. */
  readonly totalMs: number
}

/** The page as it stands on html: the answer as the site gave it, and the task that asked. */
export async function buildPage(answer: FetchedAnswer): Promise<Page> {
  const { task, response } = answer
  const isText = response.decoded.length > 0 && response.truncated !== 'undecoded'
  const charset = !isText ? undefined : decideCharset(response.decoded, contentTypeHeader(response))
  return {
    fetchId: fetchId(task.taskId, task.attempt),
    taskId: task.taskId,
    url: task.url,
    canonicalUrl: task.canonicalUrl,
    finalUrl: answer.finalUrl.href,
    redirects: task.redirects,
    status: response.status,
    headers: response.headers,
    contentType: response.contentType,
    charset: charset?.charset ?? null,
    charsetSource: charset?.source ?? null,
    ...(await packPageBody(response)),
    bodyRef: null,
    truncated: response.truncated,
    fetchedAt: answer.fetchedAt,
    ttfbMs: Math.round(response.ttfbMs),
    totalMs: Math.round(answer.totalMs),
    remoteAddress: response.remoteAddress,
    robots: answer.robots,
    policy: answer.policy,
    attempt: task.attempt,
    crawlId: task.crawlId,
    jobId: task.jobId,
    round: task.round,
    lane: task.lane,
    depth: task.depth,
    maxDepth: task.maxDepth,
    seedUrl: task.seedUrl,
    parentUrl: task.parentUrl,
    extractors: task.extractors,
    dedup: task.dedup,
    meta: task.meta,
    traceId: task.traceId,
    enqueuedAt: task.enqueuedAt,
    sitemapLevel: task.sitemapLevel,
  }
}

/** Every Content-Type header of an answer, as one text: which of them counts is known to who reads it. */
export function contentTypeHeader(response: HttpResponse): string | null {
  const values = headerValues(response, 'content-type')
  return values.length === 0 ? null : values.join(', ')
}

/** The page as a message of html, keyed by its canonical URL. Errors: MESSAGE_INVALID naming the field. */
export function pageMessage(
  page: Page,
  parts: { codec: MessageCodec; layout: LayoutSource; topics: Pick<TopicNames, 'html'> },
): OutgoingMessage {
  const topic = parts.topics.html
  return {
    topic,
    partition: partitionFor(page.canonicalUrl, parts.layout().partitionsOf(topic)),
    key: page.canonicalUrl,
    value: parts.codec.encode('Page', page, topic),
    headers: parts.codec.headers('Page', page.traceId === null ? undefined : makeTraceParent(page.traceId)),
    timestamp: page.fetchedAt,
  }
}
