import type { CrawlCounts } from '../state/state-store.ts'
import { CrawlBacklog } from './crawl-backlog.ts'
import type { Runtime } from './runtime.ts'

/**
 * The topics say what is left to do, the store only counts. A store that comes back older (a failover, a power loss) counts tasks as open whose
 * end it had known, and a broker may lose the message of a task that the store has counted: nobody would ever finish those, and their crawl
 * would not end. Where nothing of a crawl lies on a topic its open tasks are no longer waited for; one that turns up all the same is
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

interface Seen {
  readonly counts: CrawlCounts
  readonly backlog: CrawlBacklog
}

/** Looks after the crawls that nobody waits for: of one that has not moved since the last round it is seen whether anything of it is queued. */
export class OpenCrawlRounds {
  readonly #runtime: Runtime
  #seen: ReadonlyMap<string, Seen> = new Map()

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  /** A signal ends it before the next crawl; those that it has not come to are looked at anew. */
  async round(signal?: AbortSignal): Promise<void> {
    const state = await this.#runtime.state()
    const seen = new Map<string, Seen>()
    for (const { crawlId } of (await state.openCrawls([], MOST_CRAWLS)).others) {
      if (signal?.aborted) break
      const counts = await state.crawlCounts(crawlId)
      const before = this.#seen.get(crawlId)
      const isQuiet = before?.counts.accepted === counts.accepted && before.counts.final === counts.final
      // What was looked at before is not looked at again.
      const backlog = before?.backlog ?? new CrawlBacklog(this.#runtime, crawlId)
      if (isQuiet && (await backlog.look(Number.POSITIVE_INFINITY)) === 'nothing') await dropOpenTasks(this.#runtime, crawlId, counts)
      else seen.set(crawlId, { counts, backlog })
    }
    this.#seen = seen
  }
}
