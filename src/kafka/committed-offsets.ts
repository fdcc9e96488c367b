import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import type { Cluster, TopicsOf } from './cluster.ts'

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

/** The first offset of the log, and its end, as ListOffsets calls them. */
const EARLIEST = '-2'
const LATEST = '-1'

/**
 * Committed offsets with metadata, and the ends of the log, of some partitions of one group.
 * Errors: what kafkajs throws; one failing partition fails all.
 */
export async function readGroupPositions(
  cluster: Cluster,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<GroupPosition[]> {
  if (partitions.length === 0) return []
  const topics = groupByTopic(partitions)
  await cluster.addMultipleTargetTopics(topics.map(({ topic }) => topic))
  await cluster.refreshMetadataIfNecessary()
  const [committed, low, high] = await Promise.all([
    fetchCommitted(cluster, groupId, topics),
    listOffsets(cluster, topics, EARLIEST),
    listOffsets(cluster, topics, LATEST),
  ])
  return partitions.map(({ topic, partition }) => {
    const id = partitionId(topic, partition)
    const stored = committed.get(id)
    // kafkajs leaves a literal -2 or -1 behind when it recovers from an offset out of range.
    const usable = stored !== undefined && stored.offset >= 0n
    return {
      topic,
      partition,
      committed: usable ? stored.offset : undefined,
      metadata: usable ? stored.metadata : '',
      low: low.get(id) ?? 0n,
      high: high.get(id) ?? 0n,
    }
  })
}

function groupByTopic(partitions: readonly TopicPartition[]): TopicsOf<{ partition: number }>[] {
  const byTopic = new Map<string, { partition: number }[]>()
  for (const { topic, partition } of partitions) byTopic.set(topic, [...(byTopic.get(topic) ?? []), { partition }])
  return [...byTopic].map(([topic, numbers]) => ({ topic, partitions: numbers }))
}

async function fetchCommitted(
  cluster: Cluster,
  groupId: string,
  topics: readonly TopicsOf<{ partition: number }>[],
): Promise<Map<PartitionId, { offset: bigint; metadata: string }>> {
  const coordinator = await cluster.findGroupCoordinator({ groupId })
  const { responses } = await coordinator.offsetFetch({ groupId, topics })
  const found = new Map<PartitionId, { offset: bigint; metadata: string }>()
  for (const { topic, partitions } of responses) {
    for (const { partition, offset, metadata } of partitions) {
      found.set(partitionId(topic, partition), { offset: BigInt(offset), metadata: metadata ?? '' })
    }
  }
  return found
}

async function listOffsets(
  cluster: Cluster,
  topics: readonly TopicsOf<{ partition: number }>[],
  timestamp: string,
): Promise<Map<PartitionId, bigint>> {
  const byNode = new Map<string, TopicsOf<{ partition: number; timestamp: string }>[]>()
  for (const { topic, partitions } of topics) {
    const leaders = cluster.findLeaderForPartitions(
      topic,
      partitions.map(({ partition }) => partition),
    )
    for (const [nodeId, numbers] of Object.entries(leaders)) {
      const wanted = { topic, partitions: numbers.map((partition) => ({ partition, timestamp })) }
      byNode.set(nodeId, [...(byNode.get(nodeId) ?? []), wanted])
    }
  }
  const found = new Map<PartitionId, bigint>()
  await Promise.all(
    [...byNode].map(async ([nodeId, wanted]) => {
      const broker = await cluster.findBroker({ nodeId })
      const { responses } = await broker.listOffsets({ isolationLevel: 0, topics: wanted })
      for (const { topic, partitions } of responses) {
        for (const { partition, offset } of partitions) found.set(partitionId(topic, partition), BigInt(offset))
      }
    }),
  )
  return found
}
