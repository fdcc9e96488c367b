import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { FetchFixture, fakeExchange, fastPace } from '../../support/fetch-fixture.ts'
import { ReassignedLanes } from '../../support/reassigned-lanes.ts'

let fixture: FetchFixture
afterEach(() => fixture.close())

/** `/moved` leads on within its host, `/shut` to another host of its domain, which is paused. */
async function reassigned(urls: readonly string[]) {
  fixture = await FetchFixture.open({ partitions: 1 })
  const tasks = await fixture.produce(urls.map((url) => ({ url })))
  const messages = await fixture.messages(fixture.topics.urls.normal)
  let answer: () => void = () => undefined
  const gate = new Promise<void>((resolve) => {
    answer = resolve
  })
  const exchange = fakeExchange(async ({ url }) => {
    await gate
    const location = { '/moved': '/new', '/shut': 'http://shut.a.example/' }[url.pathname]
    return location === undefined ? { body: url.href } : { status: 302, headers: { location } }
  })
  let lanes: ReassignedLanes | undefined
  await fixture.fetchWorker(exchange, {
    paceOf: (url) => ({ ...fastPace(url), concurrency: 2, isPaused: url.hostname === 'shut.a.example' }),
    createConsumer: (handlers) => {
      lanes = new ReassignedLanes(handlers, messages)
      return lanes
    },
  })
  if (lanes === undefined) throw new Error('the worker has made no consumer')
  const paths = (): string[] => exchange.requests.map(({ url }) => url.pathname)
  return { lanes, tasks, paths, answer }
}

describe('a fetch worker whose partitions are assigned anew', () => {
  it('does not ask again for what is on the wire when its message is read again', async () => {
    const { lanes, paths, answer } = await reassigned(['http://a.example/1', 'http://a.example/2', 'http://a.example/3'])
    lanes.assign()
    await eventually(() => paths().length === 2)
    lanes.assign()
    lanes.assign()
    answer()
    await eventually(() => lanes.incompleteCount() === 0)
    expect(paths().sort()).toEqual(['/1', '/2', '/3'])
    expect(await fixture.pages()).toHaveLength(3)
    expect((await fixture.outcomes()).map(({ kind }) => kind)).toEqual(['FETCHED', 'FETCHED', 'FETCHED'])
  })

  it('follows a chain of redirects that has begun to its end, and asks for none of it again', async () => {
    const { lanes, paths, answer } = await reassigned(['http://a.example/moved', 'http://a.example/1'])
    lanes.assign()
    await eventually(() => paths().length === 2)
    lanes.assign()
    answer()
    await eventually(() => lanes.incompleteCount() === 0)
    expect(paths().sort()).toEqual(['/1', '/moved', '/new'])
    expect(await fixture.pages()).toHaveLength(2)
  })

  it('holds up nobody with a chain that is put aside: whoever has it next may go on at once', async () => {
    const { lanes, tasks, paths, answer } = await reassigned(['http://a.example/shut'])
    const isUnderWay = async (): Promise<boolean> =>
      (await fixture.state.isUnderWay([{ taskId: tasks[0]?.taskId ?? '', attempt: 1 }]))[0] === true
    lanes.assign()
    await eventually(() => paths().length === 1)
    lanes.assign()
    await eventually(isUnderWay, { what: 'the note of what is on the wire' })
    answer()
    // What an operator has paused is kept for thirty seconds.
    await eventually(() => lanes.incompleteCount() === 0, { what: 'the chain to be put aside' })
    // The note would live for ten seconds.
    await eventually(async () => !(await isUnderWay()), { timeoutMs: 5_000, what: 'the note to go' })
    expect(paths()).toEqual(['/shut'])
  })

  it('settles what is on the wire, and starts nothing more, where the partition does not come back', async () => {
    const { lanes, paths, answer } = await reassigned(['http://a.example/1', 'http://a.example/2', 'http://a.example/3'])
    lanes.assign()
    await eventually(() => paths().length === 2)
    lanes.revoke()
    answer()
    await eventually(() => fixture.finalOutcomes(2))
    lanes.assign()
    await eventually(() => lanes.incompleteCount() === 0)
    expect(paths().sort()).toEqual(['/1', '/2', '/3'])
  })

  it('lets its site go on while the worker before has one of its tasks on the wire, and asks now and then whether it is free', async () => {
    const urls = Array.from({ length: 6 }, (_, index) => `http://a.example/${index}`)
    const { lanes, tasks, paths, answer } = await reassigned(urls)
    const note = (ttlMs: number): Promise<void> => fixture.state.noteUnderWay([{ taskId: tasks[0]?.taskId ?? '', attempt: 1 }], ttlMs)
    const waits = (): number => fixture.seen.count('LimiterWaited', { reason: 'handover' })
    await note(60_000)
    answer()
    const started = performance.now()
    lanes.assign()
    await eventually(() => lanes.incompleteCount() === 1)
    expect(paths()).toEqual(['/1', '/2', '/3', '/4', '/5'])
    await eventually(() => waits() >= 3)
    expect(performance.now() - started).toBeGreaterThan(900)
    await note(1)
    await eventually(() => lanes.incompleteCount() === 0)
    expect(paths()).toHaveLength(6)
  })
})
