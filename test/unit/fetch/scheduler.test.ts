import { describe, expect, it } from 'vitest'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import type { SiteTask } from '../../../src/fetch/site-task.ts'
import type { PartitionId, PolitenessKey } from '../../../src/kernel/brand.ts'
import type { Lane } from '../../../src/message/generated/types.ts'

interface Task extends SiteTask {
  readonly name: string
}

const task = (site: string, name: string, lane: Lane = 'normal', crawlId: string | null = null): Task => ({
  key: site as PolitenessKey,
  lane,
  crawlId,
  window: `urls:0` as PartitionId,
  name,
})

function started(scheduler: Scheduler<Task>, now: number): Task | undefined {
  const next = scheduler.next(now)
  return next.kind === 'start' ? next.task : undefined
}

describe('the scheduler', () => {
  it('lets sites take turns', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000 })
    for (const name of ['a1', 'a2', 'a3']) scheduler.add(task('a', name), 0)
    scheduler.add(task('b', 'b1'), 0)
    const order: string[] = []
    for (let now = 0; now < 4; now++) {
      const next = started(scheduler, now)
      if (next === undefined) break
      order.push(next.name)
      scheduler.admitted(next, now)
      scheduler.ended(next, now)
    }
    expect(order).toEqual(['a1', 'b1', 'a2', 'a3'])
    expect(scheduler.siteCount).toBe(0)
  })

  it('starts nothing else of a site while one of its tasks asks the limiter, and goes on at once when it is admitted and more may run', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000 })
    scheduler.add(task('a', 'a1'), 0)
    scheduler.add(task('a', 'a2'), 0)
    scheduler.setConcurrency('a' as PolitenessKey, 2, 0)
    const first = started(scheduler, 0)
    expect(first?.name).toBe('a1')
    expect(scheduler.next(0)).toEqual({ kind: 'idle' })
    scheduler.admitted(first as Task, 0)
    expect(started(scheduler, 0)?.name).toBe('a2')
  })

  it('puts a task that must wait back to the head and sleeps the site, at no cost to others', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 1, maxBytes: 1_000 })
    scheduler.add(task('a', 'a1'), 0)
    scheduler.add(task('a', 'a2'), 0)
    scheduler.add(task('b', 'b1'), 0)
    const first = started(scheduler, 0) as Task
    scheduler.putBack(first, 500, 0)
    const second = started(scheduler, 1) as Task
    expect(second.name).toBe('b1')
    scheduler.admitted(second, 1)
    scheduler.ended(second, 2)
    expect(scheduler.next(100)).toEqual({ kind: 'wait', ms: 400 })
    expect(started(scheduler, 500)?.name).toBe('a1')
  })

  it('goes on with a site without the tasks that wait for something of their own, which are at the head again then, in order', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000 })
    for (const name of ['a1', 'a2', 'a3', 'a4']) scheduler.add(task('a', name), 0)
    for (const _ of [1, 2]) scheduler.setAside(started(scheduler, 0) as Task, 500, 0)
    const third = started(scheduler, 0) as Task
    expect(third.name).toBe('a3')
    scheduler.admitted(third, 0)
    scheduler.ended(third, 1)
    // Asked some ms later: it comes back with the others, or they would be in reverse.
    const fourth = started(scheduler, 1) as Task
    scheduler.setAside(fourth, 501, 1)
    scheduler.add(task('a', 'a5'), 2)
    const held = (): number | undefined => scheduler.site(fourth.key)?.heldIn(fourth.window)
    expect([scheduler.waiting, scheduler.counts.total(fourth.window), held()]).toEqual([4, 4, 4])
    const order: string[] = []
    for (let next = started(scheduler, 500); next !== undefined; next = started(scheduler, 500)) {
      order.push(next.name)
      scheduler.admitted(next, 500)
      scheduler.ended(next, 500)
    }
    expect(order).toEqual(['a1', 'a2', 'a4', 'a5'])
    expect(held() ?? 0).toBe(0)
  })

  it('gives up those that wait for something of their own when their partition goes', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000 })
    scheduler.add(task('a', 'a1'), 0)
    const only = started(scheduler, 0) as Task
    scheduler.setAside(only, 500, 0)
    expect(scheduler.next(300)).toEqual({ kind: 'wait', ms: 200 })
    expect(scheduler.takeOut(only.key, () => true)).toEqual([only])
    expect([scheduler.waiting, scheduler.siteCount, scheduler.next(500)]).toEqual([0, 0, { kind: 'idle' }])
  })

  it.each([
    [200, 67_108_864],
    [1_000, 67_108_864],
    [200, 1_048_576],
  ])('starts as many as it may (%i with %i bytes), whatever their answers may bring', (maxInFlight, maxBytes) => {
    const scheduler = new Scheduler<Task>({ maxInFlight, maxBytes })
    for (let index = 0; index < maxInFlight; index += 1) scheduler.add(task(`s${index}`, `s${index}`), 0)
    for (let index = 0; index < maxInFlight; index += 1) {
      scheduler.admitted(started(scheduler, 0) as Task, 0)
      scheduler.hold(scheduler.expectedBytes)
    }
    expect(scheduler.inFlight).toBe(maxInFlight)
    expect(scheduler.isFull).toBe(false)
    expect(scheduler.expectedBytes).toBeLessThanOrEqual(131_072)
  })

  it('starts no more than its bounds on requests and bytes', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 2, maxBytes: 100 })
    for (const site of ['a', 'b', 'c']) scheduler.add(task(site, site), 0)
    const first = started(scheduler, 0) as Task
    expect(started(scheduler, 0)).toBeDefined()
    expect(scheduler.next(0)).toEqual({ kind: 'idle' })
    scheduler.admitted(first, 0)
    scheduler.hold(100)
    scheduler.ended(first, 0)
    expect(scheduler.next(0)).toEqual({ kind: 'idle' })
    scheduler.hold(-100)
    expect(started(scheduler, 0)?.name).toBe('c')
  })

  it('keeps places free for the high lane while it is used, when the low lane takes all it can', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 20, maxBytes: 1_000 })
    const lowUntilFull = (now: number): number => {
      for (let i = 0; i < 30; i++) scheduler.add(task(`low${now} ${i}`, 'low', 'low'), now)
      const taken: Task[] = []
      for (let next = started(scheduler, now); next !== undefined; next = started(scheduler, now)) taken.push(next)
      for (const each of taken) scheduler.dropped(each, now)
      return taken.length
    }
    expect(lowUntilFull(0)).toBe(20)
    scheduler.add(task('urgent', 'high', 'high'), 1)
    expect(started(scheduler, 1)?.name).toBe('high')
    expect(lowUntilFull(2)).toBe(17)
    expect(lowUntilFull(600_002)).toBe(19)
  })

  it('runs at a concurrency of one in every lane', () => {
    for (const lane of ['high', 'normal', 'low'] as const) {
      const scheduler = new Scheduler<Task>({ maxInFlight: 1, maxBytes: 1 })
      scheduler.add(task('a', 'a', lane), 0)
      expect(started(scheduler, 0)?.name).toBe('a')
    }
  })

  it('gives tasks back when they are taken out, and counts what waits per window', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 5, maxBytes: 1 })
    for (const name of ['a1', 'a2', 'a3']) scheduler.add(task('a', name), 0)
    expect(scheduler.site('a' as PolitenessKey)?.heldIn('urls:0' as PartitionId)).toBe(3)
    expect(scheduler.takeOut('a' as PolitenessKey, ({ name }) => name !== 'a2').map(({ name }) => name)).toEqual(['a1', 'a3'])
    expect(scheduler.waiting).toBe(1)
    expect(started(scheduler, 0)?.name).toBe('a2')
  })

  it('does not take a pause of the process for the pace of a site', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000 })
    for (const name of ['a1', 'a2', 'a3', 'a4']) scheduler.add(task('a', name), 0)
    const start = (now: number): void => {
      const next = started(scheduler, now) as Task
      scheduler.admitted(next, now)
      scheduler.ended(next, now)
    }
    start(0)
    scheduler.resumed()
    start(12_000)
    expect(scheduler.site('a' as PolitenessKey)?.observedIntervalMs).toBe(0)
    start(12_100)
    expect(scheduler.site('a' as PolitenessKey)?.observedIntervalMs).toBe(100)
  })

  it('does not take what else the process does for the pace of a site', () => {
    let isBusy = true
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000, isBusy: () => isBusy })
    const key = 'a' as PolitenessKey
    for (let index = 0; index < 10; index += 1) scheduler.add(task('a', `a${index}`), 0)
    const start = (now: number): void => {
      const next = started(scheduler, now) as Task
      scheduler.admitted(next, now)
      scheduler.ended(next, now + 5)
    }
    for (const now of [0, 400, 800]) start(now)
    isBusy = false
    // Its last start was in such a moment.
    start(1_200)
    expect(scheduler.site(key)).toMatchObject({ observedIntervalMs: 0, ownIntervalMs: 0 })
    start(1_300)
    expect(scheduler.site(key)?.observedIntervalMs).toBe(100)
    isBusy = true
    start(5_000)
    isBusy = false
    start(9_000)
    expect(scheduler.site(key)?.observedIntervalMs).toBe(100)
  })

  it("tells the interval that is the site's own from the time for which it could have been asked and was not", () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000 })
    const key = 'a' as PolitenessKey
    for (let index = 0; index < 10; index += 1) scheduler.add(task('a', `a${index}`), 0)
    // Its pace is 100 ms, and the process comes to it every 300 ms.
    for (let now = 0; now <= 1_500; now += 300) {
      const next = started(scheduler, now) as Task
      scheduler.sleep(key, now + 100, now)
      scheduler.admitted(next, now)
      scheduler.ended(next, now + 5)
    }
    expect(scheduler.site(key)?.observedIntervalMs).toBe(300)
    expect(scheduler.site(key)?.ownIntervalMs).toBe(100)
  })

  it("counts the time that requests take as the site's own where no more of them may be under way", () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000 })
    const key = 'a' as PolitenessKey
    for (let index = 0; index < 6; index += 1) scheduler.add(task('a', `a${index}`), 0)
    let now = 0
    for (let count = 0; count < 4; count += 1) {
      const next = started(scheduler, now) as Task
      scheduler.admitted(next, now)
      now += 2_000
      scheduler.ended(next, now)
      now += 50
    }
    expect(scheduler.site(key)?.observedIntervalMs).toBe(2_050)
    expect(scheduler.site(key)?.ownIntervalMs).toBe(2_000)
  })

  it('knows how many starts a second the paces of its sites allow together', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 10, maxBytes: 1_000 })
    for (const [site, paceIntervalMs] of Object.entries({ a: 1_000, b: 50, c: 0 })) {
      scheduler.add(task(site, site), 0)
      Object.assign(scheduler.site(site as PolitenessKey) as object, { paceIntervalMs })
    }
    expect(scheduler.allowedPerSecond).toBe(21)
  })

  it('measures the interval of a site only while something waits', () => {
    const scheduler = new Scheduler<Task>({ maxInFlight: 5, maxBytes: 1 })
    const key = 'a' as PolitenessKey
    for (const name of ['a1', 'a2', 'a3']) scheduler.add(task('a', name), 0)
    for (const now of [0, 1_000]) {
      const next = started(scheduler, now) as Task
      scheduler.admitted(next, now)
      scheduler.ended(next, now + 10)
    }
    expect(scheduler.site(key)?.observedIntervalMs).toBe(1_000)
  })
})
