import { LANES } from '../message/topics.ts'
import type { Runtime } from './runtime.ts'

/**
 * One round: deletes finished tasks that are older than `topics.retention.urls` from the lanes and the delay topics. Kafka would delete
 * open ones as well, so these topics have no retention of their own. Shape: nothing at or above the committed offset of its reader, and
 * nothing younger than the retention, is touched. Errors: the signal's reason; those of the broker.
 */
export async function deleteFinished(runtime: Runtime, signal?: AbortSignal): Promise<void> {
  const { admin, clock, config, groups, topics } = runtime
  const before = clock.now() - config['topics.retention.urls']
  const readers = [
    { group: groups.fetch, names: LANES.map((lane) => topics.urls[lane]) },
    { group: groups.delay, names: topics.delays.map(({ topic }) => topic) },
  ]
  for (const { group, names } of readers) {
    const lags = await admin.lag(group, names)
    for (const topic of names) {
      signal?.throwIfAborted()
      const old = await admin.offsetsForTime(topic, before)
      const deletable = new Map<number, bigint>()
      for (const { topic: of, partition, committed, low } of lags) {
        if (of !== topic || committed === undefined) continue
        const young = old.get(partition) ?? low
        const end = young < committed ? young : committed
        if (end > low) deletable.set(partition, end)
      }
      if (deletable.size > 0) await admin.deleteRecordsBefore(topic, deletable)
    }
  }
}

/**
 * Whether retention may have deleted tasks of a crawl, so that nothing is left of them on the topics. `startedAgoMs`: when that began, if it is
 * known; what is younger than the retention is not deleted.
 */
export async function mayHaveDeleted(
  { admin, config, topics }: Pick<Runtime, 'admin' | 'config' | 'topics'>,
  startedAgoMs: number | undefined,
): Promise<boolean> {
  if (startedAgoMs !== undefined && startedAgoMs < config['topics.retention.urls']) return false
  const names = [...LANES.map((lane) => topics.urls[lane]), ...topics.delays.map(({ topic }) => topic)]
  const firsts = await Promise.all(names.map((topic) => admin.earliestOffsets(topic)))
  return firsts.some((offsets) => [...offsets.values()].some((first) => first > 0n))
}
