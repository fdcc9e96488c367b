import type { MessagePlace } from '../../kernel/brand.ts'
import { ownProcess } from '../../machine/process-identity.ts'
import type { CrawlCounts } from '../../state/state-store.ts'
import { isSameProcess, liveWorkers } from '../groups/live-workers.ts'
import { waitingBounds } from '../groups/waiting-bounds.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { BacklogSearch, taskOfQueued } from './backlog-search.ts'

/**
 * The topics say what is left to do, the store only counts. A store that comes back older (a failover, a power loss) counts tasks as open
 * whose end it had known, and a broker may lose the message of a task that the store has counted: nobody would ever finish those, and their
 * crawl would not end. Where nothing of a crawl lies on a topic its open tasks are no longer waited for; one that turns up all the same is
 * accepted anew when it is read.
 *
 * @param counts - as they were before somebody looked at the topics; where they have changed since, nothing is dropped
 */
export async function dropOpenTasks(runtime: Pick<Runtime, 'state' | 'observer'>, crawlId: string, counts: CrawlCounts): Promise<number> {
  const count = await (await runtime.state()).dropOpen(crawlId, counts)
  if (count > 0) runtime.observer.emit('OpenTasksDropped', { crawlId, count })
  return count
}

/** So many crawls a round; where more are open the store names others the next time, or when these have ended. */
const MOST_CRAWLS = 1_000

/**
 * Looks after the crawls that nobody waits for: of one that has not moved since the last round it is seen whether anything of it is queued.
 * One worker is enough, the fetch worker that has lived longest as the store knows them; while two take themselves for that, it is done
 * twice.
 */
export class OpenCrawlRounds {
  readonly #runtime: Runtime
  readonly #queued: QueuedCrawls
  #counts: ReadonlyMap<string, CrawlCounts> = new Map()

  constructor(runtime: Runtime) {
    this.#runtime = runtime
    this.#queued = new QueuedCrawls(runtime)
  }

  /** Errors: the signal's reason; those of the store and the broker. */
  async round(signal?: AbortSignal): Promise<void> {
    const before = this.#counts
    const counts = new Map<string, CrawlCounts>()
    this.#counts = counts
    if (!(await isEldest(this.#runtime))) return
    const state = await this.#runtime.state()
    for (const { crawlId } of (await state.openCrawls([], MOST_CRAWLS)).others) {
      signal?.throwIfAborted()
      counts.set(crawlId, await state.crawlCounts(crawlId))
    }
    const quiet = [...counts].filter(([crawlId, { accepted, final }]) => {
      const last = before.get(crawlId)
      return last?.accepted === accepted && last.final === final
    })
    if (quiet.length === 0) return
    const left = await this.#queued.without(
      quiet.map(([crawlId]) => crawlId),
      signal,
    )
    for (const [crawlId, were] of quiet) if (left.has(crawlId)) await dropOpenTasks(this.#runtime, crawlId, were)
  }
}

async function isEldest(runtime: Runtime): Promise<boolean> {
  const [eldest] = (await liveWorkers(runtime)).filter(({ stage }) => stage === 'fetch').sort((a, b) => (a.workerId < b.workerId ? -1 : 1))
  return eldest === undefined || isSameProcess(eldest, ownProcess(''))
}

/** The texts of more crawls take longer to look for than tasks to be decoded. */
const MOST_SEARCHED = 30

/** Which of several crawls have nothing queued, by one search for all of them. */
class QueuedCrawls {
  readonly #runtime: Runtime
  /** Where something of a crawl was found: as long as it waits there is nothing to look for. */
  readonly #found = new Map<string, MessagePlace>()

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  /** Shape: those of them of which nothing waits; none where something lies behind an open transaction, and may be of any. */
  async without(crawlIds: readonly string[], signal?: AbortSignal): Promise<ReadonlySet<string>> {
    const bounds = await waitingBounds(this.#runtime)
    for (const [crawlId, at] of this.#found) if (!crawlIds.includes(crawlId) || !bounds.isWaiting(at)) this.#found.delete(crawlId)
    const missing = new Set(crawlIds.filter((crawlId) => !this.#found.has(crawlId)))
    if (missing.size === 0) return missing
    const search = new BacklogSearch(this.#runtime, missing.size > MOST_SEARCHED ? undefined : [...missing])
    for await (const queued of search.next(bounds, signal)) {
      if (queued === 'hidden') return new Set()
      const { at, message } = queued
      const crawlId = bounds.isWaiting(at) ? (await taskOfQueued(this.#runtime, message))?.crawlId : undefined
      if (typeof crawlId === 'string' && missing.delete(crawlId)) this.#found.set(crawlId, at)
      if (missing.size === 0) break
    }
    return missing
  }
}
