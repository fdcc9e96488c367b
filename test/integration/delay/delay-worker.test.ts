import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/kernel/clock.ts'
import { singleObjectFrame } from '../../../src/message/framing.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture } from '../../support/fetch-fixture.ts'
import { expectInTime } from '../../support/in-time.ts'

/** On a machine that has the time for it. */
const LATE_MS = 1_000

let fixture: FetchFixture
afterEach(() => fixture.close())

const original = (topic: string) => ({ topic, partition: 1, offset: 77n, timestamp: 123, key: Buffer.from('k'), value: null, headers: {} })

/** When each task came to its lane, in the order of arrival; ms after it was due. */
async function arrivals(count: number): Promise<{ url: string; lateMs: number }[]> {
  return eventually(
    async () => {
      const all = (await Promise.all(Object.values(fixture.topics.urls).map((topic) => fixture.messages(topic)))).flat()
      if (all.length < count) return false
      return all
        .sort((a, b) => a.timestamp - b.timestamp)
        .map(({ value, timestamp }) => {
          const task = fixture.codec.decode('UrlTask', value)
          return { url: task.url, lateMs: timestamp - Number(task.meta.due) }
        })
    },
    { everyMs: 100, what: `${count} tasks in their lanes` },
  )
}

async function delay(name: string, waitMs: number, fields: object = {}): Promise<void> {
  const dueAt = Date.now() + waitMs
  const task = newUrlTask({ url: `http://${name}.example/`, taskId: name, lane: 'low', meta: { due: String(dueAt) }, ...fields })
  await fixture.producer.send([
    fixture.publisher.delayMessage(task, { dueAt, reason: 'spill', original: original(fixture.topics.urls.low) }),
  ])
}

