import { describe, expect, it } from 'vitest'
import { CrawlShares } from '../../../src/fetch/crawl-shares.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import { SPILL_LIMITS } from '../../../src/fetch/spill.ts'
import { Spiller, type SpillerOptions } from '../../../src/fetch/spiller.ts'
import type { SpillSlots } from '../../../src/fetch/task-endings.ts'
import type { WindowEntry } from '../../../src/kafka/window-entry.ts'
import type { PartitionId, PolitenessKey } from '../../../src/kernel/brand.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { createPolicy } from '../../../src/politeness/policy.ts'
import { fastPace } from '../../support/fetch-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const KEY = 'shop.example' as PolitenessKey
const task = (crawlId: string | null, index: number): QueuedTask =>
  ({
    key: KEY,
    lane: 'normal',
    crawlId,
    window: 'urls:0' as PartitionId,
    target: new URL('http://shop.example/'),
    task: { index },
  }) as never
const many = (crawlId: string | null, count: number): QueuedTask[] => Array.from({ length: count }, (_, index) => task(crawlId, index))
const indexOf = (queued: QueuedTask): number => (queued.task as unknown as { index: number }).index

const NO_SURPLUS = { isSurplus: () => false, surplusIn: () => 0, startsPerOwn: () => 1 }

function open(
  ratePerSecond: number,
  shares: Partial<CrawlShares> = {},
  paceOf: SpillerOptions['paceOf'] = (url) => ({ ...fastPace(url), ratePerSecond }),
  overload = 0,
  putAside?: SpillerOptions['putAside'],
): {
  spiller: Spiller
  scheduler: Scheduler<QueuedTask>
  admit: (tasks: QueuedTask[]) => QueuedTask[]
  slots: (SpillSlots & { readonly count: number })[]
} {
  const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 10, maxBytes: 1 })
  const slots: (SpillSlots & { readonly count: number })[] = []
  const spiller = new Spiller({
    scheduler,
    putAside: putAside ?? (async (tasks, given) => slots.push({ ...given, count: tasks.length })),
    paceOf,
    shares: { ...NO_SURPLUS, ...shares },
    rate: { startsPerSecond: undefined, overload },
    clock: new ManualClock(),
  })
  const admit = (tasks: QueuedTask[]): QueuedTask[] =>
    spiller.admit(tasks, (queued) => scheduler.add(queued, 0)).flatMap(({ tasks: spilled }) => spilled)
  return { spiller, scheduler, admit, slots }
}

