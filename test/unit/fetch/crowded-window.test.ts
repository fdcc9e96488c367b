import { describe, expect, it } from 'vitest'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import { SPILL_LIMITS } from '../../../src/fetch/spill.ts'
import { Spiller } from '../../../src/fetch/spiller.ts'
import type { PartitionId, PolitenessKey } from '../../../src/kernel/brand.ts'
import { fastPace } from '../../support/fetch-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { runWindow, type WindowRun } from '../../support/window-run.ts'

const PLACES = 50
const WINDOW = 'urls:0' as PartitionId

/** A window whose sites are asked once a second, ten tasks each: all of them wait longer than 3 s, and none longer than 30 s. */
class Crowd {
  readonly clock = new ManualClock()
  readonly scheduler = new Scheduler<QueuedTask>({ maxInFlight: PLACES, maxBytes: 1 })
  readonly #spiller = new Spiller({
    scheduler: this.scheduler,
    putAside: async () => 0,
    paceOf: (url) => ({ ...fastPace(url), ratePerSecond: 1 }),
    shares: { isSurplus: () => false, surplusIn: () => 0, startsPerOwn: () => 1 },
    rate: { startsPerSecond: undefined, overload: 0 },
    clock: this.clock,
  })
  #count = 0

  /** Tasks of as many sites as there are tens. Shape: those that left, by why. */
  take(count: number): string[] {
    const tasks = Array.from({ length: count }, () => this.#task())
    return this.#spiller
      .admit(tasks, (queued) => this.scheduler.add(queued, this.clock.mono()))
      .flatMap(({ tasks: spilled, reason }) => spilled.map(() => reason))
  }

  /** One more of the first site, behind its ten. */
  takeOneMore(): string[] {
    const task = { ...this.#task(), key: 's0' as PolitenessKey }
    return this.#spiller
      .admit([task], (queued) => this.scheduler.add(queued, this.clock.mono()))
      .flatMap(({ tasks, reason }) => tasks.map(() => reason))
  }

  /** Until so many wait. */
  drainTo(left: number): void {
    for (const { key } of [...this.scheduler.sites()].reverse())
      this.scheduler.takeOut(key, () => key !== 's0' && this.scheduler.waiting > left)
  }

  start(count: number): void {
    for (let started = 0; started < count; started += 1) {
      const next = this.scheduler.next(this.clock.mono())
      if (next.kind !== 'start') throw new Error('nothing starts')
      this.scheduler.admitted(next.task, this.clock.mono())
    }
  }

  #task(): QueuedTask {
    const site = `s${Math.floor(this.#count++ / 10)}`
    const parts = { key: site, lane: 'normal', crawlId: null, window: WINDOW, target: new URL(`http://${site}/`), walk: { hops: 0 } }
    return parts as never
  }
}

describe('a window that is half full while there are free places', () => {
  it('keeps what waits longer than 3 s for two seconds, and then has it leave', async () => {
    const crowd = new Crowd()
    expect(crowd.take(500)).toEqual([])
    expect(crowd.takeOneMore()).toEqual([])
    await crowd.clock.advance(1_999)
    expect(crowd.takeOneMore()).toEqual([])
    await crowd.clock.advance(1)
    expect(crowd.takeOneMore()).toEqual(['long-wait'])
  })

  it('stays crowded while it is read on by halves, and begins anew once less than that waits', async () => {
    const crowd = new Crowd()
    crowd.take(500)
    crowd.takeOneMore()
    await crowd.clock.advance(1_500)
    crowd.drainTo(260)
    expect(crowd.takeOneMore()).toEqual([])
    crowd.take(250)
    await crowd.clock.advance(500)
    expect(crowd.takeOneMore()).toEqual(['long-wait'])
    crowd.drainTo(200)
    expect(crowd.takeOneMore()).toEqual([])
    crowd.take(310)
    expect(crowd.takeOneMore()).toEqual([])
    await crowd.clock.advance(1_999)
    expect(crowd.takeOneMore()).toEqual([])
    await crowd.clock.advance(1)
    expect(crowd.takeOneMore()).toEqual(['long-wait'])
  })

  it('is not crowded while four fifths of all places are taken, and counts from when they are free', async () => {
    const crowd = new Crowd()
    crowd.take(600)
    crowd.takeOneMore()
    await crowd.clock.advance(2_000)
    crowd.start(PLACES * 0.8)
    expect(crowd.takeOneMore()).toEqual([])
    await crowd.clock.advance(2_000)
    expect(crowd.takeOneMore()).toEqual([])
  })

  it('is read on, so that sites behind those that fill it get their turns', () => {
    const slow = Array.from({ length: 3_000 }, (_, index) => ({ crawl: 'c', site: `slow${index % 50}` }))
    const late = Array.from({ length: 5 }, () => ({ crawl: 'c', site: 'late' }))
    const scenario = { log: [...slow, ...late], maxInFlight: 200, requestMs: 100, untilMs: 15_000, ratePerSecond: 1 }
    const firstOf = ({ starts }: WindowRun): number => starts.find(({ site }) => site === 'late')?.at ?? Number.POSITIVE_INFINITY
    const run = runWindow(scenario)
    expect(run.spills.filter(({ reason, at }) => reason === 'long-wait' && at < 2_000)).toEqual([])
    expect(run.spills.some(({ reason }) => reason === 'long-wait')).toBe(true)
    expect(firstOf(run)).toBeLessThan(10_000)
    expect(firstOf(runWindow({ ...scenario, limits: { ...SPILL_LIMITS, crowded: 1_000_000 } }))).toBeGreaterThan(15_000)
    // The others lose nothing by it: each is asked every second.
    const asked = run.starts.filter(({ site, at }) => site === 'slow7' && at < 15_000)
    expect(asked.length).toBeGreaterThanOrEqual(14)
  })
})
