import type { TopicPartition } from '../kernel/brand.ts'
import type { Cluster } from './cluster.ts'
import { committedAt, fetchCommitted } from './group-admin.ts'
import { EARLIEST, LATEST, listOffsets, offsetAt } from './offsets.ts'

/** Where a group stands in a partition, and where the log begins and ends. */
export interface GroupPosition extends TopicPartition {
  /** Next offset to read; undefined where nothing (or nothing usable) is committed. */
  readonly committed: bigint | undefined
  readonly metadata: string
  /** First offset that is still there. */
  readonly low: bigint
  /** High watermark, open transactions included. */
  readonly high: bigint
}

/**
 * Committed offsets with metadata, and the ends of the log, of some partitions of one group.
 * Errors: what kafkajs throws; one failing partition fails all.
 */
export async function readGroupPositions(
  cluster: Cluster,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<GroupPosition[]> {
  const [committed, low, high] = await Promise.all([
    fetchCommitted(cluster, groupId, partitions),
    listOffsets(cluster, partitions, EARLIEST, 'read_uncommitted'),
    listOffsets(cluster, partitions, LATEST, 'read_uncommitted'),
  ])
  return partitions.map(({ topic, partition }) => {
    const at = { topic, partition }
    const { offset, metadata } = committedAt(committed, at)
    return { ...at, committed: offset, metadata, low: offsetAt(low, at), high: offsetAt(high, at) }
  })
}
