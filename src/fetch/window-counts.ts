import type { PartitionId } from '../kernel/brand.ts'
import { crawlOf } from './crawl-queues.ts'
import type { SiteTask } from './site-task.ts'

/** How many tasks wait of each window and crawl, over all sites. */
export class WindowCounts {
  readonly #windows = new Map<PartitionId, Map<string, number>>()
  readonly #totals = new Map<PartitionId, number>()
  readonly #crawls = new Map<string, number>()

  /** Windows with tasks that wait. */
  windows(): IterableIterator<PartitionId> {
    return this.#windows.keys()
  }

  /** Crawls with tasks of the window. */
  crawls(window: PartitionId): ReadonlyMap<string, number> {
    return this.#windows.get(window) ?? new Map()
  }

  total(window: PartitionId): number {
    return this.#totals.get(window) ?? 0
  }

  of(window: PartitionId, crawl: string): number {
    return this.#windows.get(window)?.get(crawl) ?? 0
  }

  /** Of one crawl, in all windows. */
  ofCrawl(crawl: string): number {
    return this.#crawls.get(crawl) ?? 0
  }

  /** The crawls with most tasks, in all windows; at most `limit`. */
  largestCrawls(limit: number): string[] {
    const bySize = [...this.#crawls].sort(([, a], [, b]) => b - a)
    return bySize.slice(0, limit).map(([crawl]) => crawl)
  }

  move(task: SiteTask, by: 1 | -1): void {
    const { window } = task
    const crawl = crawlOf(task)
    const crawls = this.#windows.get(window) ?? new Map<string, number>()
    this.#windows.set(window, crawls)
    moveCount(crawls, crawl, by)
    if (crawls.size === 0) this.#windows.delete(window)
    moveCount(this.#totals, window, by)
    moveCount(this.#crawls, crawl, by)
  }
}

/** Counts up or down; what is at 0 is not kept. */
export function moveCount<K>(counts: Map<K, number>, key: K, by: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + by
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
