import { describe, expect, it } from 'vitest'
import { loadDefinition } from '../../../src/extract/load-extractors.ts'
import { NO_TOTALS } from '../../../src/extract/offset-metadata.ts'
import type { ExtractionJob, PageExtraction } from '../../../src/extract/page-extraction.ts'
import { createPageProcessor, type PageProcessorOptions } from '../../../src/extract/page-processor.ts'
import type { ProcessedPage } from '../../../src/extract/partition-port.ts'
import type { KafkaMessage } from '../../../src/kafka/message.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { createMessageCodec } from '../../../src/message/codec.ts'
import { HEADER } from '../../../src/message/header-names.ts'
import { copyHeaders } from '../../../src/message/put-back.ts'
import { readDeadLetter } from '../../../src/message/read-dead-letter.ts'
import type { ReplayRequest } from '../../../src/message/replay-request.ts'
import { createSchemaStore } from '../../../src/message/schema-store.ts'
import { testPage } from '../../support/extraction.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { BOOK_1 } from '../../support/stored-shop.ts'

const TOPIC = 'p.html'
const codec = createMessageCodec({ schemaStore: createSchemaStore() })
const book = { ...loadDefinition('book.yaml', BOOK_1), topic: undefined }
const value = codec.encode('Page', testPage('<h1>p</h1>'), TOPIC)
const page = { topic: TOPIC, partition: 1, offset: 5n, timestamp: 7 }

/** A copy of the page at 1:5, of which the one at 2:6 had failed. */
function copyAt(partition: number, offset: bigint, only = 'book'): KafkaMessage {
  const headers = { ...copyHeaders(page, { partition: 2, offset: 6n }), [HEADER.only]: only, [HEADER.requeued]: '0:0' }
  const buffers = Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)]))
  return { topic: TOPIC, partition, offset, timestamp: 99, key: Buffer.from('k'), value, headers: buffers }
}

function replay(ranges: readonly [partition: number, from: number, until: number][]): ReplayRequest {
  const texts = ranges.map(([partition, from, until]) => ({ partition, from: String(from), until: String(until) }))
  return { replayId: 'r', groupId: 'g', extractor: 'book', extractorVersion: 1, filter: {}, ranges: texts }
}

/** Its extractor fails on every page. */
async function worked(
  message: KafkaMessage,
  { request, readFrom = 0n, ...options }: Partial<PageProcessorOptions> & { request?: ReplayRequest; readFrom?: bigint } = {},
): Promise<{ processed: ProcessedPage | undefined; jobs: ExtractionJob[] }> {
  const jobs: ExtractionJob[] = []
  const extraction: PageExtraction = {
    extractors: new Map([['book', book]]),
    matching: () => ['book'],
    extract: async (job) => {
      jobs.push(job)
      return [{ kind: 'failure', extractor: 'book', code: 'EXTRACT_TIMEOUT', message: 'slow' }]
    },
  }
  const process = createPageProcessor({
    codec,
    extraction,
    output: {
      recordsTopic: () => 'p.records',
      deadLettersTopic: 'p.dead-letters',
      partitionCount: () => 1,
      maxBatchBytes: () => 1_000_000,
      recordHeaders: () => ({}),
    },
    replayRequest: () => request,
    firstOffset: async () => 0n,
    clock: systemClock,
    observer: silentObserver,
    ...options,
  })
  const work = { replayId: request?.replayId, readFrom }
  return { processed: await process(message, work, new AbortController().signal), jobs }
}

const passedOver = { jobs: [], processed: { messages: [], totals: new Map() } }

