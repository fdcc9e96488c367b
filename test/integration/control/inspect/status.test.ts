import { expect, it } from 'vitest'
import { setCrawlStopped } from '../../../../src/control/crawls/stopped-crawls.ts'
import { status } from '../../../../src/control/inspect/status.ts'
import { Deployment } from '../../../support/deployment.ts'
import { range, storePages, urlOf } from '../../../support/stored-shop.ts'

it('status names the URL that has waited longest in each group, of pages and of tasks', async () => {
  const deployment = await Deployment.open()
  try {
    await deployment.read(async (runtime) => {
      const { topics, groups } = runtime
      const oldest = async (): Promise<Record<string, string | null>> =>
        Object.fromEntries((await status(runtime)).summary.map(({ group, oldestUrl }) => [group, oldestUrl]))
      expect(Object.values(await oldest())).toEqual([null, null, null, null])
      const now = Date.now()
      await storePages(runtime, [...range(1, 3).map((page) => ({ ...page, fetchedAt: now - 60_000 })), ...range(1)])
      const task = (url: string) => ({ topic: topics.urls.normal, partition: 0, key: null, value: Buffer.from(JSON.stringify({ url })) })
      await (await runtime.producer()).send([task('https://a.example/1'), task('https://a.example/2')])
      expect(await oldest()).toMatchObject({
        [groups.fetch]: 'https://a.example/1',
        [groups.frontier]: urlOf(3),
        [groups.extract()]: urlOf(3),
      })
    })
  } finally {
    await deployment.close()
  }
})

it('status names the crawls that are stopped, and no crawl that was resumed', async () => {
  const deployment = await Deployment.open()
  try {
    await deployment.read(async (runtime) => {
      for (const crawl of ['spring', 'autumn']) await setCrawlStopped(runtime, crawl, true)
      await setCrawlStopped(runtime, 'autumn', false)
      await (await runtime.control()).readToEnd()
      const { stoppedCrawls, stalls } = await status(runtime)
      expect(stoppedCrawls).toEqual(['spring'])
      expect(stalls.filter((stall) => stall.startsWith('the crawl spring is stopped'))).toHaveLength(1)
    })
  } finally {
    await deployment.close()
  }
})
