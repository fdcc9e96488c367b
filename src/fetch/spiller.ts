import type { WindowEntry } from '../kafka/windowed-consumer.ts'
import type { PolitenessKey } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { SitePolicy } from '../politeness/policy.ts'
import type { QueuedTask } from './queued-task.ts'
import type { Scheduler } from './scheduler.ts'
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

  /** Why a task that comes in is better not queued; undefined: it is. */
  reasonFor(queued: QueuedTask): SpillReason | undefined {
    const { scheduler, clock } = this.#options
    const site = scheduler.site(queued.key)
    if (site === undefined) return undefined
    const view = {
      waiting: site.size,
      heldInWindow: site.heldIn(queued.window),
      wakeInMs: site.wakeAt - clock.mono(),
      intervalMs: this.#intervalMs(queued),
    }
    return spillReason(view, this.#limits)
  }

  /** `atLeastMs`: the site is known to be closed for so long. */
  async spill(tasks: readonly QueuedTask[], reason: SpillReason, atLeastMs = 0): Promise<void> {
    const [first] = tasks
    if (first === undefined) return
    const { scheduler, endings, clock } = this.#options
    const site = scheduler.site(first.key)
    const intervalMs = this.#intervalMs(first)
    const wakeInMs = Math.max(atLeastMs, (site?.wakeAt ?? 0) - clock.mono())
    await endings.spilled(tasks, reason, expectedWaitMs({ waiting: site?.size ?? 0, wakeInMs, intervalMs }), intervalMs)
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