describe('the places of a site in a window', () => {
  it('are 64, and from the first that has none on its crawl leaves in order', () => {
    const { admit, scheduler } = open(100)
    const spilled = admit(many('a', 100))
    expect(scheduler.waiting).toBe(64)
    expect(spilled.map(indexOf)).toEqual(Array.from({ length: 36 }, (_, index) => 64 + index))
  })

  it('are left by tasks that count as on their way until they are put aside, and no longer where that fails', async () => {
    let end = { put: (): void => undefined, fail: (): void => undefined }
    const putAside = (): Promise<number> =>
      new Promise((resolve, reject) => {
        end = { put: () => resolve(0), fail: () => reject(new Error('broken')) }
      })
    const { spiller } = open(100, {}, undefined, 0, putAside)
    const put = spiller.spill(many('a', 3), 'site-full')
    expect(spiller.leaving).toBe(3)
    end.put()
    await put
    expect(spiller.leaving).toBe(0)
    const failed = spiller.spill(many('a', 2), 'crawl-full')
    expect(spiller.leaving).toBe(2)
    end.fail()
    await expect(failed).rejects.toThrow('broken')
    expect(spiller.leaving).toBe(0)
  })

  it('are all free again once the site is closed, and nothing of it is kept until it opens', () => {
    const { admit, scheduler, spiller } = open(100)
    admit(many('a', 5))
    expect(spiller.takeSite(KEY, 3_600_000).map(indexOf)).toEqual([0, 1, 2, 3, 4])
    expect(scheduler.waiting).toBe(0)
    expect(scheduler.next(0)).toEqual({ kind: 'idle' })
  })

  it('are shared by the crawls that want the site: the last task of the one with most makes room', () => {
    const { admit, scheduler } = open(100)
    admit(many('a', 64))
    const spilled = admit(many('b', 40))
    expect(scheduler.waiting).toBe(64)
    expect(scheduler.site(KEY)?.waitingOf('b')).toBe(32)
    expect(scheduler.site(KEY)?.waitingOf('a')).toBe(32)
    expect(spilled.filter(({ crawlId }) => crawlId === 'a').map(indexOf)).toEqual(Array.from({ length: 32 }, (_, index) => 32 + index))
    expect(spilled.filter(({ crawlId }) => crawlId === 'b').map(indexOf)).toEqual(Array.from({ length: 8 }, (_, index) => 32 + index))
  })

  it('are not held back from a crawl by what waits of another: only its own tasks, and as many of others, are before it', () => {
    const { admit } = open(1)
    // 31 tasks at 1/s are 31 s for the next one of the same crawl.
    expect(admit(many('a', 31))).toEqual([])
    expect(admit([task('a', 31)])).toHaveLength(1)
    expect(admit(many('b', 5))).toEqual([])
  })

  it('lose no task where one that makes room for another crawl is of a crawl whose own tasks have to leave', () => {
    const { admit, scheduler } = open(100, { isSurplus: (crawl) => crawl === 'huge' })
    for (const queued of many('huge', 60)) scheduler.add(queued, 0)
    const spilled = admit([task('huge', 60), ...many('small', 20)])
    expect(scheduler.waiting).toBe(64)
    expect(spilled.map(({ crawlId }) => crawlId)).toEqual(Array.from({ length: 17 }, () => 'huge'))
    expect(spilled.map(indexOf)).toEqual(Array.from({ length: 17 }, (_, index) => 44 + index))
  })

  it('cost each crawl a slot on a clock of its own, which goes slower for every crawl that wants the site', async () => {
    const { spiller, admit, slots } = open(10)
    admit([...many('a', 3), ...many('b', 2)])
    await spiller.spill([...many('a', 2), ...many('b', 2), task(null, 0)], 'site-full')
    expect(slots.map(({ clock }) => clock)).toEqual([`${KEY} a`, `${KEY} b`, KEY])
    expect(slots.every(({ intervalMs }) => intervalMs === 200)).toBe(true)
  })
})

describe('a task that has held back a commit for too long', () => {
  it('leaves where it waits: one on the wire, a young one, and one that holds back nothing stay', async () => {
    const clock = new ManualClock()
    const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 10, maxBytes: 1 })
    const spiller = new Spiller({
      scheduler,
      putAside: async () => 0,
      paceOf: fastPace,
      shares: NO_SURPLUS,
      rate: { startsPerSecond: undefined, overload: 0 },
      limits: { ...SPILL_LIMITS, maxBaseAgeMs: 1_000 },
      clock,
    })
    const add = (key: string, index: number): QueuedTask => {
      const entry = { takenMono: clock.mono() } as WindowEntry
      const queued = { ...task(null, index), key: key as PolitenessKey, entry }
      scheduler.add(queued, clock.mono())
      return queued
    }
    const onWire = add('a.example', 0)
    expect(scheduler.next(0)).toMatchObject({ kind: 'start' })
    scheduler.admitted(onWire, 0)
    const behind = add('a.example', 1)
    const [first, second, other] = [add('b.example', 2), add('b.example', 3), add('c.example', 4)]
    await clock.advance(500)
    const young = add('b.example', 5)
    const bases = [onWire, first, second, other, young].map(({ entry }) => entry)
    await clock.advance(500)
    expect(spiller.takeOld(bases)).toEqual([])
    await clock.advance(1)
    expect(spiller.takeOld(bases)).toEqual([[first, second], [other]])
    expect([...scheduler.sites()].flatMap((site) => [...site.waitingIn('normal')])).toEqual([behind, young])
    expect([scheduler.waiting, scheduler.inFlight, spiller.takeOld(bases)]).toEqual([2, 1, []])
  })
})

