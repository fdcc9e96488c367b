import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { type AuditReport, audit } from '../../../../src/control/crawls/audit.ts'
import { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../../src/control/runtime/topics.ts'
import { encodeMetadata, freshMetadata } from '../../../../src/extract/offset-metadata.ts'
import { encodeOffsetMap } from '../../../../src/kafka/offset-map.ts'
import type { TaskPublisher } from '../../../../src/kafka/task-publisher.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import type { OutcomeKind, UrlTask } from '../../../../src/message/generated/types.ts'
import { HEADER } from '../../../../src/message/header-names.ts'
import { outcomeOf } from '../../../../src/message/outcome.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'
import { brokers, uniqueName } from '../../../support/services.ts'

let runtime: Runtime
let publisher: TaskPublisher

beforeEach(async () => {
  const sets = [
    `brokers=${brokers().join(',')}`,
    `topics.prefix=${uniqueName('audit')}.`,
    'topics.partitions.urls=1',
    'topics.partitions.records=1',
    'topics.partitions.outcomes=1',
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
  await applyTopics(runtime)
  publisher = await runtime.publisher()
})
afterEach(() => runtime.close())

const task = (taskId: string, fields: Partial<UrlTask> = {}): UrlTask =>
  newUrlTask({ taskId, url: `http://${taskId}.example/`, crawlId: 'c', lane: 'normal', ...fields })

async function end(ended: UrlTask, kind: OutcomeKind, reason: string | null = null): Promise<void> {
  const value = runtime.codec.encode('Outcome', outcomeOf(ended, { kind, reason, at: 1 }), runtime.topics.outcomes)
  await (await runtime.producer()).send([{ topic: runtime.topics.outcomes, partition: 0, key: 'k', value }])
}

/** Where a task was read, for its copies. */
function original(offset: bigint) {
  const topic = runtime.topics.urls.normal
  return { topic, partition: 0, offset, timestamp: 1, key: Buffer.from('k'), value: Buffer.from('v'), headers: {} }
}

async function commit(groupId: string, topic: string, offset: bigint, metadata = ''): Promise<void> {
  await runtime.admin.commitDirect(groupId, [{ topic, partition: 0, offset, metadata }])
}

/** Ten messages of the lane, of which one never got an outcome. */
async function fillLogs(): Promise<void> {
  const { topics, groups } = runtime
  const names = ['fetched', 'retried', 'moved', 'delayed', 'queued', 'lost', 'refused']
  const producer = await runtime.producer()
  await publisher.publish([...names.map((name) => task(name)), task('other', { crawlId: 'd' })])
  await producer.send([{ topic: topics.urls.normal, partition: 0, key: null, value: Buffer.from('rubbish') }])
  await end(task('fetched'), 'FETCHED')
  await end(task('fetched'), 'FETCHED')
  await end(task('refused'), 'REFUSED', 'robots')
  await end(task('other', { crawlId: 'd' }), 'FETCHED')
  // A retry: its outcome is not final, its copy waits a while, comes back to the lane and ends.
  await end(task('retried'), 'RETRY', 'http-503')
  const again = task('retried', { attempt: 2 })
  const copy = { dueAt: Date.now(), reason: 'http-503', original: original(1n) }
  const delayed = publisher.delayMessage(again, copy)
  await producer.send([delayed, publisher.forwardMessage(again, { ...original(1n), value: delayed.value as Buffer })])
  await end(again, 'FAILED', 'http-503')
  await producer.send([publisher.movedMessage(task('moved'), original(2n))])
  await end(task('moved'), 'FETCHED')
  // Still waits in its delay topic, whose first message has been dealt with.
  await producer.send([publisher.delayMessage(task('delayed'), { ...copy, original: original(3n) })])
  await commit(groups.delay, publisher.delayMessage(again, copy).topic, 1n)
  // Of the lane all is done but offset 4.
  const map = encodeOffsetMap({ span: 7, incomplete: [0] }, 4n)
  await commit(groups.fetch, topics.urls.normal, 4n, map.kind === 'map' ? map.text : '')
  await end(task('deleted'), 'FETCHED')
}

const WHOLE: Partial<AuditReport> = {
  produced: 8,
  outcomes: { FETCHED: 3, REFUSED: 1, FAILED: 1 },
  reasons: { robots: 1, 'http-503': 1 },
  repeats: 1,
  inFlight: 2,
  beforeHorizon: 1,
  malformed: 1,
  difference: 1,
  missing: [expect.objectContaining({ taskId: 'lost', crawlId: 'c', url: 'http://lost.example/', partition: 0, offset: '5' })],
}

describe('the ledger', () => {
  it('accounts for every task once: repeats, retries, delayed and moved copies, what waits, what is lost', async () => {
    await fillLogs()
    expect(await audit(runtime)).toMatchObject(WHOLE)
    expect(await audit(runtime, { crawlId: 'c' })).toMatchObject({
      ...WHOLE,
      produced: 7,
      outcomes: { FETCHED: 2, REFUSED: 1, FAILED: 1 },
      // They name no crawl.
      malformed: null,
    })
    expect(await audit(runtime, { crawlId: 'd' })).toMatchObject({ produced: 1, outcomes: { FETCHED: 1 }, inFlight: 0, difference: 0 })
  })

  it('adds up by crawl, with redirects, duplicates, requeued and spilled tasks as what they are', async () => {
    const { groups, topics } = runtime
    const producer = await runtime.producer()
    const hop = task('hop', {
      redirects: [{ url: 'http://moved.example/', status: 302, location: 'http://hop.example/', setCookies: [] }],
      dedup: 'none',
    })
    const requeued = task('failed-again', { dedup: 'none', crawlId: 'd' })
    await publisher.publish([task('moved-on'), hop, task('twin'), task('late'), task('failed', { crawlId: 'd' }), task('spilled')])
    await producer.send([publisher.laneMessage(requeued, { [HEADER.requeued]: '0:0' })])
    await end(task('moved-on'), 'REDIRECTED')
    await end(hop, 'FETCHED')
    await end(task('twin'), 'DUPLICATE', 'known-url')
    await end(task('late'), 'EXPIRED', 'expired')
    await end(task('failed', { crawlId: 'd' }), 'FAILED', 'http-503')
    await end(requeued, 'FETCHED')
    const spilled = publisher.delayMessage(task('spilled'), { dueAt: Date.now() + 60_000, reason: 'spill', original: original(5n) })
    await producer.send([spilled])
    await commit(groups.fetch, topics.urls.normal, 7n)
    const report = await audit(runtime)
    expect(report).toMatchObject({
      produced: 7,
      outcomes: { REDIRECTED: 1, FETCHED: 2, DUPLICATE: 1, EXPIRED: 1, FAILED: 1 },
      inFlight: 1,
      difference: 0,
    })
    expect(report.crawls).toEqual([
      { crawlId: 'c', produced: 5, ended: 4, inFlight: 1, difference: 0 },
      { crawlId: 'd', produced: 2, ended: 2, inFlight: 0, difference: 0 },
    ])
  })

  it('misses no task whose outcome retention may have deleted, and misses those after it', async () => {
    const { groups, topics } = runtime
    await publisher.publish([task('old')])
    await end(task('old'), 'FETCHED')
    await publisher.publish([task('older-than-what-is-left')])
    await end(task('other'), 'FETCHED')
    await runtime.admin.deleteRecordsBefore(topics.outcomes, new Map([[0, 1n]]))
    await publisher.publish([task('lost')])
    await commit(groups.fetch, topics.urls.normal, 3n)
    expect(await audit(runtime)).toMatchObject({ produced: 1, beforeHorizon: 3, difference: 1, missing: [{ taskId: 'lost' }] })
  })

  it('says the same in several passes, and of the moment at which it began, whatever is written meanwhile', async () => {
    await fillLogs()
    const readEnds = runtime.admin.endOffsets.bind(runtime.admin)
    const ends = vi.spyOn(runtime.admin, 'endOffsets').mockImplementation(async (topic, isolation) => {
      const found = await readEnds(topic, isolation)
      // The last topic whose end is asked for: from here on the stages go on while the passes read.
      if (topic !== runtime.topics.delays.at(-1)?.topic || isolation !== 'read_committed') return found
      await publisher.publish([task('late')])
      await end(task('late'), 'FETCHED')
      await end(task('lost'), 'FETCHED')
      return found
    })
    expect(await audit(runtime, { tasksPerPass: 4 })).toMatchObject(WHOLE)
    ends.mockRestore()
    expect(await audit(runtime, { tasksPerPass: 4 })).toMatchObject({
      ...WHOLE,
      produced: 9,
      outcomes: { FETCHED: 5 },
      difference: 0,
      missing: [],
    })
  })

  it('of a crawl takes as many passes as its own tasks need, whatever lies beside them', async () => {
    await fillLogs()
    const decode = vi.spyOn(runtime.codec, 'decode')
    const decoded = async (crawlId: string, tasksPerPass: number) => {
      decode.mockClear()
      const report = await audit(runtime, { crawlId, tasksPerPass })
      return { report, count: decode.mock.calls.length }
    }
    const whole = await decoded('d', 1_000)
    expect(await decoded('d', 1)).toEqual(whole)
    const large = await decoded('c', 1_000)
    const inPasses = await decoded('c', 4)
    expect(inPasses.report).toEqual(large.report)
    expect(inPasses.count).toBeGreaterThan(large.count)
    decode.mockRestore()
  })

  it('of a crawl decodes none of the messages of others, whoever wrote its own', async () => {
    const others = Array.from({ length: 50 }, (_, index) => task(`other-${index}`, { crawlId: 'winter' }))
    await publisher.publish([...others, task('own', { crawlId: 'spring-sale' })])
    const foreign = [
      '{"url":"http://foreign.example/","crawlId":"spring-sale"}',
      String.raw`{"url":"http://odd.example/","crawlId":"a\/b\u002Bc"}`,
    ]
    const [topic, producer] = [runtime.topics.urls.high, await runtime.producer()]
    await producer.send(foreign.map((text) => ({ topic, partition: 0, key: null, value: Buffer.from(text) })))
    await end(task('own', { crawlId: 'spring-sale' }), 'FETCHED')
    await end(task('other-0', { crawlId: 'winter' }), 'FETCHED')
    const decode = vi.spyOn(runtime.codec, 'decode')
    expect(await audit(runtime, { crawlId: 'spring-sale' })).toMatchObject({
      produced: 2,
      outcomes: { FETCHED: 1 },
      inFlight: 1,
      difference: 0,
    })
    expect(decode.mock.calls.length).toBeLessThanOrEqual(3)
    decode.mockRestore()
    expect(await audit(runtime, { crawlId: 'a/b+c' })).toMatchObject({ produced: 1, inFlight: 1, difference: 0 })
  })

  it('gives the totals of every extract group, and pages without an extractor', async () => {
    const { groups, topics } = runtime
    const totals = { pages: 3, records: 2, none: 1, deadLetters: 0 }
    const metadata = encodeMetadata({ ...freshMetadata(0n), totals: { noMatch: 4, extractors: { 'book:1': totals } } })
    await commit(groups.extract(), topics.html, 0n, metadata)
    await commit(groups.extract('slow'), topics.html, 0n, encodeMetadata({ ...freshMetadata(-1n) }))
    const config = { ...runtime.config, 'extract.groups': { slow: ['book'] } }
    const { extract } = await audit(Object.assign(Object.create(runtime), { config }))
    expect(extract).toEqual([
      { group: groups.extract(), noMatch: 4, gone: 0, extractors: [{ extractor: 'book:1', totals }] },
      { group: groups.extract('slow'), noMatch: null, gone: 0, extractors: [] },
    ])
  })
})
