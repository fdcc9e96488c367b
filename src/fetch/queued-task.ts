import type { WindowEntry } from '../kafka/window-entry.ts'
import { type PartitionId, type PolitenessKey, partitionId } from '../kernel/brand.ts'
import type { Lane, UrlTask } from '../message/generated/types.ts'
import { resumeChain } from './redirect.ts'
import type { SiteTask } from './site-task.ts'

/** A task on its way through the worker: which entry it is of, and how far its chain of redirects has come. */
export interface QueuedTask extends SiteTask {
  readonly key: PolitenessKey
  readonly lane: Lane
  readonly crawlId: string | null
  readonly window: PartitionId
  readonly entry: WindowEntry
  /** With the hops that were followed so far; `attempt` is the one under way. */
  readonly task: UrlTask
  /** What is asked next: the URL of the task, or the target of its last hop. */
  readonly target: URL
  /** Monotonic ms at which the store was asked last whether it is finished. */
  readonly checkedMono: number
  readonly walk: Walk
}

/** What the requests of one attempt have in common. */
export interface Walk {
  /** Hops followed in this process. */
  readonly hops: number
  /** Epoch ms at which the first request started. */
  readonly startedAt: number | undefined
  /** Of all requests, without waits; ms. */
  readonly requestMs: number
  /**
   * Method, headers and body of the next request: a redirect may change the first and drop the last, and leaving the origin drops headers.
   */
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
}

/** A task that has just come in; a chain that was begun elsewhere goes on where it stopped. */
export function queuedTask(
  { entry, task, url }: { readonly entry: WindowEntry; readonly task: UrlTask; readonly url: URL },
  checkedMono: number,
  keyOf: (target: URL) => PolitenessKey,
): QueuedTask {
  const { target, method, headers, body } = resumeChain(task, url)
  return {
    key: keyOf(target),
    lane: task.lane ?? 'normal',
    crawlId: task.crawlId,
    window: partitionId(entry.message.topic, entry.message.partition),
    entry,
    task,
    target,
    checkedMono,
    walk: { hops: 0, startedAt: undefined, requestMs: 0, method, headers, body },
  }
}
