import { leastOf } from '../../kernel/bigint.ts'
import { delayTopics, laneTopics } from '../../message/topics.ts'
import type { Runtime } from '../runtime/runtime.ts'

/**
 * Copies in the delay topics that are finished are kept for no longer: whatever waits is written again once an hour, and nobody reads what
 * is finished there, since it was acknowledged in its lane or in a shorter topic before. Twice the longest delay: whoever counts what
 * waited a moment ago still finds it.
 */
const DELAYED_KEPT_MS = 2 * 3_600_000

/**
 * One round: deletes finished tasks that are older than `topics.retention.urls` from the lanes, and sooner from the delay topics. Kafka
 * would delete open ones as well, so these topics have no retention of their own. Shape: nothing at or above the committed offset of its
 * reader, and nothing younger than that, is touched. Errors: the signal's reason; those of the broker.
 */
export async function deleteFinished(runtime: Runtime, signal?: AbortSignal): Promise<void> {
  const { admin, clock, config, groups, topics } = runtime
  const retentionMs = config['topics.retention.urls']
  const readers = [
    { group: groups.fetch, names: laneTopics(topics), keptMs: retentionMs },
    { group: groups.delay, names: delayTopics(topics), keptMs: Math.min(retentionMs, DELAYED_KEPT_MS) },
  ]
  for (const { group, names, keptMs } of readers) {
    const lags = await admin.lag(group, names)
    for (const topic of names) {
      signal?.throwIfAborted()
      const old = await admin.offsetsForTime(topic, clock.now() - keptMs)
      const deletable = new Map<number, bigint>()
      for (const { topic: of, partition, committed, low } of lags) {
        if (of !== topic || committed === undefined) continue
        const end = leastOf(old.get(partition) ?? low, committed)
        if (end > low) deletable.set(partition, end)
      }
      if (deletable.size > 0) await admin.deleteRecordsBefore(topic, deletable)
    }
  }
}

/**
 * Whether retention may have deleted tasks of a crawl, so that nothing is left of them on the topics. The lanes tell: what leaves a delay
 * topic is in one of them again. `startedAgoMs`: when the crawl began, if it is known; what is younger than the retention is not deleted.
 */
export async function mayHaveDeleted(
  { admin, config, topics }: Pick<Runtime, 'admin' | 'config' | 'topics'>,
  startedAgoMs: number | undefined,
): Promise<boolean> {
  if (startedAgoMs !== undefined && startedAgoMs < config['topics.retention.urls']) return false
  const firsts = await Promise.all(laneTopics(topics).map((topic) => admin.earliestOffsets(topic)))
  return firsts.some((offsets) => [...offsets.values()].some((first) => first > 0n))
}
