import { afterEach, describe, expect, it, vi } from 'vitest'
import { BacklogSearch } from '../../../../src/control/crawls/backlog-search.ts'
import { CrawlBacklog } from '../../../../src/control/crawls/crawl-backlog.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'

vi.mock('../../../../src/message/decode-task.ts', () => ({ decodeTask: (_codec: unknown, value: Buffer) => JSON.parse(value.toString()) }))
afterEach(() => {
  vi.restoreAllMocks()
})

/** A crawl whose tasks lie in one partition of a delay topic, in this order. */
function backlogOf(...tasks: readonly { taskId: string; dueAt: number; reason: string; crawlId?: string }[]) {
  let committed = 0n
  const end = BigInt(tasks.length)
  const lagBehind = async (_commits: unknown, topics: readonly string[]) =>
    topics.includes('delay') ? [{ topic: 'delay', partition: 0, committed, low: 0n, end, metadata: '' }] : []
  const runtime = {
    topics: { urls: {}, delays: [{ topic: 'delay' }] },
    groups: { fetch: 'fetch', delay: 'delay' },
    admin: { committedOffsets: async () => undefined, lagBehind },
    codec: { ensureSchemas: async () => undefined },
  } as unknown as Runtime
  let searched = 0
  vi.spyOn(BacklogSearch.prototype, 'isRewound').mockReturnValue(false)
  vi.spyOn(BacklogSearch.prototype, 'restart').mockImplementation(() => {
    searched = 0
  })
  vi.spyOn(BacklogSearch.prototype, 'next').mockImplementation(async function* () {
    for (; searched < tasks.length; searched += 1) {
      const { dueAt, reason, taskId, crawlId = 'c' } = tasks[searched] ?? { dueAt: 0, reason: '', taskId: '' }
      const value = Buffer.from(JSON.stringify(newUrlTask({ url: 'http://a.example/', taskId, crawlId, lane: 'normal', enqueuedAt: 1 })))
      const message = { headers: { 'millrace-reason': reason }, value }
      yield { at: { topic: 'delay', partition: 0, offset: BigInt(searched) }, message, dueAt } as never
    }
  })
  return {
    backlog: new CrawlBacklog(runtime, 'c'),
    commit: (offset: bigint) => {
      committed = offset
    },
  }
}

const told = (backlog: CrawlBacklog): string[] => backlog.told.map(({ taskId }) => taskId)

describe('tasks of a crawl that wait for a proxy', () => {
  it('do not keep it going, however soon one is tried again, and are told with that time', async () => {
    const { backlog, commit } = backlogOf(
      { taskId: 'first', dueAt: 60, reason: 'proxies-out' },
      { taskId: 'place', dueAt: 50, reason: 'page-budget' },
      { taskId: 'second', dueAt: 70, reason: 'proxies-out' },
    )
    expect(await backlog.look(600)).toBe('later')
    expect(backlog.told).toMatchObject([
      { taskId: 'first', dueAt: 60, reason: 'proxies-out' },
      { taskId: 'second', dueAt: 70, reason: 'proxies-out' },
    ])
    commit(3n)
    expect(await backlog.look(600)).toBe('nothing')
  })

  it('are queued all the same, and leave a crawl going that has others which are due', async () => {
    const { backlog } = backlogOf(
      { taskId: 'first', dueAt: 60, reason: 'proxies-out' },
      { taskId: 'other', dueAt: 70, reason: 'retry-after' },
    )
    expect(await backlog.look(Number.POSITIVE_INFINITY)).toBe('due')
    expect(await backlog.look(69)).toBe('later')
    expect(await backlog.look(70)).toBe('due')
  })
})

describe('tasks of a crawl that wait for a place in its page budget', () => {
  it('do not keep it going where what holds the places is due later', async () => {
    const { backlog } = backlogOf(
      { taskId: 'first', dueAt: 60, reason: 'page-budget' },
      { taskId: 'holder', dueAt: 3_600, reason: 'retry-after' },
      { taskId: 'second', dueAt: 70, reason: 'page-budget' },
    )
    expect(await backlog.look(600)).toBe('later')
    expect(told(backlog)).toEqual(['holder'])
    expect(await backlog.look(660)).toBe('later')
    expect(await backlog.look(3_600)).toBe('due')
  })

  it('do where nothing else waits, by the one that asks first', async () => {
    const { backlog } = backlogOf(
      { taskId: 'old', dueAt: 1_800, reason: 'page-budget' },
      { taskId: 'other', dueAt: 50, reason: 'page-budget', crawlId: 'other' },
      { taskId: 'young', dueAt: 60, reason: 'page-budget' },
    )
    expect(await backlog.look(59)).toBe('later')
    expect(told(backlog)).toEqual(['young'])
    expect(await backlog.look(600)).toBe('due')
  })

  it('are looked at anew once what they waited for has ended', async () => {
    const { backlog, commit } = backlogOf(
      { taskId: 'holder', dueAt: 3_600, reason: 'retry-after' },
      { taskId: 'first', dueAt: 60, reason: 'page-budget' },
      { taskId: 'last', dueAt: 1_800, reason: 'page-budget' },
    )
    expect(await backlog.look(600)).toBe('later')
    commit(1n)
    expect(await backlog.look(600)).toBe('due')
    commit(2n)
    expect(await backlog.look(600)).toBe('later')
    expect(told(backlog)).toEqual(['last'])
    commit(3n)
    expect(await backlog.look(600)).toBe('nothing')
  })
})
