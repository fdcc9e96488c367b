import { afterEach, describe, expect, it, vi } from 'vitest'
import { CrawlBacklog } from '../../../../src/control/crawls/crawl-backlog.ts'
import { CrawlEnd } from '../../../../src/control/crawls/crawl-end.ts'
import { OpenCrawlRounds } from '../../../../src/control/crawls/open-tasks.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { encodeOffsetMap } from '../../../../src/kafka/offset-map.ts'
import { MillraceError } from '../../../../src/kernel/errors.ts'
import { ownProcess } from '../../../../src/machine/process-identity.ts'
import { uuidV7 } from '../../../../src/message/ids.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'
import { Deployment } from '../../../support/deployment.ts'
import { eventually } from '../../../support/eventually.ts'
import { TRANSACTION_RETRY } from '../../../support/kafka.ts'

/** The same, by a clock whose monotonic time is ours. */
function stepped(runtime: Runtime): { timed: Runtime; step: (ms: number) => void } {
  let monoMs = 0
  const clock = { ...runtime.clock, now: () => runtime.clock.now(), mono: () => monoMs }
  const timed = new Proxy(runtime, {
    get: (target, name) => {
      const value: unknown = name === 'clock' ? clock : Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return {
    timed,
    step: (ms) => {
      monoMs += ms
    },
  }
}

/** Writes a task into a delay topic. */
async function delay(runtime: Runtime, tasks: readonly { taskId: string; crawlId: string | null; dueAt: number }[]): Promise<void> {
  const [publisher, producer] = [await runtime.publisher(), await runtime.producer()]
  const original = { topic: runtime.topics.urls.normal, partition: 0, offset: 0n, timestamp: 1, key: null, value: null, headers: {} }
  const messages = tasks.map(({ dueAt, ...task }) =>
    publisher.delayMessage(newUrlTask({ ...task, url: 'http://a.example/', lane: 'normal', enqueuedAt: 1 }), {
      dueAt,
      reason: 'retry-after',
      original,
    }),
  )
  for (let at = 0; at < messages.length; at += 5_000) await producer.send(messages.slice(at, at + 5_000))
}

describe('the end of a crawl whose store has lost its data', () => {
  let deployment: Deployment
  afterEach(() => deployment.close())

  it('has not come while a task of it lies on a topic, and is not put off by tasks of others', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const [state, publisher] = [await runtime.state(), await runtime.publisher()]
      const task = (crawlId: string) =>
        newUrlTask({ url: 'http://a.example/', taskId: uuidV7(runtime.clock), crawlId, lane: 'normal', enqueuedAt: runtime.clock.now() })
      const tasks = [task('queued'), task('queued')]
      await publisher.publish(tasks)
      const all = [...tasks, task('done')]
      for (const { crawlId, taskId } of all) await state.accept(crawlId ?? '', [taskId])
      const queued = new CrawlEnd(runtime, { crawlId: 'queued', maxWaitMs: 600_000 })
      const done = new CrawlEnd(runtime, { crawlId: 'done', maxWaitMs: 600_000 })
      expect(await queued.check()).toEqual({ kind: 'running', accepted: 2, final: 0 })
      expect(await done.check()).toEqual({ kind: 'running', accepted: 1, final: 0 })
      for (const { crawlId, taskId } of all) await state.finalise(crawlId ?? '', [taskId])
      await eventually(async () => (await state.forgetEnded(0, 2)).length === 0, { what: 'both crawls to be forgotten' })
      expect(await queued.check()).toEqual({ kind: 'running', accepted: 0, final: 0 })
      expect(await done.check()).toEqual({ kind: 'ended' })
      // What is read again is counted again.
      await state.finalise('queued', [tasks[0]?.taskId ?? ''])
      expect(await queued.check()).toEqual({ kind: 'running', accepted: 1, final: 1 })
    })
  })
})

