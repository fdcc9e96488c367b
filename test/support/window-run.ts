import { LiftedSites } from '../../src/delay/lifted-sites.ts'
import { CrawlShares } from '../../src/fetch/crawl-shares.ts'
import type { QueuedTask } from '../../src/fetch/queued-task.ts'
import { Scheduler } from '../../src/fetch/scheduler.ts'
import { delayReason, type SpillLimits, type SpillReason, spreadSlots } from '../../src/fetch/spill.ts'
import { Spiller } from '../../src/fetch/spiller.ts'
import { StartRate } from '../../src/fetch/start-rate.ts'
import type { PartitionId, PolitenessKey } from '../../src/kernel/brand.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { TimeHeap } from '../../src/kernel/time-heap.ts'
import { HEADER, type OriginalMessage } from '../../src/message/header-names.ts'
import { slotsFrom } from '../../src/politeness/policy.ts'
import type { OpenCrawls } from '../../src/state/state-store.ts'
import { fastPace } from './fetch-fixture.ts'

export interface WindowRunOptions {
  /** What lies in the log at first, in order. */
  readonly log: readonly { readonly crawl: string; readonly site: string }[]
  readonly maxInFlight: number
  readonly requestMs: number
  readonly untilMs: number
  /** Of each site, which then sleeps between its starts; not given: sites start whatever there are places for. */
  readonly ratePerSecond?: number
  readonly limits?: SpillLimits
  /** Another pace of all sites from a moment on; `isSaid`: the moment stands in their override, as that of a faster pace does. */
  readonly change?: { readonly at: number; readonly ratePerSecond: number; readonly isSaid: boolean }
}

export interface WindowRun {
  readonly starts: readonly { readonly crawl: string; readonly site: string; readonly index: number; readonly at: number }[]
  /** Copies that were written of each task, by its index. */
  readonly copies: readonly number[]
  /** Tasks that came back before their time. */
  readonly lifted: number
  /** Most tasks that were taken and not finished at one time. */
  readonly mostIncomplete: number
  /** Tasks that left, by what they left for and when. */
  readonly spills: readonly { readonly reason: SpillReason; readonly site: string; readonly at: number }[]
}

interface Item {
  readonly index: number
  readonly crawl: string
  readonly site: string
}

/** A task in a delay topic, and what is seen of it there. */
interface Delayed {
  readonly item: Item
  readonly message: OriginalMessage
}

/** Epoch ms at which a run begins. */
const START = 1_000_000
const WINDOW = 'urls:0' as PartitionId
/** As the consumer's window has it. */
const MAX_INCOMPLETE = 1_000
const READ_AT_ONCE = 500
const STEP_MS = 20
const LOOK_MS = 1_000

