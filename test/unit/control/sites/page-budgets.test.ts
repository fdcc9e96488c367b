import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Config } from '../../../../src/config/options.ts'
import { taskBudgets } from '../../../../src/control/sites/site-rules.ts'
import type { UrlTask } from '../../../../src/message/generated/types.ts'
import { ManualClock } from '../../../support/manual-clock.ts'
import { StoreBench } from '../../../support/state-stores.ts'

const task = (url: string, sitemapLevel = 0): UrlTask => ({ crawlId: 'c', url, sitemapLevel }) as UrlTask

let bench: StoreBench
beforeEach(() => {
  bench = new StoreBench()
})
afterEach(() => bench.end())

describe('page budgets of a crawl', () => {
  it('are forgotten with it, so that one of the same name may fetch as many pages again', async () => {
    const clock = new ManualClock()
    const store = await bench.lmdb({ clock })
    const budgetsOf = taskBudgets({ 'crawl.maxPages': 2, 'crawl.maxPagesPerDomain': 1 } as Config)
    const reserve = (taskId: string, url: string) => store.reserve(taskId, budgetsOf(task(url)), 60_000)
    await reserve('1', 'https://a.example/1')
    await reserve('2', 'https://b.example/1')
    expect(await reserve('3', 'https://c.example/1')).toEqual({ id: 'crawl:c:pages', isHeld: true })
    await store.finalise('c', ['1', '2', '3'])
    await clock.advance(1)
    expect(await store.forgetEnded(0, 10)).toEqual(['c'])
    expect(await reserve('4', 'https://a.example/1')).toBeUndefined()
    expect(await reserve('5', 'https://b.example/1')).toBeUndefined()
  })

  it('are not those of its sitemaps, of which there are no more than of pages', async () => {
    const store = await bench.lmdb({ clock: new ManualClock() })
    const budgetsOf = taskBudgets({ 'crawl.maxPages': 2, 'crawl.maxPagesPerDomain': 5 } as Config)
    const reserve = (taskId: string, of: UrlTask) => store.reserve(taskId, budgetsOf(of), 60_000)
    await reserve('1', task('https://a.example/1.xml', 1))
    await reserve('2', task('https://a.example/2.xml', 2))
    expect(await reserve('3', task('https://a.example/3.xml', 1))).toEqual({ id: 'crawl:c:sitemaps', isHeld: true })
    expect(await reserve('4', task('https://a.example/1'))).toBeUndefined()
    expect(await reserve('5', task('https://a.example/2'))).toBeUndefined()
    const many = { 'crawl.maxPages': 1_000_000, 'crawl.maxPagesPerDomain': 100_000 } as Config
    const reasons = taskBudgets(many)(task('https://a.example/1.xml', 1)).map(({ reason, limit }) => `${reason} ${limit}`)
    expect(reasons).toEqual(['max-sitemaps 1000000', 'max-sitemaps-per-domain 1000'])
  })
})