describe('the backlog of a crawl', () => {
  let deployment: Deployment
  afterEach(() => deployment.close())

  it('has the message at which a look has failed', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const task = newUrlTask({ url: 'http://a.example/', taskId: uuidV7(runtime.clock), crawlId: 'c', lane: 'normal', enqueuedAt: 1 })
      await (await runtime.publisher()).publish([task])
      const away = vi.spyOn(runtime.codec, 'ensureSchemas').mockRejectedValueOnce(new MillraceError('REGISTRY_UNREACHABLE', 'away'))
      const backlog = new CrawlBacklog(runtime, 'c')
      await expect(backlog.look(0)).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE' })
      expect(await backlog.look(0)).toBe('due')
      expect(away).toHaveBeenCalledTimes(2)
    })
  })
})

describe('a crawl whose store has come back older than the topics', () => {
  let deployment: Deployment
  afterEach(() => deployment.close())

  /** A task whose message is finished, as its group has committed it. */
  async function finishedTask(runtime: Runtime, crawlId: string): Promise<string> {
    const { admin, groups, topics } = runtime
    const taskId = uuidV7(runtime.clock)
    await (await runtime.publisher()).publish([newUrlTask({ url: 'http://a.example/', taskId, crawlId, lane: 'normal', enqueuedAt: 1 })])
    const ends = (await admin.lag(groups.fetch, [topics.urls.normal])).map(({ topic, partition, end }) => ({
      topic,
      partition,
      offset: end,
      metadata: '',
    }))
    await admin.commitDirect(groups.fetch, ends)
    return taskId
  }

  it('ends though a task counts as open whose end the store has lost, and one that is queued is waited for', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const [state, publisher] = [await runtime.state(), await runtime.publisher()]
      const { timed, step } = stepped(runtime)
      await state.accept('older', [await finishedTask(runtime, 'older')])
      const queuedId = uuidV7(runtime.clock)
      await publisher.publish([
        newUrlTask({ url: 'http://a.example/', taskId: queuedId, crawlId: 'queued', lane: 'normal', enqueuedAt: 1 }),
      ])
      await state.accept('queued', [queuedId])
      const look = (crawlId: string) => new CrawlEnd(timed, { crawlId, maxWaitMs: 600_000 })
      const [older, queued] = [look('older'), look('queued')]
      for (const end of [older, queued]) expect(await end.check()).toMatchObject({ kind: 'running', accepted: 1, final: 0 })
      step(4_000)
      await queued.check()
      await older.check()
      expect(older.counted).toEqual({ accepted: 1, dropped: 1 })
      expect(await older.check()).toEqual({ kind: 'ended' })
      step(4_000)
      expect(await queued.check()).toEqual({ kind: 'running', accepted: 1, final: 0 })
      expect(queued.counted.dropped).toBe(0)
    })
  })

  it('is open no longer for workers that run on, once it has not moved from one round to the next', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const state = await runtime.state()
      const open = async () => (await state.openCrawls([], 10)).others.map(({ crawlId }) => crawlId).sort()
      for (const crawlId of ['older', 'moves']) await state.accept(crawlId, [await finishedTask(runtime, crawlId)])
      await delay(runtime, [{ taskId: uuidV7(runtime.clock), crawlId: 'waits', dueAt: Date.now() + 86_400_000 }])
      await state.accept('waits', ['1'])
      const rounds = new OpenCrawlRounds(runtime)
      await rounds.round()
      expect(await open()).toEqual(['moves', 'older', 'waits'])
      await state.accept('moves', ['another'])
      await rounds.round()
      expect(await open()).toEqual(['moves', 'waits'])
      await rounds.round()
      expect(await open()).toEqual(['waits'])
      await eventually(async () => (await state.forgetEnded(0, 2)).length === 0, { what: 'both to be forgotten' })
      expect(await state.crawlCounts('older')).toEqual({ accepted: 0, final: 0 })
    })
  })

  it('is found by one search for all crawls of a round, which looks no more while something of each waits', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const state = await runtime.state()
      const names = Array.from({ length: 40 }, (_, index) => `crawl-${index}`)
      const dueAt = Date.now() + 86_400_000
      await delay(
        runtime,
        names.map((crawlId) => ({ taskId: uuidV7(runtime.clock), crawlId, dueAt })),
      )
      for (const crawlId of names) await state.accept(crawlId, ['1'])
      const rounds = new OpenCrawlRounds(runtime)
      await rounds.round()
      const searched = vi.spyOn(runtime.admin, 'endOffsets')
      await rounds.round()
      const searches = () => searched.mock.calls.flatMap(([topic, isolation]) => (isolation === 'read_committed' ? [topic] : []))
      expect(searches().length).toBeGreaterThan(0)
      expect(new Set(searches()).size).toBe(searches().length)
      searched.mockClear()
      await rounds.round()
      expect(searches()).toEqual([])
      expect((await state.openCrawls([], 100)).others).toHaveLength(names.length)
    })
  })

  it('is looked after by the fetch worker that has lived longest', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const state = await runtime.state()
      await state.accept('older', [await finishedTask(runtime, 'older')])
      const worker = { groupId: 'g', pid: 1, pidStartedAt: '1', startedAt: 1, extractors: {}, host: 'another' }
      await state.heartbeat({ ...worker, workerId: '0', stage: 'extract' }, 60_000)
      await state.heartbeat({ ...worker, workerId: '1', stage: 'fetch' }, 60_000)
      await state.heartbeat({ ...worker, ...ownProcess('2'), stage: 'fetch' }, 60_000)
      const rounds = new OpenCrawlRounds(runtime)
      for (let round = 0; round < 3; round += 1) await rounds.round()
      expect((await state.openCrawls([], 10)).others).toHaveLength(1)
      await state.removeWorker('1')
      await rounds.round()
      expect((await state.openCrawls([], 10)).others).toHaveLength(1)
      await rounds.round()
      expect((await state.openCrawls([], 10)).others).toEqual([])
    })
  })
})

