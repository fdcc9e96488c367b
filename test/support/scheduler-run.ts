import { Scheduler, type SchedulerOptions } from '../../src/fetch/scheduler.ts'
import type { SiteTask } from '../../src/fetch/site-task.ts'
import type { PartitionId, PolitenessKey } from '../../src/kernel/brand.ts'
import type { Lane } from '../../src/message/generated/types.ts'
import type { SeededRandom } from './random.ts'

export interface RunTask extends SiteTask {
  readonly bornAt: number
}

export interface Start {
  readonly task: RunTask
  readonly at: number
}

/** A stream of tasks that never ends, or is over after so many. */
export interface Source {
  readonly crawl: string
  readonly lane: Lane
  readonly sites: readonly string[]
  /** Tasks that wait in this process at any time, as windows bound them; read on as they start. */
  readonly window: number
  readonly count: number
}

export interface RunOptions {
  readonly scheduler: SchedulerOptions
  readonly sources: readonly Source[]
  readonly random: SeededRandom
  /** Length of a request, ms. */
  readonly requestMs: (key: string) => number
  /** Between two starts of a site, ms; 0 for no pace. */
  readonly paceMs: number
  readonly untilMs: number
  readonly prepare?: (scheduler: Scheduler<RunTask>) => void
}

/**
 * A scheduler under load in made-up time: tasks come in as the queues empty, the limiter is one interval per site, requests take as
 * long as they take. Shape: every start, in order.
 */
export function runScheduler(options: RunOptions): Start[] {
  const { sources, random, paceMs, untilMs } = options
  const scheduler = new Scheduler<RunTask>(options.scheduler)
  options.prepare?.(scheduler)
  const starts: Start[] = []
  const running: { task: RunTask; endsAt: number }[] = []
  const nextAt = new Map<string, number>()
  const given = sources.map(() => 0)
  const waiting = sources.map(() => 0)
  const sourceOf = new Map<RunTask, number>()
  let now = 0
  const feed = (): void => {
    for (const [index, { crawl, lane, sites, window, count }] of sources.entries()) {
      while ((waiting[index] ?? 0) < window && (given[index] ?? 0) < count) {
        const key = sites[Math.floor(random.next() * sites.length)] as PolitenessKey
        const task: RunTask = { key, lane, crawlId: crawl, window: `${lane}:0` as PartitionId, bornAt: now }
        sourceOf.set(task, index)
        scheduler.add(task, now)
        given[index] = (given[index] ?? 0) + 1
        waiting[index] = (waiting[index] ?? 0) + 1
      }
    }
  }
  while (now < untilMs) {
    feed()
    const next = scheduler.next(now)
    if (next.kind === 'start') {
      const { task } = next
      const at = nextAt.get(task.key) ?? 0
      if (at > now) {
        scheduler.putBack(task, at, now)
        continue
      }
      nextAt.set(task.key, now + paceMs)
      scheduler.admitted(task, now)
      starts.push({ task, at: now })
      const index = sourceOf.get(task) ?? 0
      waiting[index] = (waiting[index] ?? 0) - 1
      running.push({ task, endsAt: now + options.requestMs(task.key) })
      continue
    }
    running.sort((a, b) => a.endsAt - b.endsAt)
    const endsAt = running[0]?.endsAt ?? Number.POSITIVE_INFINITY
    const wakesAt = next.kind === 'wait' ? now + next.ms : Number.POSITIVE_INFINITY
    if (endsAt === Number.POSITIVE_INFINITY && wakesAt === Number.POSITIVE_INFINITY) break
    now = Math.min(endsAt, wakesAt)
    while (running[0] !== undefined && running[0].endsAt <= now) scheduler.ended((running.shift() as { task: RunTask }).task, now)
  }
  return starts
}
