/**
 * The part of kafkajs's inner cluster and broker classes that we call, typed by us. They take and give wire values: offsets are
 * decimal strings, and the first error of any partition in an answer is thrown as a KafkaJSProtocolError with a `type`.
 */
export interface Cluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  refreshMetadata(): Promise<void>
  refreshMetadataIfNecessary(): Promise<void>
  /** Topics whose metadata this cluster keeps; refreshes when one is new. Rejects with UNKNOWN_TOPIC_OR_PARTITION. */
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>
  /** Null where no broker answers: `clusterMetadata` throws then. */
  metadata(options?: { topics?: readonly string[] }): Promise<ClusterMetadata | null>
  /** Of the target topics; empty where the topic is unknown. */
  findTopicPartitionMetadata(topic: string): readonly PartitionMetadata[]
  /**
   * Node id to partitions. Throws KafkaJSMetadataNotLoaded for a partition that the metadata does not know, LEADER_NOT_AVAILABLE for one
   * without a leader.
   */
  findLeaderForPartitions(topic: string, partitions: readonly number[]): Record<string, number[]>
  findBroker(node: { nodeId: string | number }): Promise<ClusterBroker>
  /** `coordinatorType` 0 is a group, 1 a transactional id (given as groupId). */
  findGroupCoordinator(options: { groupId: string; coordinatorType?: 0 | 1 }): Promise<ClusterBroker>
  getNodeIds(): string[]
}

export interface ClusterOptions {
  /** Of ListOffsets: 0 sees the high watermark, 1 the last stable offset. 0 where not given. */
  readonly isolationLevel?: 0 | 1
  /** Of one call inside kafkajs; its usual number where not given. */
  readonly retries?: number
}

/** What the brokers know of topics and of each other. Errors: those of kafkajs, and one of a connection where no broker answers. */
export async function clusterMetadata(cluster: Pick<Cluster, 'metadata'>): Promise<ClusterMetadata> {
  const metadata = await cluster.metadata()
  // The client tries all brokers, drops what went wrong, and has nothing to give then.
  if (metadata === null) throw Object.assign(new Error('no broker has answered'), { name: 'KafkaJSConnectionError' })
  return metadata
}

export interface ClusterMetadata {
  readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[]
  readonly clusterId: string | null
  readonly controllerId: number
  readonly topicMetadata: readonly { readonly topic: string; readonly partitionMetadata: readonly PartitionMetadata[] }[]
}

export interface PartitionMetadata {
  readonly partitionId: number
  /** Below 0: none. */
  readonly leader: number
  readonly replicas: readonly number[]
  readonly isr: readonly number[]
}

export interface TopicsOf<P> {
  readonly topic: string
  readonly partitions: readonly P[]
}

export interface ClusterBroker {
  readonly nodeId: number
  isConnected(): boolean
  connect(): Promise<void>
  disconnect(): Promise<void>
  /** `offset` is '-1' where nothing is committed. */
  offsetFetch(request: { groupId: string; topics?: readonly TopicsOf<{ partition: number }>[] }): Promise<{
    readonly responses: readonly TopicsOf<{
      readonly partition: number
      readonly offset: string
      readonly metadata: string | null
      readonly errorCode: number
    }>[]
  }>
  /** Generation -1 and member '' commit for a group without members; the broker refuses that on an active group. */
  offsetCommit(request: {
    groupId: string
    groupGenerationId: number
    memberId: string
    topics: readonly TopicsOf<{ partition: number; offset: string; metadata?: string | null }>[]
  }): Promise<unknown>
  /** `timestamp` '-2' is the first offset, '-1' the end; otherwise epoch ms. */
  listOffsets(request: {
    replicaId?: number
    isolationLevel: 0 | 1
    topics: readonly TopicsOf<{ partition: number; timestamp: string | number }>[]
  }): Promise<{
    readonly responses: readonly TopicsOf<{
      readonly partition: number
      readonly offset: string
      readonly timestamp: string
      readonly errorCode: number
    }>[]
  }>
}