describe('slots of what comes back', () => {
  /** Starts of a site of ten a second, which the process came to so seldom, or which took so long themselves. */
  async function spacingAfter(gapMs: number, requestMs: number, overload = 0): Promise<number | undefined> {
    const { spiller, scheduler, slots } = open(10, {}, undefined, overload)
    for (const queued of many(null, 40)) scheduler.add(queued, 0)
    for (let now = 0; now < gapMs * 10; now += gapMs) {
      const next = scheduler.next(now)
      if (next.kind !== 'start') throw new Error('nothing starts')
      scheduler.sleep(KEY, now + 100, now)
      scheduler.admitted(next.task, now)
      scheduler.ended(next.task, now + requestMs)
    }
    await spiller.spill([task(null, 50)], 'site-full')
    return slots[0]?.intervalMs
  }

  it('lie as close as the pace of the site allows, though this process was too busy to use it', async () => {
    expect(await spacingAfter(900, 20)).toBe(100)
  })

  it('lie at a quarter of the time that requests of the site take, where that is more', async () => {
    expect(await spacingAfter(3_000, 3_000)).toBe(750)
  })

  it('lie further apart where the paces of all sites together are far more than this process can do', async () => {
    expect(await spacingAfter(900, 20, 1.9)).toBe(100)
    expect(await spacingAfter(900, 20, 8)).toBe(400)
  })
})

