import { afterEach, describe, expect, it } from 'vitest'
import { CrawlEnd } from '../../../src/control/crawl-end.ts'
import { encodeOffsetMap } from '../../../src/kafka/offset-map.ts'
import { uuidV7 } from '../../../src/message/ids.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { Deployment } from '../../support/deployment.ts'
import { eventually } from '../../support/eventually.ts'

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
