import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { KafkaClient } from './client.ts'
import { clusterMetadata } from './cluster.ts'
import { ClusterSession } from './cluster-session.ts'
import type { CommittedOffset } from './committed-offsets.ts'
import { fenceTransaction } from './fence-transaction.ts'
import { GroupAdmin, type GroupDescription, type OffsetToCommit } from './group-admin.ts'
import { type Isolation, type LogBounds, LogOffsets, type Which } from './offsets.ts'
import { type NewTopic, type OfflinePartitions, TopicAdmin, type TopicDescription } from './topic-admin.ts'
import type { TopicDefinition } from './topic-definitions.ts'
import type { TopicPlan } from './topic-plan.ts'

/** How far a group is behind in one partition. */
export interface PartitionLag extends TopicPartition {
  /** Next offset the group reads; undefined where it has committed nothing. */
  readonly committed: bigint | undefined
  readonly metadata: string
  /** First offset that is still there. */
  readonly low: bigint
  /** High watermark: messages of open transactions are counted. */
  readonly end: bigint
  /** end - committed; from the first offset where nothing is committed, or where what was has been deleted. Never negative. */
  readonly lag: bigint
}

/**
 * Everything that administers a Kafka, over one connection that opens when first used.
 * Errors of all calls: KAFKA_UNREACHABLE within 15 s, KAFKA_TOPIC_MISSING, KAFKA_DENIED, KAFKA_REQUEST_FAILED, and what each call names.
 */
export class KafkaAdmin {
  /** Shared with what else in this folder talks to brokers directly. */
  readonly session: ClusterSession
  readonly #topics: TopicAdmin
  readonly #offsets: LogOffsets
  readonly #groups: GroupAdmin

  constructor(client: KafkaClient, clock: Clock) {
    this.session = new ClusterSession({ client, clock })
    this.#topics = new TopicAdmin(this.session, clock)
    this.#offsets = new LogOffsets(this.session)
    this.#groups = new GroupAdmin(this.session, client, clock)
  }

  close(): Promise<void> {
    return this.session.close()
  }

  /** Id of the cluster; empty where the broker gives none. */
  async clusterId(): Promise<string> {
    const { clusterId } = await this.session.run('reading the id of the cluster', clusterMetadata)
    return clusterId ?? ''
  }

  /** Configs of a broker in force. */
  brokerConfigs(): Promise<Record<string, string>> {
    return this.#topics.brokerConfigs()
  }

  listTopics(): Promise<string[]> {
    return this.#topics.list()
  }

  describeTopics(topics?: readonly string[]): Promise<TopicDescription[]> {
    return this.#topics.describe(topics)
  }

  offlinePartitions(topics: readonly string[]): Promise<OfflinePartitions[]> {
    return this.#topics.offline(topics)
  }

  createTopics(topics: readonly NewTopic[]): Promise<string[]> {
    return this.#topics.create(topics)
  }

  addPartitions(topic: string, count: number): Promise<void> {
    return this.#topics.addPartitions(topic, count)
  }

  deleteTopic(topic: string): Promise<boolean> {
    return this.#topics.delete(topic)
  }

  planTopics(wanted: readonly TopicDefinition[]): Promise<TopicPlan> {
    return this.#topics.plan(wanted)
  }

  /** Errors: CONFIG_INVALID with the refusals of the plan, before anything is changed. */
  applyTopics(plan: TopicPlan): Promise<void> {
    return this.#topics.apply(plan)
  }

  partitions(topic: string): Promise<number[]> {
    return this.#offsets.partitions(topic)
  }

  earliestOffsets(topic: string, which: Which = 'all'): Promise<Map<number, bigint>> {
    return this.#offsets.earliest(topic, which)
  }

  endOffsets(topic: string, isolation: Isolation, which: Which = 'all'): Promise<Map<number, bigint>> {
    return this.#offsets.end(topic, isolation, which)
  }

  logBounds(at: TopicPartition): Promise<LogBounds> {
    return this.#offsets.bounds(at)
  }

  offsetsForTime(topic: string, epochMs: number): Promise<Map<number, bigint>> {
    return this.#offsets.forTime(topic, epochMs)
  }

  deleteRecordsBefore(topic: string, offsets: ReadonlyMap<number, bigint>): Promise<void> {
    return this.#offsets.deleteBefore(topic, offsets)
  }

  listGroups(): Promise<string[]> {
    return this.#groups.list()
  }

  describeGroup(groupId: string): Promise<GroupDescription> {
    return this.#groups.describe(groupId)
  }

  evictMember(groupId: string, memberId: string): Promise<boolean> {
    return this.#groups.evict(groupId, memberId)
  }

  /** Errors: KAFKA_GROUP_ACTIVE. */
  deleteGroup(groupId: string): Promise<boolean> {
    return this.#groups.delete(groupId)
  }

  /** `limitMs`: how long the end of a transaction is waited for that holds a newer offset; one second where not given. */
  committedOffsets(groupId: string, topics: readonly string[], limitMs?: number): Promise<Map<PartitionId, CommittedOffset>> {
    return this.#groups.committed(groupId, topics, limitMs)
  }

  /** Errors: KAFKA_GROUP_ACTIVE. */
  commitDirect(groupId: string, offsets: readonly OffsetToCommit[]): Promise<void> {
    return this.#groups.commitDirect(groupId, offsets)
  }

  /** Ends what is open under these transactional ids, and shuts out whoever used them. */
  async fenceTransactions(transactionalIds: readonly string[]): Promise<void> {
    for (const id of transactionalIds) await fenceTransaction(this.session, id)
  }

  /** Lag of a group in every partition of the topics; whoever only shows it may leave out those that are offline. */
  async lag(groupId: string, topics: readonly string[], which: Which = 'all'): Promise<PartitionLag[]> {
    // The commits first: a group that works meanwhile then shows too much rather than too little.
    return this.lagBehind(await this.committedOffsets(groupId, topics), topics, which)
  }

  /** The same for offsets that were read before, of several groups at one moment for example. */
  async lagBehind(
    committed: ReadonlyMap<PartitionId, CommittedOffset>,
    topics: readonly string[],
    which: Which = 'all',
  ): Promise<PartitionLag[]> {
    const perTopic = await Promise.all(
      topics.map(async (topic) => {
        const [low, end] = await Promise.all([this.earliestOffsets(topic, which), this.endOffsets(topic, 'read_uncommitted', which)])
        return [...end].map(([partition, offset]) =>
          partitionLag({ topic, partition }, committed.get(partitionId(topic, partition)), low.get(partition) ?? 0n, offset),
        )
      }),
    )
    return perTopic.flat()
  }
}

/** Pure: where the group goes on; what it committed may have been deleted meanwhile. */
export function nextToRead({ committed, low }: Pick<PartitionLag, 'committed' | 'low'>): bigint {
  return committed === undefined || committed < low ? low : committed
}

/** Pure: the lag of one partition from what was read about it. */
export function partitionLag(at: TopicPartition, committed: CommittedOffset | undefined, low: bigint, end: bigint): PartitionLag {
  const offset = committed?.offset
  const from = nextToRead({ committed: offset, low })
  return { ...at, committed: offset, metadata: committed?.metadata ?? '', low, end, lag: end > from ? end - from : 0n }
}
