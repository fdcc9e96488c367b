import { afterEach, expect, it } from 'vitest'
import { SPILL_LIMITS } from '../../../src/fetch/spill.ts'
import type { MessageProducer } from '../../../src/kafka/producer.ts'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture, fakeExchange, fastPace } from '../../support/fetch-fixture.ts'
import { uniqueName } from '../../support/services.ts'

const DELAYS = [100, 60_000, 600_000, 3_600_000]
/** More tasks of a site than a window holds, so that the rest leaves it together. */
const COUNT = 12
const SPILL = { ...SPILL_LIMITS, maxPerWindow: 4 }

let fixture: FetchFixture

afterEach(() => fixture.close())

/** The producer of the fixture, but what it writes to delay topics goes through `write`, which is told the URL. */
function withDelayed(write: (url: string, send: () => Promise<void>) => Promise<void>): MessageProducer {
  const { producer, codec, topics } = fixture
  const delays = new Set(topics.delays.map(({ topic }) => topic))
  return {
    send: (messages, options) => {
      const [first] = messages
      const send = async (): Promise<void> => {
        await producer.send(messages, options)
      }
      return first !== undefined && delays.has(first.topic) && first.value !== null
        ? write(codec.decode('UrlTask', first.value).url, send)
        : send()
    },
  } as MessageProducer
}

const allFinal = async (crawlId: string): Promise<boolean> => {
  const { accepted, final } = await fixture.state.crawlCounts(crawlId)
  return accepted === COUNT && final === COUNT
}

it('tasks that come back from a delay topic while others that left with them are still being written are fetched', async () => {
  fixture = await FetchFixture.open({ partitions: 1, delays: DELAYS })
  const last = `http://big.example/${COUNT - 1}`
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const exchange = fakeExchange(() => ({ body: 'x' }))
  const producer = withDelayed(async (url, send) => {
    if (url === last) await released
    return send()
  })
  await fixture.fetchWorker(exchange, { producer, spill: SPILL })
  await fixture.delayWorker()
  fixture.onClose(release)
  const crawlId = uniqueName('crawl')
  await fixture.produce(Array.from({ length: COUNT }, (_, i) => ({ url: `http://big.example/${i}`, crawlId })))
  await eventually(async () => (await fixture.state.crawlCounts(crawlId)).final === COUNT - 1)
  release()
  await eventually(() => allFinal(crawlId))
  expect(exchange.requests).toHaveLength(COUNT)
  expect(fixture.seen.count('RepeatSkipped')).toBe(0)
})

it('a task whose copy is back before it was acknowledged is fetched, once', async () => {
  fixture = await FetchFixture.open({ partitions: 1, delays: DELAYS })
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const exchange = fakeExchange(() => ({ body: 'x' }))
  const producer = withDelayed(async (_, send) => {
    await send()
    await released
  })
  const worker = await fixture.fetchWorker(exchange, { producer, spill: SPILL })
  await fixture.delayWorker()
  fixture.onClose(release)
  const crawlId = uniqueName('crawl')
  await fixture.produce(Array.from({ length: COUNT }, (_, i) => ({ url: `http://big.example/${i}`, crawlId })))
  // All that fit are done; the others are in the window twice, as what they left by and as the copy that came back.
  await eventually(async () => {
    const { final } = await fixture.state.crawlCounts(crawlId)
    return final > 0 && worker.view().windowMessages === 2 * (COUNT - final)
  })
  release()
  await eventually(() => allFinal(crawlId))
  expect(exchange.requests).toHaveLength(COUNT)
})

it('a task that has held back the commit of its partition for too long leaves before its turn comes', async () => {
  fixture = await FetchFixture.open({ partitions: 1 })
  const exchange = fakeExchange(() => ({ body: 'x' }))
  const worker = await fixture.fetchWorker(exchange, {
    // The second one waits for twenty seconds, which is no long wait yet.
    paceOf: (url) => ({ ...fastPace(url), ratePerSecond: 0.05, burst: 1, concurrency: 1 }),
    spill: { ...SPILL_LIMITS, maxBaseAgeMs: 1_000 },
  })
  await fixture.produce([{ url: 'http://slow.example/0' }, { url: 'http://slow.example/1' }])
  await eventually(() => fixture.seen.count('TaskSpilled', { reason: 'old-base' }) === 1, { what: 'the second one to leave' })
  await eventually(() => worker.view().windowMessages === 0, { what: 'a window that holds back nothing' })
  expect(exchange.requests.map(({ url }) => url.href)).toEqual(['http://slow.example/0'])
})