describe('tasks of a site that is closed again and again', () => {
  it('all come back within their turns after the last closure, however often they had to leave before', async () => {
    const clock = new ManualClock()
    const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 10, maxBytes: 1 })
    const clocks = new Map<string, number>()
    const dueAt = new Map<QueuedTask, number>()
    const spiller = new Spiller({
      scheduler,
      shares: new CrawlShares(),
      rate: { startsPerSecond: undefined, overload: 0 },
      paceOf: (url) => ({ ...fastPace(url), ratePerSecond: 1 }),
      clock,
      putAside: async (tasks, { clock: name, localWaitMs, intervalMs }) => {
        const last = Math.max(clock.now() + localWaitMs, clocks.get(name) ?? 0) + intervalMs * tasks.length
        clocks.set(name, last)
        for (const [index, queued] of tasks.entries()) dueAt.set(queued, last - (tasks.length - 1 - index) * intervalMs)
        return last
      },
    })
    const tasks = many('a', 60)
    let closedUntil = 30_000
    await spiller.spill(tasks, 'parked', closedUntil)
    for (let closure = 1; closure <= 6; closure += 1) {
      const until = closedUntil + 30_000 * 2 ** closure
      // The first one tries and closes the site again; the others come back one by one and find it closed.
      for (const queued of [...tasks].sort((a, b) => (dueAt.get(a) ?? 0) - (dueAt.get(b) ?? 0))) {
        const due = dueAt.get(queued) ?? 0
        if (due >= until) continue
        await clock.advance(Math.max(0, due - clock.now()))
        await spiller.spill([queued], 'parked', until - clock.now())
      }
      closedUntil = until
    }
    const latest = Math.max(...dueAt.values())
    expect(Math.min(...dueAt.values())).toBeGreaterThanOrEqual(closedUntil)
    expect(latest - closedUntil).toBeLessThanOrEqual(61_000)
  })

  it.each(['resetAt', 'fasterAt'] as const)(
    'get slots of a new clock once the site was reset or its pace is faster, for the old one may lie far ahead: %s',
    async (moment) => {
      const policy = { ...fastPace(new URL('http://shop.example/')) }
      const { spiller, slots } = open(10, {}, () => policy)
      await spiller.spill([task('a', 0)], 'long-wait')
      policy[moment] = 1_700_000_000_000
      await spiller.spill([task('a', 1), task(null, 2)], 'long-wait')
      expect(slots.map(({ clock }) => clock)).toEqual([`${KEY} a`, `${KEY} a 1700000000000`, `${KEY} 1700000000000`])
    },
  )

  it('lie behind the end of hours that pause it now, whatever they leave for', async () => {
    const pausedUntil = new ManualClock().now() + 3_600_000
    const { spiller, slots, scheduler } = open(10, {}, (url) => ({ ...fastPace(url), isPaused: true, pausedUntil }))
    // They leave as well.
    for (const queued of many('a', 64)) scheduler.add(queued, 0)
    await spiller.spill([task('a', 0)], 'site-full')
    await spiller.spill([task('a', 1)], 'paused', 3_600_000)
    expect(slots.map(({ reason, localWaitMs }) => [reason, localWaitMs])).toEqual([
      ['paused', 3_600_000],
      ['paused', 3_600_000],
    ])
    expect(slots[0]?.clock).toBe(slots[1]?.clock)
  })

  it('are those of their own host where a domain is one site: one that is paused takes none of the others with it', async () => {
    const pausedUntil = new ManualClock().now() + 3_600_000
    const { spiller, slots } = open(10, {}, (url) => ({
      ...fastPace(url),
      key: KEY,
      ratePerSecond: url.hostname === 'slow.shop.example' ? 1 : 10,
      ...(url.hostname === 'closed.shop.example' ? { isPaused: true, pausedUntil } : {}),
    }))
    const of = (host: string, index: number) => ({ ...task('a', index), target: new URL(`http://${host}/`) })
    const hosts = ['closed.shop.example', 'open.shop.example', 'also.shop.example', 'slow.shop.example', 'open.shop.example']
    await spiller.spill(hosts.map(of), 'site-full')
    expect(slots.map(({ reason, clock, intervalMs, count }) => [reason, clock, intervalMs, count])).toEqual([
      ['paused', expect.not.stringMatching(/^shop.example a$/), 100, 1],
      ['site-full', `${KEY} a`, 100, 3],
      ['site-full', `${KEY} a`, 1_000, 1],
    ])
  })

  it('lie as far apart as the pace allows that the site has then', async () => {
    const { spiller, slots } = open(10, {}, (url, at) => ({
      ...fastPace(url),
      ratePerSecond: at === undefined || at < new ManualClock().now() + 3_600_000 ? 1 : 20,
    }))
    await spiller.spill([task('a', 0)], 'paused', 3_600_000)
    await spiller.spill([task('a', 1)], 'long-wait')
    expect(slots.map(({ intervalMs }) => intervalMs)).toEqual([50, 1_000])
  })

  it('begin anew at the end of a pause once the site was resumed, since what had the first of them was called back', async () => {
    const policy = { ...fastPace(new URL('http://shop.example/')) }
    const { spiller, slots } = open(10, {}, () => policy)
    await spiller.spill([task('a', 0)], 'paused', 3_600_000)
    policy.resumedAt = 1_700_000_000_000
    await spiller.spill([task('a', 1)], 'paused', 3_600_000)
    await spiller.spill([task('a', 2)], 'long-wait')
    const [before, after, other] = slots.map(({ clock }) => clock)
    expect(after).toBe(`${before} 1700000000000`)
    expect(other).toBe(`${KEY} a`)
  })

  it('share one clock where the end of a closure differs by milliseconds', async () => {
    const { spiller, slots } = open(10)
    await spiller.spill([task('a', 0)], 'parked', 60_000)
    await spiller.spill([task('a', 1)], 'parked', 60_003)
    await spiller.spill([task('a', 2)], 'parked', 120_000)
    expect(slots[0]?.clock).toBe(slots[1]?.clock)
    expect(slots[2]?.clock).not.toBe(slots[1]?.clock)
  })
})

