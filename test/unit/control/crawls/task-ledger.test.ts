import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addCounts,
  type CrawlLedger,
  largestCrawls,
  NO_COUNTS,
  type TaskEntry,
  TaskLedger,
} from '../../../../src/control/crawls/task-ledger.ts'
import type { OutcomeKind } from '../../../../src/message/generated/types.ts'

function entry(taskId: string, change: Partial<TaskEntry> = {}): TaskEntry {
  const url = `http://${taskId}.example/`
  const place = { topic: 'urls', partition: 0, offset: 7n }
  return { taskId, crawlId: 'c', url, ...place, isCopy: false, isWaiting: false, isBeforeHorizon: false, ...change }
}

const outcome = (taskId: string, kind: OutcomeKind, reason: string | null = null) => ({ taskId, crawlId: 'c', url: 'u', kind, reason })

function ledger(tasks: readonly TaskEntry[], outcomes: readonly ReturnType<typeof outcome>[] = []) {
  const counted = new TaskLedger()
  for (const task of tasks) counted.addTask(task)
  for (const ended of outcomes) counted.addOutcome(ended)
  return counted.counts()
}

describe('the ledger of tasks', () => {
  it('counts a task once, whatever copies there are of it, and takes its first final outcome', () => {
    const counts = ledger(
      [entry('a'), entry('a', { isCopy: true, isWaiting: true }), entry('a', { offset: 9n })],
      [outcome('a', 'RETRY', 'http-503'), outcome('a', 'FAILED', 'http-503'), outcome('a', 'FETCHED')],
    )
    expect(counts).toMatchObject({
      produced: 1,
      outcomes: { FAILED: 1 },
      reasons: { 'http-503': 1 },
      retries: 1,
      repeats: 1,
      difference: 0,
    })
  })

  it.each([
    ['waits', entry('a', { isWaiting: true }), { inFlight: 1, difference: 0 }],
    ['is lost', entry('a'), { inFlight: 0, difference: 1 }],
    ['is older than the outcomes that are left', entry('a', { isBeforeHorizon: true }), { beforeHorizon: 1, difference: 0, produced: 0 }],
    ['is as old and still waits', entry('a', { isBeforeHorizon: true, isWaiting: true }), { inFlight: 1, beforeHorizon: 0 }],
    ['was deleted and left a copy', entry('a', { isCopy: true }), { produced: 0, difference: 0 }],
  ])('knows a task without an outcome that %s', (_, task, expected) => {
    expect(ledger([task])).toMatchObject(expected)
  })

  it('names what is missing by its id, its crawl and the place where its producer wrote it', () => {
    const counts = ledger([entry('a', { isCopy: true, offset: 1n }), entry('a', { offset: 5n, partition: 3 })])
    expect(counts.missing).toEqual([{ taskId: 'a', crawlId: 'c', url: 'http://a.example/', topic: 'urls', partition: 3, offset: '5' }])
  })

  it('puts crawls with a difference before large ones', () => {
    const crawl = (crawlId: string, produced: number, difference: number): CrawlLedger => ({
      crawlId,
      produced,
      ended: 0,
      inFlight: 0,
      difference,
    })
    const sorted = largestCrawls([crawl('small', 1, 0), crawl('large', 9, 0), crawl('wrong', 2, 1)])
    expect(sorted.map(({ crawlId }) => crawlId)).toEqual(['wrong', 'large', 'small'])
  })

  it('adds up for any mix of tasks, and to the same in parts', () => {
    const kinds: OutcomeKind[] = ['FETCHED', 'REDIRECTED', 'REFUSED', 'EXPIRED', 'DUPLICATE', 'RETRY', 'FAILED', 'UNCHANGED']
    const tasks = fc.array(
      fc.record({
        taskId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
        crawlId: fc.constantFrom(null, 'x', 'y'),
        isCopy: fc.boolean(),
        isWaiting: fc.boolean(),
        isBeforeHorizon: fc.boolean(),
      }),
      { maxLength: 20 },
    )
    const outcomes = fc.array(fc.record({ taskId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'g'), kind: fc.constantFrom(...kinds) }))
    fc.assert(
      fc.property(tasks, outcomes, (changes, ends) => {
        const entries = changes.map(({ taskId, ...change }) => entry(taskId, change))
        const all = ends.map(({ taskId, kind }) => outcome(taskId, kind))
        const whole = ledger(entries, all)
        const ended = Object.values(whole.outcomes).reduce((sum, count) => sum + (count ?? 0), 0)
        expect(whole.produced - ended - whole.inFlight).toBe(whole.difference)
        expect(whole.crawls.reduce((sum, { produced }) => sum + produced, 0)).toBe(whole.produced)
        expect(whole.crawls.every((crawl) => crawl.produced - crawl.ended - crawl.inFlight === crawl.difference)).toBe(true)
        const isFirst = ({ taskId }: { taskId: string }): boolean => taskId < 'd'
        const parts = [true, false].map((first) =>
          ledger(
            entries.filter((task) => isFirst(task) === first),
            all.filter((end) => isFirst(end) === first),
          ),
        )
        const { missing, crawls, ...numbers } = parts.reduce(addCounts, NO_COUNTS)
        const { missing: wholeMissing, crawls: wholeCrawls, ...wholeNumbers } = whole
        expect(numbers).toEqual(wholeNumbers)
        expect(new Set(missing.map(({ taskId }) => taskId))).toEqual(new Set(wholeMissing.map(({ taskId }) => taskId)))
        expect(new Map(crawls.map((crawl) => [crawl.crawlId, crawl]))).toEqual(new Map(wholeCrawls.map((crawl) => [crawl.crawlId, crawl])))
      }),
    )
  })
})