describe('a page that was put back', () => {
  it('is worked by live work, as the page that it is a copy of, and counts as none of its own', async () => {
    const { processed, jobs } = await worked(copyAt(1, 30n))
    expect(jobs).toMatchObject([{ source: { topic: TOPIC, partition: 1, offset: 5n } }])
    expect(processed).toMatchObject({ counts: 'no-page', totals: new Map([['book', { ...NO_TOTALS, pages: 1, deadLetters: 1 }]]) })
    const letter = readDeadLetter(processed?.messages[0]?.headers ?? {})
    expect(letter).toMatchObject({ original: page, copy: { partition: 1, offset: 30n } })
    expect((await worked(copyAt(1, 30n, '@frontier'))).processed).toMatchObject({ counts: 'no-page', messages: [] })
    // As one of before copies named their page.
    const { [HEADER.origTopic]: _, ...headers } = copyAt(1, 30n).headers
    expect((await worked({ ...copyAt(1, 30n), headers })).jobs).toMatchObject([{ source: { partition: 1, offset: 30n } }])
  })

  it('counts for neither where it was a dead letter of a replay, of which it is one once more if it fails again', async () => {
    const copy = copyAt(1, 30n)
    for (const message of [
      { ...copy, headers: { ...copy.headers, [HEADER.replay]: Buffer.from('r') } },
      { ...copy, headers: { ...copy.headers, [HEADER.replay]: Buffer.from('r') }, value: Buffer.from('broken') },
    ]) {
      const { processed } = await worked(message)
      expect(processed?.counts).toBe('put-back-of-replay')
      expect(readDeadLetter(processed?.messages[0]?.headers ?? {})).toMatchObject({ replay: 'r' })
    }
    const { processed } = await worked(
      { ...copy, headers: { ...copy.headers, [HEADER.replay]: Buffer.from('r') } },
      { request: replay([[1, 6, 40]]) },
    )
    expect(processed?.counts).toBe('replayed')
  })

  it('is passed over by a replay that reads the page, or the copy before it, whatever partition these are in', async () => {
    expect(await worked(copyAt(1, 30n), { request: replay([[1, 5, 40]]) })).toMatchObject(passedOver)
    expect(
      await worked(copyAt(3, 0n), {
        request: replay([
          [1, 0, 6],
          [3, 0, 9],
        ]),
      }),
    ).toMatchObject(passedOver)
    expect(
      await worked(copyAt(3, 0n), {
        request: replay([
          [2, 6, 7],
          [3, 0, 9],
        ]),
      }),
    ).toMatchObject(passedOver)
    const { ranges: _, ...asked } = replay([])
    const shadow = { ...asked, shadow: { topic: 's', ranges: replay([[1, 0, 40]]).ranges ?? [] } }
    expect(await worked(copyAt(1, 30n), { shadow })).toMatchObject(passedOver)
  })

  it('is worked by a replay that does not read the page, and counts there', async () => {
    const outside = replay([
      [1, 6, 40],
      [2, 7, 40],
    ])
    const { processed, jobs } = await worked(copyAt(1, 30n), { request: outside })
    expect(jobs).toMatchObject([{ replayId: 'r', source: { partition: 1, offset: 5n } }])
    expect(processed?.counts).toBe('replayed')
    // Retention has deleted the page before the replay came to it.
    expect((await worked(copyAt(1, 30n), { request: replay([[1, 0, 40]]), readFrom: 6n })).jobs).toHaveLength(1)
    // In another partition, where its place is all that is left to go by.
    const whole = replay([
      [1, 0, 40],
      [3, 0, 9],
    ])
    const firstOffset = async (partition: number): Promise<bigint> => (partition === 1 ? 6n : 0n)
    expect((await worked(copyAt(3, 0n), { request: whole, firstOffset })).jobs).toHaveLength(1)
    expect(await worked(copyAt(3, 0n), { request: whole, firstOffset: async () => 5n })).toMatchObject(passedOver)
    const { ranges: _, ...asked } = outside
    const shadow = { ...asked, shadow: { topic: 's', ranges: outside.ranges ?? [] } }
    expect((await worked(copyAt(1, 30n), { shadow })).processed?.counts).toBe('page')
  })

  it('is passed over by a version that is tried beside live work, where that has read the page', async () => {
    expect(await worked(copyAt(1, 30n), { isCandidate: true })).toMatchObject(passedOver)
    // It began behind the page, or in another partition, nobody knows where.
    expect((await worked(copyAt(1, 30n), { isCandidate: true, readFrom: 6n })).jobs).toHaveLength(1)
    expect((await worked(copyAt(3, 0n), { isCandidate: true })).jobs).toHaveLength(1)
  })
})

describe('a page that can not be read', () => {
  const foreign: KafkaMessage = { ...page, key: Buffer.from('k'), value: Buffer.from('0000000007aa', 'hex'), headers: {} }

  it('is a failure of the version of a replay where only its schema is unknown: it may have given records when it was live', async () => {
    const request = replay([[1, 0, 40]])
    const { ranges: _, ...asked } = request
    for (const options of [{ request }, { shadow: { ...asked, shadow: { topic: 's', ranges: [] } } }]) {
      const { processed } = await worked(foreign, options)
      expect(processed?.totals).toEqual(new Map([['book', { ...NO_TOTALS, pages: 1, deadLetters: 1 }]]))
      expect(processed?.messages).toHaveLength(1)
      expect(readDeadLetter(processed?.messages[0]?.headers ?? {})).toMatchObject({ original: page, code: 'MESSAGE_SCHEMA_UNKNOWN' })
      expect(processed?.messages[0]?.headers).toMatchObject({ [HEADER.extractor]: 'book:1', [HEADER.replay]: 'r' })
    }
  })

  it('is none for a replay where it is broken for good: it was buried when it was live', async () => {
    const broken = { ...foreign, value: value.subarray(0, 12) }
    expect(await worked(broken, { request: replay([[1, 0, 40]]) })).toMatchObject(passedOver)
    const { processed } = await worked(broken)
    expect(processed).toMatchObject({ counts: 'page', totals: new Map() })
    expect(processed?.messages[0]?.headers).not.toHaveProperty(HEADER.extractor)
  })
})

describe('a dead letter of extract', () => {
  const live: KafkaMessage = { ...page, key: Buffer.from('k'), value, headers: {} }
  const tooLarge: PageExtraction = {
    extractors: new Map([['book', book]]),
    matching: () => ['book'],
    extract: async () => [{ kind: 'records', extractor: 'book', records: [{ key: 'book/1', value: Buffer.alloc(2_000_000) }] }],
  }

  it.each([
    ['a page that is none', { ...live, value: Buffer.from('rubbish') }, {}, { code: 'MESSAGE_FRAMING_UNKNOWN' }],
    ['an extractor that failed', live, {}, { code: 'EXTRACT_TIMEOUT', extractor: 'book:1' }],
    ['a record that fits nowhere', live, { extraction: tooLarge }, { code: 'EXTRACT_RECORD_TOO_LARGE', extractor: 'book:1' }],
  ])('is told once, with its place and the text that it holds: %s', async (_, message, options, told) => {
    const { observer, events } = recordingObserver()
    const { processed } = await worked(message, { ...options, observer })
    const { message: text } = readDeadLetter(processed?.messages[0]?.headers ?? {})
    expect(events.filter(({ event }) => event === 'DeadLetterWritten').map(({ fields }) => fields)).toEqual([
      { stage: 'extract', topic: TOPIC, partition: 1, offset: 5n, text, ...told },
    ])
  })
})