describe('slots of a site whose pace is another one at other hours', () => {
  const hours = (from: number, to: number, values: object) => ({
    fromMinute: from * 60,
    toMinute: to * 60,
    timezone: 'UTC',
    text: `${from}-${to}`,
    ...values,
  })
  const HOUR = 3_600_000
  const MORNING = Date.parse('2026-11-28T09:00:00Z')

  /** Due times of so many tasks that leave one after the other at nine in the morning. */
  async function dueTimes(count: number, schedule: readonly ReturnType<typeof hours>[], seenMs = 0, atOnce = 20): Promise<number[]> {
    const clock = { ...systemClock, now: () => MORNING, mono: () => 0 }
    const scheduler = new Scheduler<QueuedTask>({ maxInFlight: 10, maxBytes: 1 })
    if (seenMs > 0) {
      scheduler.add(task('a', -1), 0)
      Object.assign(scheduler.site(KEY) as object, { paceIntervalMs: seenMs })
    }
    const clocks = new Map<string, number>()
    const due: number[] = []
    const { paceOf, hoursEnd } = createPolicy({
      key: 'host',
      default: { ratePerSecond: 1, burst: 1, concurrency: 1 },
      rules: [{ match: 'shop.example', schedule }],
      now: clock.now,
    })
    const putAside: SpillerOptions['putAside'] = async (tasks, { clock: name, localWaitMs, intervalMs }) => {
      const last = Math.max(MORNING + localWaitMs, clocks.get(name) ?? 0) + intervalMs * tasks.length
      clocks.set(name, last)
      due.push(...tasks.map((_, index) => last - (tasks.length - 1 - index) * intervalMs))
      return last
    }
    const spiller = new Spiller({
      scheduler,
      putAside,
      paceOf,
      hoursEnd,
      shares: NO_SURPLUS,
      rate: { startsPerSecond: undefined, overload: 0 },
      clock,
    })
    for (let at = 0; at < count; at += atOnce) await spiller.spill(many('a', atOnce), 'site-full')
    return due
  }
  const between = (due: readonly number[], from: number, to: number): number =>
    due.filter((at) => at > MORNING + from * HOUR && at <= MORNING + to * HOUR).length

  it.each([0, 1_000])('lie as close as those hours allow, whatever was seen of the site by now: %s', async (seenMs) => {
    const due = await dueTimes(120_000, [hours(20, 8, { ratePerSecond: 10 })], seenMs)
    // Eleven hours of one a second, and then ten.
    expect(between(due, 0, 11)).toBeGreaterThan(39_500)
    expect(between(due, 0, 11)).toBeLessThanOrEqual(39_600)
    expect(between(due, 11, 13)).toBeGreaterThan(71_500)
    expect(between(due, 11, 13)).toBeLessThanOrEqual(72_000)
  })

  it.each([1, 500, 60_000])('are those of the hours in which they lie, though %s tasks leave together', async (atOnce) => {
    const due = await dueTimes(60_000, [hours(10, 11, { ratePerSecond: 8 })], 0, atOnce)
    expect(due).toEqual(due.toSorted((a, b) => a - b))
    expect([between(due, 0, 1), between(due, 1, 2), between(due, 2, 3)]).toEqual([3_600, 28_800, 3_600])
  })

  it('are none in the middle of a gap that ends with the slow hours', async () => {
    const due = await dueTimes(400, [hours(0, 10, { ratePerSecond: 1 / 1_800 }), hours(10, 11, { ratePerSecond: 8 })], 0, 400)
    expect([between(due, 0, 1), between(due, 1, 2)]).toEqual([2, 398])
    expect(due[2]).toBeLessThanOrEqual(MORNING + HOUR + 1_000)
  })

  it('pass over hours that pause it', async () => {
    const due = await dueTimes(20_000, [hours(12, 14, { isPaused: true })])
    expect(between(due, 0, 3)).toBeGreaterThan(10_700)
    expect(between(due, 3, 5)).toBe(0)
    expect(between(due, 5, 8)).toBeGreaterThan(9_100)
  })
})
