import { describe, expect, it } from 'vitest'
import type { Config } from '../../../../src/config/options.ts'
import { forgetEndedCrawls, goesOn } from '../../../../src/control/crawls/ended-crawls.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import type { StateStore } from '../../../../src/state/state-store.ts'
import { ManualClock } from '../../../support/manual-clock.ts'
import { StoreBench } from '../../../support/state-stores.ts'

/** A store with so many crawls that ended long ago. */
function runtimeWith(ended: number, keepMs: number) {
  const asked: number[] = []
  const told: unknown[] = []
  let left = ended
  const forgetEnded = async (quietMs: number, limit: number): Promise<readonly string[]> => {
    asked.push(quietMs)
    const gone = Math.min(limit, left)
    left -= gone
    return Array.from({ length: gone }, (_, index) => `crawl-${index}`)
  }
  const runtime = {
    config: { 'crawl.keepEnded': keepMs, 'retry.maxDelay': 21_600_000 } as Config,
    observer: { emit: (...event: unknown[]) => told.push(event) } as unknown as Runtime['observer'],
    state: async () => ({ forgetEnded }) as unknown as StateStore,
  }
  return { runtime, asked, told, left: () => left }
}

describe('crawls that ended long ago', () => {
  it('are all forgotten in one round, part by part, and it says how many', async () => {
    const { runtime, asked, told, left } = runtimeWith(120, 86_400_000)
    await forgetEndedCrawls(runtime)
    expect(left()).toBe(0)
    expect(asked).toEqual([86_400_000, 86_400_000, 86_400_000])
    expect(told).toEqual([50, 50, 20].map((count) => ['CrawlsForgotten', { count }]))
  })

  it('are kept as long as their finished tasks are known, or links of a crawl of the same name would be repeats of those', async () => {
    const { runtime, asked } = runtimeWith(0, 3_600_000)
    await forgetEndedCrawls(runtime)
    expect(asked).toEqual([43_200_000])
  })

  it('are kept where the configuration says so, and nothing is told where there are none', async () => {
    const kept = runtimeWith(3, 0)
    await forgetEndedCrawls(kept.runtime)
    expect([kept.left(), kept.asked, kept.told]).toEqual([3, [], []])
    const none = runtimeWith(0, 86_400_000)
    await forgetEndedCrawls(none.runtime)
    expect(none.told).toEqual([])
  })

  it('are not known any more when a crawl of the same name begins, though no round came meanwhile', async () => {
    const bench = new StoreBench()
    try {
      const clock = new ManualClock()
      const store = await bench.lmdb({ clock })
      const { runtime } = runtimeWith(0, 86_400_000)
      const known = (crawlId: string) => goesOn({ ...runtime, state: async () => store }, crawlId)
      for (const crawlId of ['monthly', 'open']) await store.accept(crawlId, ['1'])
      await store.finalise('monthly', ['1'])
      await clock.advance(80_000_000)
      expect([await known('monthly'), await known('open'), await known('never')]).toEqual([true, true, false])
      await clock.advance(6_400_000)
      expect([await known('monthly'), await known('open')]).toEqual([false, true])
    } finally {
      await bench.end()
    }
  })
})
