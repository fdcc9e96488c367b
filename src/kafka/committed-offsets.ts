import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { Cluster } from './cluster.ts'
import { byTopic } from './cluster-session.ts'
import { EARLIEST, LATEST, listOffsets, offsetAt } from './offsets.ts'

/** What a group has committed for one partition. */
export interface CommittedOffset {
  /** Next offset to read; undefined where nothing is committed. */
  readonly offset: bigint | undefined
  readonly metadata: string
}

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

/**
 * Committed offsets of partitions, as they are after any transaction of theirs has ended.
 * Shape: one entry per partition given; a negative offset (some clients store -2 and -1) counts as none.
 * Errors: what kafkajs throws; KAFKA_REQUEST_FAILED where a broker leaves a partition out, since whoever took that for nothing committed
 * would begin again.
 */
export async function fetchCommitted(
  cluster: Cluster,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<Map<PartitionId, CommittedOffset>> {
  const found = new Map<PartitionId, CommittedOffset>()
  if (partitions.length === 0) return found
  const broker = await cluster.findGroupCoordinator({ groupId })
  const { responses } = await broker.offsetFetch({ groupId, topics: byTopic(partitions, ({ partition }) => ({ partition })) })
  for (const { topic, partitions: answered } of responses) {
    for (const { partition, offset, metadata } of answered) {
      const committed = BigInt(offset)
      found.set(
        partitionId(topic, partition),
        committed < 0n ? { offset: undefined, metadata: '' } : { offset: committed, metadata: metadata ?? '' },
      )
    }
  }
  for (const asked of partitions) committedAt(found, asked)
  return found
}

/** What is committed for one partition. Errors: KAFKA_REQUEST_FAILED where it was left out. */
export function committedAt<Found>(committed: ReadonlyMap<PartitionId, Found>, { topic, partition }: TopicPartition): Found {
  const found = committed.get(partitionId(topic, partition))
  if (found !== undefined) return found
  throw new MillraceError('KAFKA_REQUEST_FAILED', `the brokers gave no committed offset of ${topic}/${partition}`, {
    context: { topic, partition },
  })
}
