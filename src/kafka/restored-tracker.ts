import { retried } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import type { AssignedPartition } from './assignment.ts'
import type { ClusterSession } from './cluster-session.ts'
import { type GroupPosition, readGroupPositions } from './committed-offsets.ts'
import { LogEndLooks } from './log-end-looks.ts'
import { decodeOffsetMap, EMPTY_OFFSET_MAP, mapFrom } from './offset-map.ts'
import { OffsetTracker, type TrackerLimits } from './offset-tracker.ts'

const RETRY = { firstMs: 200, maxMs: 5_000 } as const

interface Restore {
  readonly session: ClusterSession
  readonly groupId: string
  /** Partitions to restore; asked before each try, since some may have gone meanwhile. */
  readonly wanted: () => readonly AssignedPartition[]
  /** By topic; the defaults where not given. */
  readonly limits?: (topic: string) => Partial<TrackerLimits>
  readonly observer: Observer
  readonly clock: Clock
  readonly signal: AbortSignal
}

/**
 * Trackers of partitions as the group left them. Tries until it succeeds, nothing is wanted any more, or the signal. An offset outside of
 * the log, once its end is known for sure, goes to the log's beginning: what was cut off can not be read, and a repeat costs less than a
 * loss. Where retention has overtaken it, what is completed behind that stays so.
 */
export async function restoreTrackers(restore: Restore): Promise<readonly { assigned: AssignedPartition; tracker: OffsetTracker }[]> {
  const { session, groupId, clock, observer, signal } = restore
  const endLooks = new LogEndLooks()
  const step = async (): Promise<readonly { assigned: AssignedPartition; tracker: OffsetTracker }[]> => {
    const wanted = restore.wanted()
    if (wanted.length === 0) return []
    const positions = await session.run('reading committed offsets', (cluster) => readGroupPositions(cluster, groupId, wanted), { signal })
    const behind = positions.find(({ committed, high }) => committed !== undefined && committed > high)
    if (behind?.committed !== undefined) endLooks.check(behind.committed, behind.high)
    return wanted.flatMap((assigned, index) => {
      const position = positions[index]
      return position === undefined ? [] : [{ assigned, tracker: restoreTracker(position, restore) }]
    })
  }
  const again = (error: unknown): boolean => {
    signal.throwIfAborted()
    observer.emit('KafkaClientLogged', { text: 'reading committed offsets failed', groupId, error: errorText(error) })
    return true
  }
  return retried(step, { policy: RETRY, again, clock, signal })
}

function restoreTracker(position: GroupPosition, { groupId: group, observer, limits }: Restore): OffsetTracker {
  const { topic, partition, committed, metadata, low, high } = position
  const options = limits === undefined ? {} : { limits: limits(topic) }
  if (committed === undefined) return new OffsetTracker(low, EMPTY_OFFSET_MAP, options)
  const isOvertaken = committed < low
  if (isOvertaken || committed > high) {
    const reason = isOvertaken ? 'below-log-start' : 'beyond-log-end'
    observer.emit('OffsetOutOfRange', { group, topic, partition, reason, committed, low, high })
    if (!isOvertaken) return new OffsetTracker(low, EMPTY_OFFSET_MAP, options)
  }
  const start = isOvertaken ? low : committed
  const decoded = decodeOffsetMap(metadata, committed, high)
  if (decoded.kind === 'map') {
    const map = mapFrom(decoded.map, Number(start - committed))
    return new OffsetTracker(start, map, { ...options, stored: !isOvertaken })
  }
  observer.emit('OffsetMapDropped', { group, topic, partition, reason: decoded.reason })
  return new OffsetTracker(start, EMPTY_OFFSET_MAP, options)
}
