import type { Dependency } from '../kernel/outage.ts'
import { LANES } from '../message/topics.ts'
import { crawlOf } from './crawl-queues.ts'
import type { ProxyOut } from './proxy-ring.ts'
import type { QueuedTask } from './queued-task.ts'
import type { Scheduler } from './scheduler.ts'

/** What holds up all requests. */
export type HoldReason = 'state-store' | 'disk'

/**
 * What a fetch worker waits for: all of it, or with `registry` what is not taken up yet, with `blobs` pages that are too large for a
 * message.
 */
export type StallReason = HoldReason | Dependency

export function isHold(reason: string | null): reason is HoldReason {
  return reason === 'state-store' || reason === 'disk'
}

/** What a fetch worker has in memory, in numbers. */
export interface FetchView {
  /** Tasks in site queues. */
  readonly waiting: number
  /** Tasks whose request is under way, or whose turn it is. */
  readonly inFlight: number
  readonly sites: number
  /** Tasks that could start now within the pace of their sites, were there more workers. */
  readonly runnable: number
  /** Messages taken from the lanes and not finished. */
  readonly windowMessages: number
  /** What it waits for, that which holds up most; null: nothing. */
  readonly stalledBy: StallReason | null
  /** Sites that may not be asked now, by what the limiter said of them last. */
  readonly siteWaits: Readonly<Record<string, number>>
  /** Proxies that no request goes through now. */
  readonly proxiesOut: readonly ProxyOut[]
  /** For how long Kafka has not taken what the oldest of the tasks has ended with; 0: nothing waits for it. */
  readonly unwrittenMs: number
}

/** Where a task is in a fetch worker. */
export interface TaskView {
  readonly taskId: string
  readonly attempt: number
  readonly crawlId: string | null
  /** waiting: in the queue of its site. turn: robots.txt and the limiter are asked for it, or its request is under way. */
  readonly state: 'waiting' | 'turn'
  /** What is paced as one. */
  readonly site: string
  readonly url: string
  /** Tasks of the site and lane that start before it, about. */
  readonly before: number
  /** ms until the site may be asked again; 0: now. */
  readonly siteWaitMs: number
  /** Why; null: the site does not wait, or nobody has asked yet. */
  readonly siteWaitReason: string | null
  readonly siteInFlight: number
  readonly siteConcurrency: number
  /** For how long Kafka has not taken what it ended with; null: it has not ended. */
  readonly unwrittenMs: number | null
  /** A former owner of its partition has it on the wire, for so long at most; null: none does. */
  readonly handoverMs: number | null
  /** The places of its crawl's page budget are all taken, some of them by tasks that may give theirs back. */
  readonly awaitsPlace: boolean
}

/** What others than the scheduler know of a task. */
export interface TaskFacts {
  readonly unwrittenMs: (queued: QueuedTask) => number | undefined
  readonly handoverMs: (queued: QueuedTask) => number
  readonly awaitsPlace: (queued: QueuedTask) => boolean
}

/** Cost: O(sites). */
export function fetchView(
  scheduler: Scheduler<QueuedTask>,
  now: number,
  { stalledBy, windowMessages, proxiesOut, unwrittenMs }: Pick<FetchView, 'stalledBy' | 'windowMessages' | 'proxiesOut' | 'unwrittenMs'>,
): FetchView {
  let runnable = 0
  const siteWaits: Record<string, number> = {}
  for (const site of scheduler.sites()) {
    if (site.wakeAt > now && site.size > 0) {
      const reason = site.waitReason ?? 'rate'
      siteWaits[reason] = (siteWaits[reason] ?? 0) + 1
    } else if (!site.probing) runnable += Math.min(site.size, Math.max(0, site.concurrency - site.inFlight))
  }
  const { waiting, inFlight, siteCount } = scheduler
  return {
    waiting,
    inFlight,
    sites: siteCount,
    runnable: isHold(stalledBy) ? 0 : runnable,
    windowMessages,
    stalledBy,
    siteWaits,
    proxiesOut,
    unwrittenMs,
  }
}

/** Tasks of a canonical URL. Cost: O(tasks in memory). */
export function taskViews(
  scheduler: Scheduler<QueuedTask>,
  turns: Iterable<QueuedTask>,
  canonicalUrl: string,
  now: number,
  facts: TaskFacts,
): readonly TaskView[] {
  const views: TaskView[] = []
  const view = (queued: QueuedTask, state: TaskView['state'], before: number, isAside = false): TaskView => {
    const { task, key, target } = queued
    const site = scheduler.site(key)
    const awaitsPlace = isAside && facts.awaitsPlace(queued)
    const handoverMs = isAside && !awaitsPlace ? facts.handoverMs(queued) : 0
    const siteWaitMs = Math.max(0, Math.ceil((site?.wakeAt ?? 0) - now))
    return {
      taskId: task.taskId,
      attempt: task.attempt,
      crawlId: task.crawlId,
      state,
      site: key,
      url: target.href,
      before,
      siteWaitMs,
      siteWaitReason: siteWaitMs > 0 ? (site?.waitReason ?? null) : null,
      siteInFlight: site?.inFlight ?? 0,
      siteConcurrency: site?.concurrency ?? 1,
      unwrittenMs: facts.unwrittenMs(queued) ?? null,
      handoverMs: handoverMs > 0 ? handoverMs : null,
      awaitsPlace,
    }
  }
  for (const queued of turns) if (queued.task.canonicalUrl === canonicalUrl) views.push(view(queued, 'turn', 0))
  for (const site of scheduler.sites()) {
    for (const queued of site.aside) if (queued.task.canonicalUrl === canonicalUrl) views.push(view(queued, 'waiting', 0, true))
    for (const lane of LANES) {
      const positions = new Map<string, number>()
      const found: { readonly queued: QueuedTask; readonly position: number }[] = []
      for (const queued of site.waitingIn(lane)) {
        const crawl = crawlOf(queued)
        const position = positions.get(crawl) ?? 0
        positions.set(crawl, position + 1)
        if (queued.task.canonicalUrl === canonicalUrl) found.push({ queued, position })
      }
      // Crawls take turns: of each as many start before it as of its own.
      const before = (position: number): number => [...positions.values()].reduce((sum, size) => sum + Math.min(size, position), 0)
      for (const { queued, position } of found) views.push(view(queued, 'waiting', before(position)))
    }
  }
  return views
}
