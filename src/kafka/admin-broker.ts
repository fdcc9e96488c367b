import { type Cluster, type ClusterBroker, clusterMetadata, type TopicsOf } from './cluster.ts'

/** Requests of kafkajs's broker that administer. They throw the first error of an answer, with a `type`. */
export interface AdminBroker extends ClusterBroker {
  /** Throws an aggregate with one error (`topic`, `type`) for each topic that failed. */
  createTopics(request: {
    topics: readonly {
      topic: string
      numPartitions: number
      replicationFactor: number
      configEntries: readonly { name: string; value: string }[]
    }[]
    timeout: number
  }): Promise<unknown>
  createPartitions(request: { topicPartitions: readonly { topic: string; count: number }[]; timeout: number }): Promise<unknown>
  deleteTopics(request: { topics: readonly string[]; timeout: number }): Promise<unknown>
  describeConfigs(request: {
    resources: readonly { type: number; name: string }[]
    includeSynonyms: boolean
  }): Promise<{ readonly resources: readonly ConfigResource[] }>
  /** Replaces all configs of the resource by those given. */
  alterConfigs(request: {
    resources: readonly { type: number; name: string; configEntries: readonly { name: string; value: string }[] }[]
    validateOnly: boolean
  }): Promise<unknown>
  listGroups(): Promise<{ readonly groups: readonly { readonly groupId: string; readonly protocolType: string }[] }>
  describeGroups(request: { groupIds: readonly string[] }): Promise<{
    readonly groups: readonly {
      readonly groupId: string
      readonly state: string
      readonly members: readonly {
        readonly memberId: string
        readonly clientId: string
        readonly clientHost: string
        readonly memberAssignment: Buffer
      }[]
    }[]
  }>
  leaveGroup(request: { groupId: string; memberId: string }): Promise<unknown>
  /** Does not throw: each result has its own error. */
  deleteGroups(groupIds: readonly string[]): Promise<{
    readonly results: readonly { readonly groupId: string; readonly error?: { readonly type: string } }[]
  }>
  deleteRecords(request: { topics: readonly TopicsOf<{ partition: number; offset: string }>[] }): Promise<unknown>
  initProducerId(request: {
    transactionalId: string
    transactionTimeout: number
  }): Promise<{ readonly producerId: string; readonly producerEpoch: number }>
}

export interface ConfigResource {
  readonly resourceName: string
  readonly configEntries: readonly {
    readonly configName: string
    readonly configValue: string | null
    readonly configSource: number
    readonly readOnly: boolean
  }[]
}

/** Kinds of resources that have configs. Source: Kafka protocol, DescribeConfigs. */
export const CONFIG_TOPIC = 2
export const CONFIG_BROKER = 4
/** Source of a config that is set on the topic itself. */
export const SOURCE_TOPIC = 1

/** A broker that takes requests for the controller: in KRaft every one passes them on. */
export async function adminBroker(cluster: Cluster): Promise<AdminBroker> {
  const { controllerId } = await clusterMetadata(cluster)
  await cluster.refreshMetadataIfNecessary()
  return (await cluster.findBroker({ nodeId: controllerId })) as AdminBroker
}

/** The broker that keeps a group. */
export async function groupBroker(cluster: Cluster, groupId: string): Promise<AdminBroker> {
  return (await cluster.findGroupCoordinator({ groupId })) as AdminBroker
}
