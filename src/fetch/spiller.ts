import type { WindowEntry } from '../kafka/windowed-consumer.ts'
import type { PolitenessKey } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { SitePolicy } from '../politeness/policy.ts'
import { crawlOf } from './crawl-queues.ts'
import type { QueuedTask } from './queued-task.ts'
import type { Scheduler } from './scheduler.ts'
import type { SiteQueue } from './site-queue.ts'
import { expectedWaitMs, SPILL_LIMITS, type SpillLimits, type SpillReason, spillReason } from './spill.ts'
import type { TaskEndings } from './task-endings.ts'

export interface SpillerOptions {
  readonly scheduler: Scheduler<QueuedTask>
  readonly endings: Pick<TaskEndings, 'spilled'>
  readonly paceOf: (url: URL) => SitePolicy
  readonly limits?: SpillLimits
  readonly clock: Clock
}

/** Finds what has to leave its window, and sends it to the delay topics in the order of its site. */
export class Spiller {
  readonly #options: SpillerOptions
  readonly #limits: SpillLimits

  constructor(options: SpillerOptions) {
    this.#options = options
    this.#limits = options.limits ?? SPILL_LIMITS
  }

  /** A wait that is not worth a place in a window. */
  isLong(waitMs: number): boolean {
    return waitMs > this.#limits.maxWaitMs
  }

  /**
   * Queues what has room, in order. Shape: what has to leave its window instead, in the order of its site and crawl: the task itself,
   * or the last one of a crawl that has more than its share of the places there.
   */
  admit(tasks: readonly QueuedTask[], enqueue: (task: QueuedTask) => void): readonly { tasks: QueuedTask[]; reason: SpillReason }[] {
    const spills = new Map<string, { tasks: QueuedTask[]; reason: SpillReason }>()
    const spillOf = (task: QueuedTask, reason: SpillReason): QueuedTask[] => {
      const spill = spills.get(clockOf(task)) ?? { tasks: [], reason }
      spills.set(clockOf(task), spill)
      return spill.tasks
    }
    for (const task of tasks) {
      // Once one of a site and crawl is spilled, so are those behind it: they must not overtake it.
      const reason = spills.get(clockOf(task))?.reason ?? this.#reasonFor(task)
      const displaced = reason === 'site-full' && !spills.has(clockOf(task)) ? this.#displacedBy(task) : undefined
      if (reason === undefined || displaced !== undefined) enqueue(task)
      else spillOf(task, reason).push(task)
      // It stood before all that have left.
      if (displaced !== undefined) spillOf(displaced, 'site-full').unshift(displaced)
    }
    return [...spills.values()]
  }

  #reasonFor(queued: QueuedTask): SpillReason | undefined {
    const { scheduler, clock } = this.#options
    const site = scheduler.site(queued.key)
    if (site === undefined) return undefined
    const view = {
      waiting: startsBefore(site, queued),
      heldInWindow: site.heldIn(queued.window),
      wakeInMs: site.wakeAt - clock.mono(),
      intervalMs: this.#intervalMs(queued),
    }
    return spillReason(view, this.#limits)
  }

  /** The last task of the crawl with most tasks, where it has more than its share and the new one's crawl has less. */
  #displacedBy(queued: QueuedTask): QueuedTask | undefined {
    const site = this.#options.scheduler.site(queued.key)
    if (site === undefined) return undefined
    const { crawl, count } = site.largestCrawl
    const share = this.#limits.maxPerWindow / (site.crawlCount + (site.waitingOf(crawlOf(queued)) === 0 ? 1 : 0))
    if (count <= share || site.waitingOf(crawlOf(queued)) + 1 > share) return undefined
    return this.#options.scheduler.takeLast(queued.key, crawl, queued.window)
  }

  /** Shape: tasks of one site. `atLeastMs`: the site is known to be closed for so long. */
  async spill(tasks: readonly QueuedTask[], reason: SpillReason, atLeastMs = 0): Promise<void> {
    const byClock = new Map<string, QueuedTask[]>()
    for (const task of tasks) byClock.set(clockOf(task), [...(byClock.get(clockOf(task)) ?? []), task])
    await Promise.all([...byClock.values()].map((own) => this.#spillCrawl(own, reason, atLeastMs)))
  }

  /** Each crawl of a site has a clock of its own, which goes slower the more crawls want the site: so their tasks come back in turn. */
  async #spillCrawl(tasks: readonly QueuedTask[], reason: SpillReason, atLeastMs: number): Promise<void> {
    const [first] = tasks
    if (first === undefined) return
    const { scheduler, endings, clock } = this.#options
    const site = scheduler.site(first.key)
    const intervalMs = this.#intervalMs(first)
    const wakeInMs = Math.max(atLeastMs, (site?.wakeAt ?? 0) - clock.mono())
    const waiting = site === undefined ? 0 : startsBefore(site, first)
    const localWaitMs = expectedWaitMs({ waiting, wakeInMs, intervalMs })
    await endings.spilled(tasks, {
      reason,
      clock: clockOf(first),
      localWaitMs,
      intervalMs: intervalMs * Math.max(1, site?.crawlCount ?? 1),
    })
  }

  /** The site is closed for so long: everything that waits for it. */
  takeSite(key: PolitenessKey, closedMs: number): QueuedTask[] {
    const { scheduler, clock } = this.#options
    const now = clock.mono()
    scheduler.sleep(key, now + closedMs, now)
    return scheduler.takeOut(key, () => true)
  }

  /** What has held back a commit for too long without being on the wire; site by site. */
  takeOld(bases: readonly WindowEntry[]): QueuedTask[][] {
    const { scheduler, clock } = this.#options
    const now = clock.mono()
    const old = new Set(bases.filter(({ takenMono }) => now - takenMono > this.#limits.maxBaseAgeMs))
    if (old.size === 0) return []
    return [...scheduler.sites()]
      .map(({ key }) => scheduler.takeOut(key, ({ entry }) => old.has(entry)))
      .filter((tasks) => tasks.length > 0)
  }

  /** Between two starts of the site: as its pace allows, or as it was seen where that is longer. */
  #intervalMs(queued: QueuedTask): number {
    const { ratePerSecond, crawlDelayMs, concurrency } = this.#options.paceOf(queued.target)
    const allowed = Math.max(1_000 / ratePerSecond, crawlDelayMs / concurrency)
    const site = this.#options.scheduler.site(queued.key)
    return Math.max(allowed, site?.paceIntervalMs ?? 0, site?.observedIntervalMs ?? 0)
  }
}

/** Starts of a site before a new task of the crawl: those of its own crawl, and as many of each other one. */
function startsBefore(site: SiteQueue<QueuedTask>, queued: QueuedTask): number {
  const crawl = crawlOf(queued)
  const crawls = site.crawlCount + (site.waitingOf(crawl) === 0 ? 1 : 0)
  return Math.min(site.size, site.waitingOf(crawl) * crawls + crawls - 1)
}

/** Name of the spill clock of a site and crawl. */
function clockOf({ key, crawlId }: QueuedTask): PolitenessKey {
  return crawlId === null ? key : (`${key} ${crawlId}` as PolitenessKey)
}