describe('the end of a crawl that was produced before', () => {
  let deployment: Deployment
  afterEach(() => deployment.close())

  it('has not come while a task of it lies on a topic that the store has never heard of', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const publisher = await runtime.publisher()
      const task = { url: 'http://a.example/', taskId: uuidV7(runtime.clock), crawlId: 'produced', lane: 'normal' } as const
      await publisher.publish([newUrlTask({ ...task, enqueuedAt: runtime.clock.now() })])
      const end = (crawlId: string) => new CrawlEnd(runtime, { crawlId, maxWaitMs: 600_000, mayBeQueued: true })
      expect(await end('produced').check()).toEqual({ kind: 'running', accepted: 0, final: 0 })
      expect(await end('another').check()).toEqual({ kind: 'ended' })
    })
  })

  it.each([String.raw`shop\/2026`, String.raw`shop\u002F2026`])(
    'has not come while another program has queued it as %s',
    async (spelling) => {
      deployment = await Deployment.open()
      await deployment.read(async (runtime) => {
        const value = Buffer.from(`{"url":"http://a.example/","crawlId":"${spelling}"}`)
        await (await runtime.producer()).send([{ topic: runtime.topics.urls.normal, partition: 0, key: 'a.example', value }])
        const end = (crawlId: string) => new CrawlEnd(runtime, { crawlId, maxWaitMs: 600_000, mayBeQueued: true })
        expect(await end('shop/2026').check()).toEqual({ kind: 'running', accepted: 0, final: 0 })
        expect(await end('shop/2027').check()).toEqual({ kind: 'ended' })
      })
    },
  )

  it('has not come while a task of it may lie behind an open transaction', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const { client, topics } = runtime
      const open = client.kafka.producer({ transactionalId: uuidV7(runtime.clock), retry: TRANSACTION_RETRY })
      await open.connect()
      const transaction = await open.transaction()
      await transaction.send({ topic: topics.urls.normal, messages: [{ partition: 0, value: 'another' }] })
      const end = new CrawlEnd(runtime, { crawlId: 'hidden', maxWaitMs: 600_000, mayBeQueued: true })
      expect(await end.check()).toEqual({ kind: 'running', accepted: 0, final: 0 })
      await transaction.abort()
      await open.disconnect()
      await eventually(async () => (await end.check()).kind === 'ended', { what: 'the end of the transaction to be seen' })
    })
  })

  it('is not held back by what is finished above the committed offset', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const { admin, groups, topics } = runtime
      const publisher = await runtime.publisher()
      for (const crawlId of ['slow', 'quick']) {
        const task = { url: 'http://a.example/', taskId: uuidV7(runtime.clock), crawlId, lane: 'normal' } as const
        await publisher.publish([newUrlTask({ ...task, enqueuedAt: runtime.clock.now() })])
      }
      const written = (await admin.lag(groups.fetch, [topics.urls.normal])).find(({ end }) => end === 2n)
      const map = encodeOffsetMap({ span: 2, incomplete: [0] }, 0n)
      const metadata = map.kind === 'map' ? map.text : ''
      await admin.commitDirect(groups.fetch, [{ topic: topics.urls.normal, partition: written?.partition ?? -1, offset: 0n, metadata }])
      const end = (crawlId: string) => new CrawlEnd(runtime, { crawlId, maxWaitMs: 600_000, mayBeQueued: true })
      expect(await end('slow').check()).toEqual({ kind: 'running', accepted: 0, final: 0 })
      expect(await end('quick').check()).toEqual({ kind: 'ended' })
    })
  })
})