describe('the delay worker on a real broker', () => {
  it('brings tasks back in the order they are due, never before and within a second', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [500, 1_500, 60_000, 3_600_000] })
    await fixture.delayWorker()
    const waits = { b: 900, d: 2_600, a: 300, c: 1_400, e: 3_300 }
    for (const [name, waitMs] of Object.entries(waits)) await delay(name, waitMs)
    const arrived = await arrivals(5)
    expect(arrived.map(({ url }) => new URL(url).hostname[0])).toEqual(['a', 'b', 'c', 'd', 'e'])
    for (const { lateMs } of arrived) {
      expect(lateMs).toBeGreaterThanOrEqual(0)
      expectInTime(lateMs, LATE_MS)
    }
    // The long ones went through the second topic, the longest twice where it woke there in time, and then through the first.
    expect([2, 3]).toContain((await fixture.messages(fixture.topics.delays[1]?.topic ?? '')).length)
    // One that wakes there when it is due already, on a busy machine, goes to its lane at once.
    const short = (await fixture.messages(fixture.topics.delays[0]?.topic ?? '')).length
    expect([3, 4, 5]).toContain(short)
    const [copy] = await fixture.messages(fixture.topics.urls.low)
    expect(String(copy?.headers['millrace-orig-offset'])).toBe('77')
    expect(String(copy?.headers['millrace-orig-topic'])).toBe(fixture.topics.urls.low)
    expect(String(copy?.key)).toBe('a.example')
  })

  it.each([3, -3])('keeps to the time that is left when its wall clock is set by %i hours', async (hours) => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [500, 1_500, 60_000, 3_600_000] })
    let shiftMs = 0
    const worker = await fixture.delayWorker({ clock: { ...systemClock, now: () => systemClock.now() + shiftMs } })
    await delay('held', 1_400)
    // In the longer topic first: it is read again after the clock was set.
    if (hours < 0) await delay('longer', 3_000)
    await eventually(() => worker.heldCount === (hours < 0 ? 2 : 1))
    shiftMs = hours * 3_600_000
    // Set back: what is read from now on was written in what it takes for the future.
    if (hours < 0) await delay('after', 1_200)
    for (const { lateMs } of await arrivals(hours < 0 ? 3 : 1)) {
      expect(lateMs).toBeGreaterThanOrEqual(0)
      expectInTime(lateMs, LATE_MS)
    }
  })

  it('brings back in its time what was put aside by a clock that was hours ahead, and set right before it was sent', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [500, 1_500, 60_000, 3_600_000] })
    await fixture.delayWorker()
    const aheadMs = 3 * 3_600_000
    const publisher = fixture.publisherBy({ ...systemClock, now: () => systemClock.now() + aheadMs })
    const topic = fixture.topics.urls.low
    const messages = [700, 2_600].map((waitMs) => {
      const dueAt = Date.now() + waitMs
      const task = newUrlTask({ url: `http://a.example/${waitMs}`, taskId: `${waitMs}`, lane: 'low', meta: { due: String(dueAt) } })
      return publisher.delayMessage(task, { dueAt: dueAt + aheadMs, reason: 'http-503', original: original(topic) })
    })
    await fixture.producer.send(messages)
    for (const { lateMs } of await arrivals(2)) {
      expect(lateMs).toBeGreaterThanOrEqual(0)
      expectInTime(lateMs, LATE_MS)
    }
  })

  it('answers what it can not read with dead letters, and sends on what has expired or has a bad URL', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    await fixture.delayWorker()
    const topic = fixture.topics.delays[1]?.topic ?? ''
    const due = { 'millrace-due-ms': '1' }
    await fixture.producer.send([
      { topic, partition: 0, key: null, value: Buffer.from('rubbish'), headers: due },
      { topic, partition: 0, key: null, value: Buffer.from('{"url":"http://a.example/"}'), headers: { 'millrace-due-ms': 'soon' } },
      { topic, partition: 0, key: null, value: Buffer.from('{"url":"mailto:a"}'), headers: due },
      { topic, partition: 0, key: null, value: Buffer.from(`{"url":"http://b.example/","expiresAt":1,"meta":{"due":"1"}}`), headers: due },
    ])
    const sentOn = await eventually(async () => {
      const all = await fixture.messages(fixture.topics.urls.normal)
      return all.length === 2 && all
    })
    expect(sentOn.map(({ value }) => fixture.codec.decode('UrlTask', value).url).sort()).toEqual(['http://b.example/', 'mailto:a'])
    const dead = await eventually(async () => {
      const all = await fixture.messages(fixture.topics.deadLetters)
      return all.length === 2 && all
    })
    expect(dead.map(({ headers }) => String(headers['millrace-error-code'])).sort()).toEqual(['MESSAGE_FRAMING_UNKNOWN', 'MESSAGE_INVALID'])
    expect(dead.every(({ headers }) => String(headers['millrace-stage']) === 'delay')).toBe(true)
    expect(dead.map(({ value }) => String(value))).toContain('rubbish')
  })

  it('sends on a task of a newer release as it was written, with what is not known here', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    await fixture.delayWorker()
    const { schemas } = fixture.codec
    const json = JSON.parse(schemas.current('UrlTask').text)
    const newer = schemas.add(JSON.stringify({ ...json, fields: [...json.fields, { name: 'patience', type: 'int', default: 0 }] }))
    const value = singleObjectFrame(newer.fingerprint, newer.encode({ url: 'http://a.example/', taskId: 'a', patience: 7 }))
    const headers = { 'millrace-due-ms': '1', 'millrace-schema': `${newer.name}:${newer.fingerprint}` }
    await fixture.producer.send([{ topic: fixture.topics.delays[0]?.topic ?? '', partition: 0, key: null, value, headers }])
    const [copy] = await eventually(async () => {
      const all = await fixture.messages(fixture.topics.urls.normal)
      return all.length === 1 && all
    })
    expect(copy?.value).toEqual(value)
    expect(String(copy?.headers['millrace-schema'])).toBe(headers['millrace-schema'])
  })

  it('sends on a task that just fits its topic, though its copies would not', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [100, 600, 60_000, 3_600_000] })
    await fixture.delayWorker()
    const [shortest, longer] = fixture.topics.delays
    const text = (length: number): Buffer => Buffer.from(`{"url":"http://a.example/","meta":{"x":"${'x'.repeat(length)}"}}`)
    const headers = { 'millrace-due-ms': String(Date.now() + 900) }
    const value = text(1_048_588 - 260)
    // The second goes through the shortest topic first.
    for (const delay of [shortest, longer])
      await fixture.producer.send([{ topic: delay?.topic ?? '', partition: 0, key: null, value, headers }])
    const arrived = await eventually(async () => {
      const all = await fixture.messages(fixture.topics.urls.normal)
      return all.length === 2 && all
    })
    expect(arrived.map((message) => message.value?.equals(value))).toEqual([true, true])
    expect(arrived.map(({ key }) => String(key))).toEqual(['a.example', 'a.example'])
    expect(await fixture.messages(fixture.topics.deadLetters)).toEqual([])
  })

  it('makes room by writing what is due last to the end, and sees what is due sooner', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [100, 60_000, 600_000, 3_600_000] })
    // Due when the worker has long begun.
    await Promise.all([...Array.from({ length: 30 }, (_, i) => delay(`late${i}`, 20_000)), delay('soon', 12_000)])
    const worker = await fixture.delayWorker({ maxWindowBytes: 6_000 })
    const arrived = await arrivals(31)
    expect(arrived[0]?.url).toBe('http://soon.example/')
    expect(new Set(arrived.map(({ url }) => url)).size).toBe(31)
    for (const { lateMs } of arrived) {
      expect(lateMs).toBeGreaterThanOrEqual(0)
      expectInTime(lateMs, LATE_MS)
    }
    expect((await fixture.messages(fixture.topics.delays[0]?.topic ?? '')).length).toBeGreaterThan(31)
    await eventually(() => worker.heldCount === 0, { what: 'nothing to be held' })
  })

  it('brings back what was put aside for a site before it was reset, whatever it waits for and in whichever topic', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [1_000, 60_000, 600_000, 3_600_000] })
    const worker = await fixture.delayWorker()
    const year = 31_536_000_000
    await Promise.all([delay('held', year), delay('other', year), delay('near', 40_000)])
    await eventually(() => worker.heldCount === 3, { what: 'tasks that are held' })
    worker.siteChanged('held.example', { resetAt: Date.now() })
    await arrivals(1)
    // What is read after the reset, as by a worker that starts later.
    await delay('held', 2 * year)
    worker.siteChanged('near.example', { resetAt: Date.now() })
    const arrived = await arrivals(3)
    expect(arrived.map(({ url }) => new URL(url).hostname).sort()).toEqual(['held.example', 'held.example', 'near.example'])
    await eventually(() => worker.heldCount === 1, { what: 'the other one alone to be held' })
  })

  it('brings back a chain of redirects with the site that it waits for, not with the one where it began', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [1_000, 60_000, 600_000, 3_600_000] })
    const worker = await fixture.delayWorker()
    const chain = (from: string, to: string): Promise<unknown> => {
      const redirects = [{ url: `http://${from}/`, status: 302, location: `http://${to}/`, setCookies: [] }]
      const task = newUrlTask({ url: `http://${from}/`, taskId: from, lane: 'low', redirects })
      const copy = { dueAt: Date.now() + 3_600_000, reason: 'parked', original: original(fixture.topics.urls.low) }
      return fixture.producer.send([fixture.publisher.delayMessage(task, copy)])
    }
    await Promise.all([chain('www.way.example', 'm.way.example'), chain('m.way.example', 'www.way.example')])
    await eventually(() => worker.heldCount === 2, { what: 'tasks that are held' })
    worker.siteChanged('m.way.example', { resetAt: Date.now() })
    expect((await arrivals(1)).map(({ url }) => url)).toEqual(['http://www.way.example/'])
    await eventually(() => worker.heldCount === 1, { what: 'the other one alone to be held' })
  })

  it('brings back what waits for its turn where the pace of the site is faster since, and what waits for a retry does not come', async () => {
    fixture = await FetchFixture.open({ partitions: 1, delays: [1_000, 60_000, 600_000, 3_600_000] })
    const worker = await fixture.delayWorker()
    const hour = 3_600_000
    const lane = original(fixture.topics.urls.low)
    const retry = newUrlTask({ url: 'http://www.slow.example/retry', taskId: 'retry', lane: 'low' })
    const copy = { dueAt: Date.now() + hour, reason: 'http-503', original: lane }
    await Promise.all([delay('slow', hour), delay('other', hour), fixture.producer.send([fixture.publisher.delayMessage(retry, copy)])])
    await eventually(() => worker.heldCount === 3, { what: 'tasks that are held' })
    const fasterAt = Date.now()
    worker.siteChanged('slow.example', { fasterAt })
    await arrivals(1)
    await eventually(() => worker.heldCount === 2, { what: 'the one that came back to be forgotten' })
    // What its fetch worker puts aside again has a time by the new pace.
    const again = newUrlTask({ url: 'http://slow.example/again', taskId: 'again', lane: 'low' })
    const aside = { dueAt: Date.now() + hour, reason: 'spill', liftedAt: fasterAt, original: lane }
    await fixture.producer.send([fixture.publisher.delayMessage(again, aside)])
    await eventually(() => worker.heldCount === 3, { what: 'the task that is held again' })
    expect((await arrivals(1)).map(({ url }) => url)).toEqual(['http://slow.example/'])
  })

  it('goes on after an abort with what it held', async () => {
    fixture = await FetchFixture.open({ partitions: 1 })
    const first = await fixture.delayWorker()
    await delay('early', 200)
    await delay('later', 2_500)
    await arrivals(1)
    await first.stop({ mode: 'abort', timeoutMs: 0 })
    await fixture.delayWorker()
    // What was forwarded a moment before may come again: its commit may not have been made.
    const later = await eventually(async () => (await arrivals(2)).find(({ url }) => url === 'http://later.example/'))
    // How late depends on how long the second one took to begin.
    expect(later.lateMs).toBeGreaterThanOrEqual(0)
  })
})
