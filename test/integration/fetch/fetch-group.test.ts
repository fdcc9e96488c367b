import { afterEach, describe, expect, it } from 'vitest'
import { DEFAULT_CONSUMER_SETTINGS } from '../../../src/kafka/consumer-settings.ts'
import { fetchId } from '../../../src/message/ids.ts'
import { groupNames } from '../../../src/message/topics.ts'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture, fakeExchange, fastPace } from '../../support/fetch-fixture.ts'
import { KafkaFixture, QUICK_MEMBER } from '../../support/kafka-fixture.ts'

let fixture: FetchFixture

afterEach(() => fixture.close())

/** The offset that the fetch group goes on at, of the only partition of the normal lane. */
async function committedOffset(): Promise<bigint | undefined> {
  const kafka = new KafkaFixture(fixture.seen.observer)
  try {
    const prefix = fixture.topics.urls.normal.replace(/urls$/, '')
    return (await kafka.committed(groupNames(prefix).fetch, fixture.topics.urls.normal, 0))?.offset
  } finally {
    await kafka.close()
  }
}

describe('a member of the fetch group', () => {
  it('C151: keeps its partitions through a request that is longer than its session', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const longMs = (QUICK_MEMBER.sessionTimeoutMs ?? 0) + 3_000
    const exchange = fakeExchange(async ({ url }) => {
      if (url.pathname === '/slow') await new Promise((resolve) => setTimeout(resolve, longMs))
      return { body: 'x' }
    })
    const limits = { connectMs: 2_000, headersMs: 20_000, idleMs: 20_000, totalMs: 20_000, maxBodyBytes: 1_048_576 }
    await fixture.fetchWorker(exchange, { limits })
    await fixture.produce([{ url: 'http://a.example/slow' }, { url: 'http://b.example/' }])
    const outcomes = await eventually(() => fixture.finalOutcomes(2), { timeoutMs: longMs + 10_000, everyMs: 200 })
    expect(outcomes.map(({ kind, attempt }) => `${kind} ${attempt}`)).toEqual(['FETCHED 1', 'FETCHED 1'])
    expect(exchange.requests).toHaveLength(2)
    await eventually(async () => (await committedOffset()) === 2n)
    expect(fixture.seen.count('GroupJoined')).toBe(1)
    expect(fixture.seen.count('ConsumerRestarted')).toBe(0)
  })

  it('C151: asks once for what is on the wire through a whole rebalance', async () => {
    fixture = await FetchFixture.open({ partitions: 2 })
    let answerNow = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      answerNow = resolve
    })
    const exchange = fakeExchange(async () => {
      await gate
      return { body: 'x' }
    })
    await fixture.fetchWorker(exchange)
    await fixture.produce(Array.from({ length: 8 }, (_, index) => ({ url: `http://h${index}.example/slow` })))
    await eventually(() => exchange.requests.length === 8, { what: 'requests on the wire' })
    const joinsBefore = fixture.seen.count('GroupJoined')
    const second = await fixture.fetchWorker(exchange)
    // Both are members of a new generation while the answers are still awaited.
    await eventually(() => fixture.seen.count('GroupJoined') >= joinsBefore + 2, { what: 'a rebalance' })
    const isRead = (): boolean => second.view().waiting + second.view().inFlight > 0 || exchange.requests.length > 8
    await eventually(isRead, { what: 'the other one to have tasks that are on the wire here' })
    answerNow()
    const outcomes = await eventually(() => fixture.finalOutcomes(8), { everyMs: 200 })
    expect(outcomes.map(({ kind, attempt }) => `${kind} ${attempt}`)).toEqual(Array(8).fill('FETCHED 1'))
    expect(exchange.requests).toHaveLength(8)
  })

  it('C161: drains while another one joins: what was finished is committed, what was not is fetched by the other, under the same id', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const isLate = (url: URL): boolean => Number(url.pathname.slice(1)) % 4 === 2
    let isFirst = true
    let release = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const exchange = fakeExchange(async ({ url, signal }) => {
      if (isFirst && isLate(url))
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      if (isFirst) await gate
      return { body: 'x' }
    })
    const options = { concurrency: 10, paceOf: (url: URL) => ({ ...fastPace(url), concurrency: 10, burst: 20 }) }
    const first = await fixture.fetchWorker(exchange, options)
    const tasks = await fixture.produce(Array.from({ length: 14 }, (_, index) => ({ url: `http://a.example/${index}` })))
    await eventually(() => exchange.requests.length === 10)
    const stopped = first.stop({ mode: 'drain', timeoutMs: 6_000 })
    const joined = fixture.fetchWorker(exchange, options)
    release()
    await stopped
    isFirst = false
    await joined
    const outcomes = await eventually(() => fixture.finalOutcomes(14), { everyMs: 200 })
    expect(outcomes).toHaveLength(14)
    const pages = await fixture.pages()
    const ids = tasks.map(({ taskId }) => fetchId(taskId, 1)).sort()
    expect(pages.map((page) => page.fetchId).sort()).toEqual(ids)
    // Asked for twice: those alone that the first one could not finish.
    const times = (index: number): number => exchange.requests.filter(({ url }) => url.pathname === `/${index}`).length
    expect(tasks.flatMap((_, index) => (times(index) > 1 ? [index] : []))).toEqual([2, 6])
    await eventually(async () => (await committedOffset()) === 14n)
  })

  it('C161: says that it lives three times at least before the group would take it for dead', () => {
    const { heartbeatIntervalMs, sessionTimeoutMs, rebalanceTimeoutMs } = DEFAULT_CONSUMER_SETTINGS
    expect(heartbeatIntervalMs * 3).toBeLessThanOrEqual(sessionTimeoutMs)
    expect(rebalanceTimeoutMs).toBeGreaterThanOrEqual(sessionTimeoutMs)
  })
})
