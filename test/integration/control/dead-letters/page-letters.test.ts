import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { pageLettersFrom } from '../../../../src/control/dead-letters/page-letters.ts'
import { resolveDeadLetters } from '../../../../src/control/dead-letters/requeue.ts'
import { announce } from '../../../../src/control/runtime/announce.ts'
import { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../../src/control/runtime/topics.ts'
import { DeadLetterPublisher } from '../../../../src/kafka/dead-letter-publisher.ts'
import type { KafkaMessage } from '../../../../src/kafka/message.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { subject } from '../../../../src/message/command.ts'
import type { DeadLetterContext } from '../../../../src/message/dead-letter.ts'
import type { Page } from '../../../../src/message/generated/types.ts'
import { HEADER } from '../../../../src/message/header-names.ts'
import { isPutBack, pageSource } from '../../../../src/message/put-back.ts'
import { committed } from '../../../support/deployment.ts'
import { eventually } from '../../../support/eventually.ts'
import { testPage } from '../../../support/extraction.ts'
import { brokers, uniqueName } from '../../../support/services.ts'

const FAILED = { stage: 'extract', code: 'EXTRACT_TIMEOUT', message: 'slow', failedAt: 1, extractor: 'book:1' } as const

let runtime: Runtime

beforeEach(async () => {
  const sets = [
    `brokers=${brokers().join(',')}`,
    `topics.prefix=${uniqueName('letters')}.`,
    'topics.partitions.urls=1',
    'topics.partitions.html=1',
    'topics.partitions.deadLetters=1',
    'topics.partitions.records=1',
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
  await applyTopics(runtime)
})
afterEach(() => runtime.close())

const pageAt = (path: string): Page => testPage(`<h1>${path}</h1>`, `http://p.example/${path}`, { fetchId: path })

/** Written to html as fetch does. */
async function store(...pages: readonly Page[]): Promise<void> {
  const { topics, codec } = runtime
  const producer = await runtime.producer()
  for (const page of pages)
    await producer.send([{ topic: topics.html, partition: 0, key: page.canonicalUrl, value: codec.encode('Page', page, topics.html) }])
}

async function bury(message: KafkaMessage, context: DeadLetterContext = FAILED): Promise<void> {
  const { topics } = runtime
  const publisher = new DeadLetterPublisher({ topics, layout: await runtime.layout(), maxBytes: runtime.maxBatchBytes(topics.deadLetters) })
  await (await runtime.producer()).send([publisher.message(message, context)])
}

/** The page as it would have been read at this offset of html. */
function readAt(offset: bigint, page: Page): KafkaMessage {
  const { topics, codec } = runtime
  const value = codec.encode('Page', page, topics.html)
  return { topic: topics.html, partition: 0, offset, timestamp: 7, key: Buffer.from(page.canonicalUrl), value, headers: {} }
}

const requeue = () => resolveDeadLetters(runtime, { action: 'requeued', filter: {}, execute: true })

/** Offsets of html that the copies name as their pages; undefined: it is a page of its own. */
async function named(count: number): Promise<(bigint | undefined)[]> {
  const copies = await eventually(async () => {
    const found = (await committed(runtime, runtime.topics.html)).filter(({ headers }) => isPutBack(headers))
    return found.length === count && found
  })
  return copies.map((copy) => (pageSource(copy).offset === copy.offset ? undefined : pageSource(copy).offset))
}

describe('a page that is put back', () => {
  it('names the page that fetch wrote, if that lies there still', async () => {
    await store(pageAt('a'), pageAt('b'))
    await bury(readAt(1n, pageAt('b')))
    expect(await requeue()).toMatchObject({ pages: 1, ownPages: 0, examples: [{ becomes: 'page' }] })
    expect(await named(1)).toEqual([1n])
  })

  it('is a page of its own where html was made anew, and another lies in its place or none yet', async () => {
    await store(pageAt('stranger'))
    await bury(readAt(0n, pageAt('a')))
    await bury(readAt(4711n, pageAt('b')))
    expect(await requeue()).toMatchObject({ pages: 2, ownPages: 2, examples: [{ becomes: 'own-page' }, { becomes: 'own-page' }] })
    expect(await named(2)).toEqual([undefined, undefined])
  })

  it('is a page of its own where another lies in the place of the copy that failed', async () => {
    await store(pageAt('a'), pageAt('stranger'))
    const headers = { [HEADER.only]: 'book', [HEADER.requeued]: '0:0', [HEADER.copyOf]: '0:0' }
    const origin = { [HEADER.origTopic]: runtime.topics.html, [HEADER.origPartition]: '0', [HEADER.origOffset]: '0' }
    const copy = Object.entries({ ...headers, ...origin }).map(([name, text]) => [name, Buffer.from(text)] as const)
    await bury({ ...readAt(1n, pageAt('a')), headers: Object.fromEntries(copy) })
    expect(await requeue()).toMatchObject({ pages: 1, ownPages: 1 })
    expect(await named(1)).toEqual([undefined])
  })

  it('names its page where retention has deleted it, for nothing else will lie there', async () => {
    const { admin, topics } = runtime
    await store(pageAt('a'), pageAt('b'))
    await admin.deleteRecordsBefore(topics.html, new Map([[0, 1n]]))
    await bury(readAt(0n, pageAt('a')))
    expect(await requeue()).toMatchObject({ pages: 1, ownPages: 0 })
    expect(await named(1)).toEqual([0n])
  })
})

it('a run counts the dead letters of live work, not those of candidates and replays', async () => {
  const page = readAt(0n, pageAt('a'))
  await announce(runtime, { kind: 'announce', subject: subject.extractor('book', 1), payload: {} })
  await announce(runtime, { kind: 'announce', subject: subject.extractor('book', 2), payload: { tried: true } })
  await bury(page)
  await bury(page, { ...FAILED, extractor: 'book:2' })
  await bury(page, { ...FAILED, replayId: 'r' })
  await bury(page, { stage: 'frontier', code: 'EXTRACT_PAGE_BROKEN', message: 'cut', failedAt: 1 })
  await bury(page, { stage: 'fetch', code: 'FETCH_FAILED', message: 'http-503', failedAt: 1 })
  const { admin, topics } = runtime
  const from = await admin.earliestOffsets(topics.deadLetters)
  expect(await pageLettersFrom(runtime, from)).toEqual({ EXTRACT_TIMEOUT: 1, EXTRACT_PAGE_BROKEN: 1 })
  expect(await pageLettersFrom(runtime, new Map([...from].map(([partition]) => [partition, 3n])))).toEqual({ EXTRACT_PAGE_BROKEN: 1 })
})