describe('the end of a crawl beside the backlog of another one', () => {
  let deployment: Deployment
  afterEach(() => deployment.close())

  it('looks at each message once, decodes none of the other crawl, and sees what comes meanwhile', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const { admin, codec, groups, topics } = runtime
      const publisher = await runtime.publisher()
      const task = (crawlId: string) =>
        newUrlTask({ url: 'http://a.example/', taskId: uuidV7(runtime.clock), crawlId, lane: 'normal', enqueuedAt: runtime.clock.now() })
      await publisher.publish(Array.from({ length: 100 }, () => task('backlog')))
      const decode = vi.spyOn(codec, 'decode')
      const session = vi.spyOn(admin.session, 'run')
      const searches = () => session.mock.calls.filter(([what]) => what.startsWith('searching')).length
      const end = new CrawlEnd(runtime, { crawlId: 'quick é', maxWaitMs: 600_000, mayBeQueued: true })
      expect(await end.check()).toEqual({ kind: 'ended' })
      const first = searches()
      expect(first).toBeGreaterThan(0)
      expect(await end.check()).toEqual({ kind: 'ended' })
      expect(searches()).toBe(first)
      expect(decode).not.toHaveBeenCalled()

      await publisher.publish([task('backlog'), task('quick é')])
      expect(await end.check()).toEqual({ kind: 'running', accepted: 0, final: 0 })
      const third = searches()
      expect(await end.check()).toEqual({ kind: 'running', accepted: 0, final: 0 })
      expect(searches()).toBe(third)

      // All of it is done, but for the others at the beginning.
      const written = (await admin.lag(groups.fetch, [topics.urls.normal])).find(({ end }) => end > 0n)
      const at = { topic: topics.urls.normal, partition: written?.partition ?? -1 }
      const map = encodeOffsetMap({ span: 102, incomplete: [0] }, 0n)
      await admin.commitDirect(groups.fetch, [{ ...at, offset: 0n, metadata: map.kind === 'map' ? map.text : '' }])
      expect(await end.check()).toEqual({ kind: 'ended' })
      // Somebody has rewound the group: what was done is to be done again.
      await admin.commitDirect(groups.fetch, [{ ...at, offset: 102n, metadata: '' }])
      expect(await end.check()).toEqual({ kind: 'ended' })
      await admin.commitDirect(groups.fetch, [{ ...at, offset: 50n, metadata: '' }])
      expect(await end.check()).toEqual({ kind: 'running', accepted: 0, final: 0 })
    })
  })

  it('knows what of it is due later than it waits, though others wait in the same topics', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const [state, publisher, producer] = [await runtime.state(), await runtime.publisher(), await runtime.producer()]
      const dueAt = runtime.clock.now() + 7_200_000
      const original = { topic: runtime.topics.urls.normal, partition: 0, offset: 0n, timestamp: 1, key: null, value: null, headers: {} }
      const delayed = (crawlId: string, taskId: string) => {
        const task = newUrlTask({ url: `http://${taskId}.example/`, taskId, crawlId, lane: 'normal', enqueuedAt: 1 })
        return publisher.delayMessage(task, { dueAt, reason: 'retry-after', original })
      }
      await producer.send([...Array.from({ length: 50 }, (_, index) => delayed('backlog', `o${index}`)), delayed('late', 'late')])
      await state.accept('late', ['late'])
      const decode = vi.spyOn(runtime.codec, 'decode')
      const { timed, step } = stepped(runtime)
      const end = new CrawlEnd(timed, { crawlId: 'late', maxWaitMs: 600_000 })
      expect(await end.check()).toMatchObject({ kind: 'running' })
      for (let times = 0; times < 2; times += 1) {
        step(4_000)
        expect(await end.check()).toEqual({
          kind: 'waiting',
          count: 1,
          tasks: [{ taskId: 'late', crawlId: 'late', url: 'http://late.example/', dueAt, reason: 'retry-after' }],
        })
      }
      expect(decode).toHaveBeenCalledTimes(1)
      // It ends before it is due, as when its site is reset: nothing waits any more, and nothing is waited for.
      const { admin, groups, topics } = runtime
      const lags = await admin.lag(
        groups.delay,
        topics.delays.map(({ topic }) => topic),
      )
      await admin.commitDirect(
        groups.delay,
        lags.map(({ topic, partition, end: offset }) => ({ topic, partition, offset, metadata: '' })),
      )
      step(4_000)
      expect(await end.check()).toMatchObject({ kind: 'running', accepted: 1, final: 0 })
      expect(await end.check()).toEqual({ kind: 'ended' })
    })
  })
})

