import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Lane } from '../../../src/message/generated/types.ts'
import { jainIndex } from '../../bench/figures.ts'
import { SeededRandom } from '../../support/random.ts'
import { runScheduler, type Source, type Start } from '../../support/scheduler-run.ts'

const SITES = Array.from({ length: 60 }, (_, index) => `s${index}`)
const LANES = ['high', 'normal', 'low'] as const

function counted<K>(starts: readonly Start[], of: (start: Start) => K): Map<K, number> {
  const counts = new Map<K, number>()
  for (const start of starts) counts.set(of(start), (counts.get(of(start)) ?? 0) + 1)
  return counts
}

describe('the shares of a scheduler under load, whatever comes in', () => {
  it('are equal for crawls of equal weight over the same sites, in every ten seconds, however unequal their backlogs are (Jain >= 0.98)', () => {
    fc.assert(
      fc.property(
        fc.record({
          seed: fc.integer(),
          windows: fc.array(fc.integer({ min: 100, max: 2_000 }), { minLength: 2, maxLength: 8 }),
          maxInFlight: fc.integer({ min: 5, max: 40 }),
          slowestMs: fc.integer({ min: 30, max: 400 }),
        }),
        ({ seed, windows, maxInFlight, slowestMs }) => {
          const random = new SeededRandom(seed)
          const sources = windows.map(
            (window, index): Source => ({ crawl: `c${index}`, lane: 'normal', sites: SITES, window, count: Number.POSITIVE_INFINITY }),
          )
          const starts = runScheduler({
            scheduler: { maxInFlight, maxBytes: 1 },
            sources,
            random,
            requestMs: () => random.between(20, slowestMs),
            paceMs: 0,
            untilMs: 20_000,
          })
          for (const from of [0, 10_000]) {
            const counts = counted(
              starts.filter(({ at }) => at >= from && at < from + 10_000),
              ({ task }) => task.crawlId,
            )
            const shares = windows.map((_, index) => counts.get(`c${index}`) ?? 0)
            expect(jainIndex(shares)).toBeGreaterThanOrEqual(0.98)
            expect(Math.max(...shares) / Math.min(...shares)).toBeLessThanOrEqual(1.1)
          }
        },
      ),
      { numRuns: 15 },
    )
  })

  it('are equal for crawls that wait for one and the same site, which its pace alone bounds', () => {
    const random = new SeededRandom(1)
    const crawls = ['big', 'small', 'tiny']
    const starts = runScheduler({
      scheduler: { maxInFlight: 20, maxBytes: 1 },
      sources: crawls.map((crawl, index) => ({ crawl, lane: 'normal', sites: ['one'], window: [500, 10, 1][index] ?? 1, count: 10_000 })),
      random,
      requestMs: () => 5,
      paceMs: 100,
      untilMs: 30_000,
    })
    const counts = counted(starts, ({ task }) => task.crawlId)
    expect(starts.length).toBeGreaterThanOrEqual(295)
    for (const crawl of crawls) expect(counts.get(crawl)).toBeGreaterThanOrEqual(95)
  })

  it('are equal for the sites of a crawl, and none waits more than three times as long as the others', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 4, max: 30 }), (seed, maxInFlight) => {
        const random = new SeededRandom(seed)
        const starts = runScheduler({
          scheduler: { maxInFlight, maxBytes: 1 },
          sources: SITES.map((site) => ({ crawl: 'c', lane: 'normal', sites: [site], window: 20, count: Number.POSITIVE_INFINITY })),
          random,
          requestMs: () => random.between(20, 60),
          paceMs: 0,
          untilMs: 10_000,
        })
        const bySite = new Map<string, number[]>()
        for (const { task, at } of starts) bySite.set(task.key, [...(bySite.get(task.key) ?? []), at])
        const meanMs = (10_000 * SITES.length) / starts.length
        expect(jainIndex([...bySite.values()].map(({ length }) => length))).toBeGreaterThanOrEqual(0.98)
        for (const times of bySite.values()) {
          const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0))
          expect(Math.max(...gaps)).toBeLessThanOrEqual(3 * meanMs)
        }
      }),
      { numRuns: 10 },
    )
  })

  it('follow the weights of the lanes, with a floor for each: also where all sites of the other lanes are so slow that they hold every place', () => {
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom<Lane>(...LANES), (seed, quick) => {
        const random = new SeededRandom(seed)
        const starts = runScheduler({
          scheduler: { maxInFlight: 50, maxBytes: 1 },
          sources: LANES.map((lane) => ({
            crawl: 'c',
            lane,
            sites: Array.from({ length: 200 }, (_, index) => `${lane}${index}`),
            window: 400,
            count: Number.POSITIVE_INFINITY,
          })),
          random,
          requestMs: (key) => (key.startsWith(quick) ? 100 : 1_000_000),
          paceMs: 0,
          untilMs: 60_000,
        })
        // One place for a minute is 600 requests of 100 ms.
        const late = starts.filter(({ at, task }) => at > 10_000 && task.lane === quick)
        expect(late.length).toBeGreaterThanOrEqual(450)
      }),
      { numRuns: 9 },
    )
  })

  it('leave the low lane a tenth of the places while it is held, and all of them afterwards', () => {
    const random = new SeededRandom(7)
    const run = (hold: boolean): number => {
      const sources: Source[] = [{ crawl: 'c', lane: 'low', sites: SITES, window: 300, count: Number.POSITIVE_INFINITY }]
      return runScheduler({
        scheduler: { maxInFlight: 20, maxBytes: 1 },
        sources,
        random,
        requestMs: () => 100,
        paceMs: 0,
        untilMs: 10_000,
        ...(hold ? { prepare: (scheduler) => scheduler.holdLow(true) } : {}),
      }).length
    }
    expect(run(true)).toBe(200)
    expect(run(false)).toBeGreaterThanOrEqual(1_700)
  })
})