/** One partition in made-up time: its log, a window, the scheduler, and delay topics that bring back what was spilled. */
export function runWindow({ log, maxInFlight, requestMs, untilMs, limits, ...paces }: WindowRunOptions): WindowRun {
  let [ratePerSecond, fasterAt, lifted] = [paces.ratePerSecond, 0, 0]
  const liftedSites = new LiftedSites()
  const scheduler = new Scheduler<QueuedTask>({ maxInFlight, maxBytes: 1 })
  const shares = new CrawlShares()
  const unread: Item[] = log.map((item, index) => ({ ...item, index }))
  const copies = unread.map(() => 0)
  const open = new Map<string, number>()
  for (const { crawl } of unread) open.set(crawl, (open.get(crawl) ?? 0) + 1)
  let delayed = new TimeHeap<Delayed>()
  const clocks = new Map<string, number>()
  const starts: (Item & { at: number })[] = []
  const spills: WindowRun['spills'][number][] = []
  const running: { readonly queued: QueuedTask; readonly endsAt: number }[] = []
  const itemOf = new Map<QueuedTask, Item>()
  const here = new Map<string, number>()
  let [incomplete, position, read, now, isPaused] = [0, 0, 0, 0, false]
  let mostIncomplete = 0
  const clock = { ...systemClock, now: () => now, mono: () => now }
  const rate = new StartRate({ scheduler, clock })

  const spiller = new Spiller({
    scheduler,
    shares,
    rate,
    paceOf: (url) => ({ ...fastPace(url), ratePerSecond: ratePerSecond ?? 50, fasterAt }),
    clock,
    ...(limits === undefined ? {} : { limits }),
    putAside: async (tasks, { reason, clock: name, localWaitMs, intervalMs }) => {
      const last = Math.max(now + localWaitMs, clocks.get(name) ?? 0) + intervalMs * tasks.length
      clocks.set(name, last)
      const slots = spreadSlots(last - now, tasks.length, intervalMs)
      for (const [index, queued] of tasks.entries()) {
        const item = itemOf.get(queued) as Item
        spills.push({ reason, site: item.site, at: now })
        copies[item.index] = (copies[item.index] ?? 0) + 1
        leave(queued)
        const since = slotsFrom({ resetAt: 0, fasterAt })
        delay(now + (slots[index] ?? 0), { item, message: copyOf(item.site, now, delayReason(reason), since) })
      }
      return last
    },
  })
  const delay = (at: number, put: Delayed): void => {
    const isLifted = liftedSites.isLifted(put.message, () => `http://${put.item.site}/`)
    if (isLifted) lifted += 1
    delayed.push(isLifted ? now : at, put)
  }
  /** As the fetch worker and the delay worker hear of another pace. */
  const hear = (): void => {
    const { change } = paces
    if (change === undefined || now !== change.at) return
    ratePerSecond = change.ratePerSecond
    for (const { key } of [...scheduler.sites()]) scheduler.wake(key, now)
    if (!change.isSaid) return
    fasterAt = START + now
    for (const site of new Set(log.map((item) => item.site))) liftedSites.add(site, { fasterAt })
    const before = delayed
    delayed = new TimeHeap()
    for (let at = before.nextAt; at !== undefined; at = before.nextAt) delay(at, before.popDue(at) as Delayed)
  }
  const leave = (queued: QueuedTask): void => {
    const { crawl } = itemOf.get(queued) as Item
    here.set(crawl, (here.get(crawl) ?? 0) - 1)
    itemOf.delete(queued)
    incomplete -= 1
  }
  const take = (): void => {
    if (isPaused && incomplete <= MAX_INCOMPLETE / 2) isPaused = false
    if (isPaused) return
    const items = unread.slice(read, read + READ_AT_ONCE)
    read += items.length
    const tasks = items.map((item) => {
      const queued = taskOf(item, position++)
      itemOf.set(queued, item)
      here.set(item.crawl, (here.get(item.crawl) ?? 0) + 1)
      return queued
    })
    incomplete += tasks.length
    mostIncomplete = Math.max(mostIncomplete, incomplete)
    isPaused = incomplete >= MAX_INCOMPLETE
    for (const { tasks: spilled, reason } of spiller.admit(tasks, (queued) => scheduler.add(queued, now)))
      void spiller.spill(spilled, reason)
  }
  const look = (): void => {
    rate.measure()
    shares.learn(openCrawlsOf([...open].filter(([, count]) => count > 0)), (crawl) => here.get(crawl) ?? 0)
    for (const tasks of spiller.takeSurplus()) void spiller.spill(tasks, 'crawl-full')
  }

  for (; now < untilMs; now += STEP_MS) {
    hear()
    while (running[0] !== undefined && running[0].endsAt <= now) {
      const { queued } = running.shift() as { queued: QueuedTask }
      const { crawl } = itemOf.get(queued) as Item
      open.set(crawl, (open.get(crawl) ?? 0) - 1)
      leave(queued)
      scheduler.ended(queued, now)
    }
    for (let due = delayed.popDue(now); due !== undefined; due = delayed.popDue(now)) unread.push(due.item)
    take()
    for (let next = scheduler.next(now); next.kind === 'start'; next = scheduler.next(now)) {
      if (ratePerSecond !== undefined) scheduler.sleep(next.task.key, now + 1_000 / ratePerSecond, now)
      scheduler.admitted(next.task, now)
      starts.push({ ...(itemOf.get(next.task) as Item), at: now })
      running.push({ queued: next.task, endsAt: now + requestMs })
    }
    // Not before the starts: all places are free in that moment, because every request takes as long.
    if (now > 0 && now % LOOK_MS === 0) look()
  }
  return { starts, copies, lifted, mostIncomplete, spills }
}

/** What a delay topic holds of a task. */
function copyOf(site: string, now: number, reason: string, since: number): OriginalMessage {
  const headers = { [HEADER.reason]: reason, ...(since === 0 ? {} : { [HEADER.slotsMs]: String(since) }) }
  return { topic: 'delay', partition: 0, offset: 0n, timestamp: START + now, key: Buffer.from(site), value: null, headers }
}

function taskOf({ crawl, site, index }: Item, position: number): QueuedTask {
  const parts = {
    key: site as PolitenessKey,
    lane: 'normal',
    crawlId: crawl,
    window: WINDOW,
    target: new URL(`http://${site}/${index}`),
    entry: { message: { offset: BigInt(position) }, takenMono: 0 },
    walk: { hops: 0 },
  }
  return parts as never
}

/** As the store tells it of crawls that are few. */
function openCrawlsOf(open: readonly (readonly [string, number])[]): OpenCrawls {
  return { count: open.length, named: [], others: open.map(([crawlId, count]) => ({ crawlId, open: count })) }
}
