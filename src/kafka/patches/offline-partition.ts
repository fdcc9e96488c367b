import type { KafkajsModules } from './kafkajs-modules.ts'

interface PartitionMetadata {
  readonly partitionErrorCode: number
  readonly partitionId: number
  readonly leader: number
}
interface TopicMetadata {
  readonly topicErrorCode: number
  readonly topic: string
  readonly partitionMetadata: readonly PartitionMetadata[]
}
interface Metadata {
  readonly topicMetadata: readonly TopicMetadata[]
}
interface Broker {
  metadata(topics?: readonly string[]): Promise<Metadata>
}
interface BrokerPool {
  metadata: Metadata | null
  metadataExpireAt: number | null
  readonly metadataMaxAge: number
  readonly logger: { warn(message: string, fields: object): void }
  refreshMetadata(topics: readonly string[]): Promise<void>
}
interface Cluster {
  findTopicPartitionMetadata(topic: string): readonly PartitionMetadata[]
  findLeaderForPartitions(topic: string, partitions: readonly (number | string)[]): Record<string, number[]>
  fetchTopicsOffset(topics: readonly TopicPartitions[]): Promise<readonly TopicPartitions[]>
}
interface TopicPartitions {
  readonly topic: string
  readonly partitions: readonly { readonly partition: number }[]
}

/** How old metadata may be in which a wanted partition has no leader: mostly one is elected within a moment. */
const OFFLINE_MAX_AGE_MS = 1_000

/** Text of the log line that names an offline partition by `topic` and `partition`. */
export const OFFLINE_LINE = 'offline partition'

/**
 * An offline partition, as Kafka calls one without a leader, is in the way of those alone who need its leader: they get its error, which
 * passes, and the client looks again soon. Stock kafkajs fails the metadata as a whole for the first error in it, and so every call, since
 * that is of all topics of the cluster where none is named: no process could start beside a topic of somebody else whose only broker is
 * down. Errors of a topic that was named are thrown as they were. A line of the client's log names each such partition of the topics in
 * use, at each look but the first: an election takes a moment.
 */
export function patchOfflinePartition(modules: KafkajsModules): void {
  const { createErrorFromCode } = modules.load('protocol/error.js') as { createErrorFromCode: (code: number) => Error }
  // All later versions of the answer take this `parse`. It can't know what was asked for, so it lets errors through to the broker's call.
  const response = modules.load('protocol/requests/metadata/v0/response.js') as { decode: unknown }
  modules.replace('protocol/requests/metadata/v0/response.js', { decode: response.decode, parse: async (data: Metadata) => data })

  const broker = (modules.load('broker/index.js') as { prototype: Broker }).prototype
  const stockMetadata = broker.metadata
  broker.metadata = async function metadataOf(this: Broker, topics = []) {
    const answer = await stockMetadata.call(this, topics)
    const failed = answer.topicMetadata.find(({ topic, topicErrorCode }) => topicErrorCode !== 0 && topics.includes(topic))
    if (failed !== undefined) throw createErrorFromCode(failed.topicErrorCode)
    return { ...answer, topicMetadata: answer.topicMetadata.filter(({ topicErrorCode }) => topicErrorCode === 0) }
  }

  const pool = (modules.load('cluster/brokerPool.js') as { prototype: BrokerPool }).prototype
  const stockRefresh = pool.refreshMetadata
  const offlineBefore = new WeakMap<BrokerPool, ReadonlySet<string>>()
  pool.refreshMetadata = async function refreshSoonAgain(this: BrokerPool, topics) {
    await stockRefresh.call(this, topics)
    const wanted = this.metadata?.topicMetadata.filter(({ topic }) => topics.includes(topic)) ?? []
    const offline = wanted.flatMap(({ topic, partitionMetadata }) =>
      partitionMetadata.flatMap(({ partitionId, leader }) => (leader < 0 ? [{ topic, partition: partitionId }] : [])),
    )
    const before = offlineBefore.get(this)
    offlineBefore.set(this, new Set(offline.map(({ topic, partition }) => `${topic}/${partition}`)))
    for (const at of offline) if (before?.has(`${at.topic}/${at.partition}`)) this.logger.warn(OFFLINE_LINE, at)
    if (offline.length === 0 || this.metadataExpireAt === null) return
    this.metadataExpireAt -= Math.max(0, this.metadataMaxAge - OFFLINE_MAX_AGE_MS)
  }

  const cluster = (modules.load('cluster/index.js') as { prototype: Cluster }).prototype
  const stockLeaders = cluster.findLeaderForPartitions
  cluster.findLeaderForPartitions = function findLeadersThatThereAre(this: Cluster, topic, partitions) {
    const wanted = new Set(partitions.map(Number))
    const offline = this.findTopicPartitionMetadata(topic).find(({ partitionId, leader }) => wanted.has(partitionId) && leader < 0)
    if (offline === undefined) return stockLeaders.call(this, topic, partitions)
    const error = createErrorFromCode(offline.partitionErrorCode)
    error.message = `${topic}/${offline.partitionId}: ${error.message}`
    throw error
  }
  // Of a consumer, for partitions in which nothing is committed: it goes on with the others meanwhile, and asks again at each fetch.
  const stockOffsets = cluster.fetchTopicsOffset
  cluster.fetchTopicsOffset = async function fetchOffsetsOfLed(this: Cluster, topics) {
    const led = topics.map((entry) => {
      const leaders = new Map(this.findTopicPartitionMetadata(entry.topic).map(({ partitionId, leader }) => [partitionId, leader]))
      return { ...entry, partitions: entry.partitions.filter(({ partition }) => (leaders.get(partition) ?? 0) >= 0) }
    })
    const found = await stockOffsets.call(this, led)
    const without = topics.filter(({ topic }) => !found.some((entry) => entry.topic === topic))
    return [...found, ...without.map(({ topic }) => ({ topic, partitions: [] }))]
  }
}