describe('the end of a run beside a backlog that is due later', () => {
  let deployment: Deployment
  afterEach(() => deployment.close())

  it('is found without holding or decoding the backlog, and has not come while one of it is due', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const [state, dueAt] = [await runtime.state(), runtime.clock.now() + 7_200_000]
      const tasks = Array.from({ length: 2_000 }, (_, index) => ({ taskId: `t${index}`, crawlId: 'late', dueAt }))
      await delay(runtime, tasks)
      await state.accept(
        'late',
        tasks.map(({ taskId }) => taskId),
      )
      const decode = vi.spyOn(runtime.codec, 'decode')
      const { timed, step } = stepped(runtime)
      const end = new CrawlEnd(timed, { crawlId: 'late', maxWaitMs: 600_000 })
      await end.check()
      step(4_000)
      const waiting = await end.check()
      expect(waiting).toMatchObject({ kind: 'waiting', count: 2_000 })
      expect(waiting.kind === 'waiting' && waiting.tasks).toHaveLength(100)
      expect(decode).toHaveBeenCalledTimes(100)

      await delay(runtime, [{ taskId: 't0', crawlId: 'late', dueAt: runtime.clock.now() + 60_000 }])
      step(4_000)
      expect(await end.check()).toMatchObject({ kind: 'running' })
      expect(decode).toHaveBeenCalledTimes(101)
    })
  })

  it('has come though a task lies there twice, where all that is queued is worked off', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      const dueAt = runtime.clock.now() + 7_200_000
      await delay(runtime, [
        { taskId: 'one', crawlId: null, dueAt },
        { taskId: 'one', crawlId: null, dueAt },
        { taskId: 'two', crawlId: 'c', dueAt },
      ])
      const { timed, step } = stepped(runtime)
      const end = new CrawlEnd(timed, { maxWaitMs: 600_000 })
      expect(await end.check()).toMatchObject({ kind: 'running', accepted: 3, final: 0 })
      step(4_000)
      const state = await end.check()
      expect(state).toMatchObject({ kind: 'waiting', count: 3 })
      expect(state.kind === 'waiting' && state.tasks.map(({ taskId }) => taskId).sort()).toEqual(['one', 'two'])
    })
  })
})
