import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jainIndex } from '../../bench/figures.ts'
import { runWindow, type WindowRun } from '../../support/window-run.ts'

const SITES = Array.from({ length: 25 }, (_, index) => `s${index}`)
const REQUEST_MS = 40

function tasksOf(crawl: string, count: number): { crawl: string; site: string }[] {
  return Array.from({ length: count }, (_, index) => ({ crawl, site: SITES[index % SITES.length] ?? '' }))
}

function startsOf({ starts }: WindowRun, crawls: readonly string[], from: number, until: number): number[] {
  const counts = new Map(crawls.map((crawl) => [crawl, 0]))
  for (const { crawl, at } of starts) if (at >= from && at < until) counts.set(crawl, (counts.get(crawl) ?? 0) + 1)
  return [...counts.values()]
}

describe('the places of a window, while several crawls wait for it', () => {
  it('give crawls behind a huge one in the log their equal share in every ten seconds, once the log was read (Jain >= 0.98)', () => {
    const scenario = fc.record({
      crawls: fc.integer({ min: 2, max: 10 }),
      huge: fc.integer({ min: 5_000, max: 15_000 }),
      maxInFlight: fc.integer({ min: 3, max: 8 }),
    })
    fc.assert(
      fc.property(scenario, ({ crawls, huge, maxInFlight }) => {
        const untilMs = 30_000
        const perSecond = (1_000 / REQUEST_MS) * maxInFlight
        const others = Array.from({ length: crawls - 1 }, (_, index) => `c${index}`)
        // They must not run out before the end.
        const least = Math.ceil((perSecond / crawls) * (untilMs / 1_000))
        const log = [...tasksOf('huge', Math.max(huge, least)), ...others.flatMap((crawl) => tasksOf(crawl, least))]
        const run = runWindow({ log, maxInFlight, requestMs: REQUEST_MS, untilMs })
        for (const from of [10_000, 20_000]) {
          expect(jainIndex(startsOf(run, ['huge', ...others], from, from + 10_000))).toBeGreaterThanOrEqual(0.98)
        }
        // No place stood empty for it, memory stayed bounded, and tasks were not written over and over.
        expect(run.starts.length).toBeGreaterThanOrEqual(0.98 * perSecond * (untilMs / 1_000))
        expect(run.mostIncomplete).toBeLessThanOrEqual(1_500)
        expect(run.copies.reduce((sum, count) => sum + count) / log.length).toBeLessThanOrEqual(4)
        expect(Math.max(...run.copies)).toBeLessThanOrEqual(32)
      }),
      { numRuns: 8 },
    )
  })

  it('are left to a crawl that is alone, which is not written again however long it is', () => {
    const run = runWindow({ log: tasksOf('only', 20_000), maxInFlight: 8, requestMs: REQUEST_MS, untilMs: 20_000 })
    expect(Math.max(...run.copies)).toBe(0)
    expect(run.starts).toHaveLength(20 * 200)
  })

  it('are given back when the others have ended: everything starts once, in full speed but for what they had made wait', () => {
    const log = [...tasksOf('huge', 6_000), ...tasksOf('small', 500), ...tasksOf('tiny', 50)]
    const run = runWindow({ log, maxInFlight: 8, requestMs: REQUEST_MS, untilMs: 45_000 })
    expect(new Set(run.starts.map(({ index }) => index)).size).toBe(log.length)
    expect(run.starts).toHaveLength(log.length)
    const perSecond = (1_000 / REQUEST_MS) * 8
    expect(run.starts.at(-1)?.at).toBeLessThanOrEqual((1_000 * log.length * 1.1) / perSecond)
  })

  it('let the tasks of a site and crawl start in order, those aside that came back', () => {
    const log = [...tasksOf('huge', 4_000), ...tasksOf('small', 1_000)]
    const run = runWindow({ log, maxInFlight: 4, requestMs: REQUEST_MS, untilMs: 20_000 })
    const last = new Map<string, number>()
    for (const { crawl, site, index } of run.starts.filter((start) => run.copies[start.index] === 0)) {
      expect(index).toBeGreaterThan(last.get(`${site} ${crawl}`) ?? -1)
      last.set(`${site} ${crawl}`, index)
    }
  })
})
