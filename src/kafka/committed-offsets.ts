import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import type { Cluster } from './cluster.ts'
import { fetchCommitted } from './group-admin.ts'
import { EARLIEST, LATEST, listOffsets } from './offsets.ts'

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
    offsetsById(cluster, partitions, EARLIEST),
    offsetsById(cluster, partitions, LATEST),
  ])
  return partitions.map(({ topic, partition }) => {
    const id = partitionId(topic, partition)
    const { offset, metadata } = committed.get(id) ?? { offset: undefined, metadata: '' }
    return { topic, partition, committed: offset, metadata, low: low.get(id) ?? 0n, high: high.get(id) ?? 0n }
  })
}

async function offsetsById(cluster: Cluster, partitions: readonly TopicPartition[], timestamp: string): Promise<Map<PartitionId, bigint>> {
  const found = await listOffsets(cluster, partitions, timestamp, 'read_uncommitted')
  return new Map(found.map(({ topic, partition, offset }) => [partitionId(topic, partition), offset]))
}
