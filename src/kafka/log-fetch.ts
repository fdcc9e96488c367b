import type { EachBatchPayload } from 'kafkajs'
import { greatestOf } from '../kernel/bigint.ts'
import { partitionId, type TopicPartition } from '../kernel/brand.ts'
import type { Cluster, ClusterBroker, TopicsOf } from './cluster.ts'
import { byLeader, byTopic } from './cluster-session.ts'
import { incomingMessage } from './incoming.ts'
import type { KafkaMessage } from './message.ts'
import { type Isolation, isolationLevel } from './offsets.ts'
import { withoutAborted } from './patches/aborted-messages.ts'

/** A record as kafkajs decodes it from a fetch. */
export type FetchedRecord = EachBatchPayload['batch']['messages'][number] & {
  readonly isControlRecord: boolean
  readonly batchContext: {
    readonly firstOffset: string
    readonly lastOffsetDelta: number
    readonly producerId: string
    readonly inTransaction: boolean
  }
}

interface FetchedPartition {
  readonly partition: number
  readonly highWatermark: string
  readonly lastStableOffset: string
  readonly abortedTransactions: readonly { readonly producerId: string; readonly firstOffset: string }[] | null
  readonly messages: readonly FetchedRecord[]
}

/** The request of kafkajs's broker that reads. Throws OFFSET_OUT_OF_RANGE with `topic` and `partition`. */
interface FetchingBroker extends ClusterBroker {
  fetch(request: {
    replicaId: number
    isolationLevel: 0 | 1
    maxWaitTime: number
    minBytes: number
    maxBytes: number
    topics: readonly TopicsOf<{ partition: number; fetchOffset: string; maxBytes: number }>[]
  }): Promise<{ readonly responses: readonly { readonly topicName: string; readonly partitions: readonly FetchedPartition[] }[] }>
}

export interface FetchPosition extends TopicPartition {
  readonly position: bigint
}

export interface FetchLimits {
  readonly isolation: Isolation
  /** How long the broker may wait for something to come. */
  readonly maxWaitMs: number
  /** Of an answer; a batch larger than this comes whole. */
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
}

/** What one fetch gave for a partition. */
export interface FetchedLog extends TopicPartition {
  /** Where the fetch began. */
  readonly from: bigint
  /** Next offset to fetch: behind everything that was looked at, markers and aborted messages included. */
  readonly next: bigint
  /** How far this isolation can read. */
  readonly end: bigint
  /** All that came, markers, aborted messages and what lies before `from` in its batch included. */
  readonly records: readonly FetchedRecord[]
  /** In order, those of aborted transactions left out. Converted when asked, since a copy of each value is made. */
  readonly messages: () => KafkaMessage[]
}

/**
 * One fetch from each leader. Shape: an entry for every partition that answered, empty ones included.
 * Errors: what kafkajs throws; OFFSET_OUT_OF_RANGE names its partition.
 */
export async function fetchLog(cluster: Cluster, positions: readonly FetchPosition[], limits: FetchLimits): Promise<FetchedLog[]> {
  const leaders = await byLeader(cluster, positions)
  const answers = await Promise.all(
    leaders.map(async ({ broker, partitions }) => {
      const { responses } = await (broker as FetchingBroker).fetch({
        replicaId: -1,
        isolationLevel: isolationLevel(limits.isolation),
        maxWaitTime: limits.maxWaitMs,
        minBytes: 1,
        maxBytes: limits.maxBytes,
        topics: byTopic(partitions, ({ partition, position }) => ({
          partition,
          fetchOffset: String(position),
          maxBytes: limits.maxBytesPerPartition,
        })),
      })
      return responses
    }),
  )
  const asked = new Map(positions.map((position) => [partitionId(position.topic, position.partition), position]))
  return answers.flat().flatMap(({ topicName, partitions }) =>
    partitions.flatMap((fetched) => {
      const position = asked.get(partitionId(topicName, fetched.partition))
      return position === undefined ? [] : [toFetchedLog(position, fetched, limits.isolation)]
    }),
  )
}

function toFetchedLog(at: FetchPosition, fetched: FetchedPartition, isolation: Isolation): FetchedLog {
  const { topic, partition, position } = at
  const records = fetched.messages
  return {
    topic,
    partition,
    from: position,
    next: nextOffset(records, position),
    end: BigInt(isolation === 'read_committed' ? fetched.lastStableOffset : fetched.highWatermark),
    records,
    messages: () => visible(fetched, position, isolation).map((record) => incomingMessage(topic, partition, record)),
  }
}

/** Batches are read whole, and the last one may end in offsets that compaction has removed: the batch says where it ends. */
function nextOffset(records: readonly FetchedRecord[], position: bigint): bigint {
  const last = records.at(-1)
  if (last === undefined) return position
  return greatestOf(BigInt(last.batchContext.firstOffset) + BigInt(last.batchContext.lastOffsetDelta) + 1n, position)
}

function visible(fetched: FetchedPartition, position: bigint, isolation: Isolation): FetchedRecord[] {
  const { messages, abortedTransactions } = fetched
  // The first batch may begin before the position; its earlier records are needed to see where transactions begin.
  const kept = isolation === 'read_committed' ? withoutAborted({ messages, abortedTransactions }) : messages
  return (kept as readonly FetchedRecord[]).filter(({ offset, isControlRecord }) => !isControlRecord && BigInt(offset) >= position)
}
