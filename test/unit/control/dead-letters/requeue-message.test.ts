import { describe, expect, it } from 'vitest'
import { pageReader, type Requeue, type RequeueParts, requeueOf } from '../../../../src/control/dead-letters/requeue-message.ts'
import type { KafkaMessage } from '../../../../src/kafka/message.ts'
import type { TaskPublisher } from '../../../../src/kafka/task-publisher.ts'
import type { MessagePlace } from '../../../../src/kernel/brand.ts'
import { createMessageCodec } from '../../../../src/message/codec.ts'
import { createSchemaStore } from '../../../../src/message/schema-store.ts'
import { topicNames } from '../../../../src/message/topics.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'
import { testPage } from '../../../support/extraction.ts'

const place = (offset: bigint): MessagePlace => ({ topic: 'html', partition: 0, offset })
const message: KafkaMessage = { topic: 'html', partition: 0, offset: 0n, timestamp: 0, key: null, value: null, headers: {} }

describe('the pages that dead letters name', () => {
  it('are not read where retention has deleted them, and the low offsets are looked up once', async () => {
    const asked: (bigint | 'low')[] = []
    const lows = async (): Promise<ReadonlyMap<number, bigint>> => {
      asked.push('low')
      return new Map([[0, 10n]])
    }
    const pageAt = pageReader(lows, async ({ offset }) => {
      asked.push(offset)
      return { ...message, offset }
    })
    expect(await pageAt(place(3n))).toBe('deleted')
    expect(await pageAt(place(9n))).toBe('deleted')
    expect(await pageAt(place(10n))).toMatchObject({ offset: 10n })
    expect(asked).toEqual(['low', 10n])
  })

  it('are deleted where retention comes to them during the command, and nothing where the log has not come to them', async () => {
    let low = 0n
    const pageAt = pageReader(
      async () => new Map([[0, low]]),
      async () => {
        low = 10n
        return undefined
      },
    )
    expect(await pageAt(place(5n))).toBe('deleted')
    expect(await pageAt(place(4711n))).toBeUndefined()
  })
})

const codec = createMessageCodec({ schemaStore: createSchemaStore() })
const topics = topicNames('scrape.')
const parts: RequeueParts = {
  codec,
  publisher: { laneMessage: () => ({ topic: topics.urls.normal, partition: 0, key: 'k', value: null }) } as unknown as TaskPublisher,
  layout: () => ({ version: 1, partitionsOf: () => 1, knows: () => true, countsOf: () => [1] }),
  topics,
  clusterId: 'a cluster',
  maxBatchBytes: () => 1_000_000,
  now: 1,
  writtenBeside: () => undefined,
  isCrawlStopped: (crawlId) => crawlId === 'spring',
  readAt: async () => undefined,
  pageAt: async () => undefined,
}
const requeue = (stage: string, value: Buffer, headers: Record<string, string> = {}): Promise<Requeue> => {
  const original = { topic: stage === 'fetch' ? topics.urls.normal : topics.html, partition: 0, offset: 3n }
  const listed = { info: { stage, original }, partition: 0, offset: 0n, key: null, timestamp: 0 }
  return requeueOf({ message: { ...message, topic: topics.deadLetters, value, headers }, listed } as never, parts)
}

describe('a task that is put back', () => {
  it('is in the lane that was asked for, where a challenge has put it into another one', async () => {
    const low = codec.encode('UrlTask', newUrlTask({ url: 'https://a.example/', lane: 'low' }), 'urls')
    expect(await requeue('fetch', low)).toMatchObject({ task: { lane: 'low' } })
    expect(await requeue('fetch', low, { 'millrace-asked-lane': 'high' })).toMatchObject({ task: { lane: 'high', attempt: 1 } })
  })
})

describe('what is put back into a crawl that is stopped', () => {
  const task = (crawlId: string | null): Buffer => codec.encode('UrlTask', newUrlTask({ url: 'https://a.example/', crawlId }), 'urls')
  const page = codec.encode('Page', testPage('<a href="/b">b</a>', 'https://a.example/', { crawlId: 'spring' }), 'html')

  it('is no task, which would be refused, and no page for its links, which would not be followed', async () => {
    const left = { kind: 'not', reason: 'crawl-stopped', detail: expect.stringContaining('spring is stopped') }
    expect(await requeue('fetch', task('spring'))).toEqual(left)
    expect(await requeue('frontier', page)).toEqual(left)
  })

  it('is a page for its extractor, and what is of other crawls or of none', async () => {
    expect(await requeue('extract', page)).toMatchObject({ kind: 'page' })
    for (const crawlId of ['autumn', null]) expect(await requeue('fetch', task(crawlId))).toMatchObject({ kind: 'task' })
  })
})
