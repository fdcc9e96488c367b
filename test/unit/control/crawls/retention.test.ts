import { describe, expect, it } from 'vitest'
import type { Config } from '../../../../src/config/options.ts'
import { startRetention } from '../../../../src/control/crawls/retention.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import type { StateStore } from '../../../../src/state/state-store.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

const FIRST_MS = 1_000
const EVERY_MS = 600_000

/** What a look asks of the store is `ask`; of topics there is nothing. */
function started(ask: (what: 'forget' | 'open' | 'counts') => Promise<unknown>, forgottenAtOnce = 0) {
  const clock = new ManualClock()
  const told: unknown[] = []
  const state: Partial<StateStore> = {
    forgetEnded: async () => {
      await ask('forget')
      return Array.from({ length: forgottenAtOnce }, (_, index) => `crawl ${index}`)
    },
    workers: async () => [],
    openCrawls: async () => {
      await ask('open')
      return { others: [{ crawlId: 'a', open: 1 }], named: {}, count: 1 } as unknown as Awaited<ReturnType<StateStore['openCrawls']>>
    },
    crawlCounts: async () => {
      await ask('counts')
      return { accepted: told.length, final: 0 }
    },
  }
  const runtime = {
    clock,
    config: { 'crawl.keepEnded': 1, 'retry.maxDelay': 1, 'topics.retention.urls': 1 } as Config,
    observer: { emit: (...event: unknown[]) => told.push(event) },
    topics: { urls: {}, delays: [] },
    groups: {},
    admin: { lag: async () => [], offsetsForTime: async () => new Map() },
    state: async () => state,
  } as unknown as Runtime
  return { clock, told, stop: startRetention(runtime) }
}

/** A look that takes until it is let go. */
function held(): { readonly asked: () => number; readonly ask: (what: string) => Promise<void>; readonly letGo: () => void } {
  let count = 0
  let letGo = (): void => undefined
  const ask = async (what: string): Promise<void> => {
    if (what !== 'forget') return
    count += 1
    await new Promise<void>((resolve) => {
      letGo = resolve
    })
  }
  return { asked: () => count, ask, letGo: () => letGo() }
}

describe('what is old', () => {
  it('is looked for soon after the start, so that a process which lives for seconds does it too, then every ten minutes', async () => {
    const asked: string[] = []
    const { clock, stop } = started(async (what) => asked.push(what))
    const rounds = () => asked.filter((what) => what === 'forget').length
    expect(rounds()).toBe(0)
    await clock.advance(FIRST_MS)
    expect(rounds()).toBe(1)
    await clock.advance(EVERY_MS - 1)
    expect(rounds()).toBe(1)
    await clock.advance(1)
    expect(rounds()).toBe(2)
    await stop()
  })

  it('is not looked for while the round before still works', async () => {
    const { asked, ask, letGo } = held()
    const { clock, stop } = started(ask)
    await clock.advance(FIRST_MS)
    expect(asked()).toBe(1)
    await clock.advance(3 * EVERY_MS)
    expect(asked()).toBe(1)
    letGo()
    await clock.advance(EVERY_MS)
    expect(asked()).toBe(2)
    letGo()
    await stop()
  })

  it('is looked for no more once it was stopped, which waits for the round that works', async () => {
    const { asked, ask, letGo } = held()
    const { clock, stop } = started(ask)
    await clock.advance(FIRST_MS)
    let isStopped = false
    const stopping = stop().then(() => {
      isStopped = true
    })
    await clock.advance(0)
    expect(isStopped).toBe(false)
    letGo()
    await stopping
    expect(clock.armedCount).toBe(0)
    await clock.advance(2 * EVERY_MS)
    expect(asked()).toBe(1)
  })

  it('is looked for again after a look that failed, which is told and fails no other', async () => {
    const asked: string[] = []
    const { clock, told, stop } = started(async (what) => {
      asked.push(what)
      if (what === 'forget') throw new Error('the store is away')
    })
    await clock.advance(FIRST_MS)
    expect(told).toEqual([['RetentionFailed', { what: 'crawls', error: 'the store is away' }]])
    await clock.advance(EVERY_MS)
    expect(told).toHaveLength(2)
    expect(asked.filter((what) => what === 'open')).toHaveLength(2)
    await stop()
    expect(clock.armedCount).toBe(0)
  })

  it('forgets no further part of the crawls that ended once it was stopped, and tells nothing of that', async () => {
    const { asked, ask, letGo } = held()
    const { clock, told, stop } = started(ask, 50)
    await clock.advance(FIRST_MS)
    const stopping = stop()
    letGo()
    await stopping
    expect(asked()).toBe(1)
    expect(told).toEqual([['CrawlsForgotten', { count: 50 }]])
  })

  it('ends a look at open crawls when it is stopped, and tells nothing of that', async () => {
    let letGo = (): void => undefined
    const asked: string[] = []
    const { clock, told, stop } = started(async (what) => {
      asked.push(what)
      if (what === 'open')
        await new Promise<void>((resolve) => {
          letGo = resolve
        })
    })
    await clock.advance(FIRST_MS)
    const stopping = stop()
    letGo()
    await stopping
    expect(asked).not.toContain('counts')
    expect(told).toEqual([])
  })
})
