import type { Clock } from '../kernel/clock.ts'
import { isMillraceError, MillraceError } from '../kernel/errors.ts'
import { type AdminBroker, adminBroker, CONFIG_BROKER, CONFIG_TOPIC, SOURCE_TOPIC } from './admin-broker.ts'
import { type Cluster, clusterMetadata, type PartitionMetadata } from './cluster.ts'
import type { ClusterSession } from './cluster-session.ts'
import { kafkajsFailure } from './failure.ts'
import { EARLIEST, listOffsets } from './offsets.ts'
import type { TopicDefinition } from './topic-definitions.ts'
import { type ExistingTopic, type TopicChange, type TopicPlan, topicPlan } from './topic-plan.ts'

export interface OfflinePartitions {
  readonly topic: string
  /** Partitions that nobody can read or write just now, ascending. */
  readonly offline: readonly number[]
}

/** A topic as the broker has it. */
export interface TopicDescription extends ExistingTopic, OfflinePartitions {
  /** What is set on the topic itself; the rest of `configs` are defaults. */
  readonly ownConfigs: Readonly<Record<string, string>>
}

/** A topic to create. */
export type NewTopic = Pick<TopicDefinition, 'topic' | 'partitions' | 'replication' | 'configs'>

/** Of one administrative request, as the broker counts it. */
const REQUEST_TIMEOUT_MS = 10_000
/** How long new topics and partitions may take until every broker knows them. */
const SETTLE_TIMEOUT_MS = 10_000

/** Topics of one cluster: what there is, what should be, and the way from one to the other. */
export class TopicAdmin {
  readonly #session: ClusterSession
  readonly #clock: Clock

  constructor(session: ClusterSession, clock: Clock) {
    this.#session = session
    this.#clock = clock
  }

  /** Names of all topics, sorted; the broker's own ones included. */
  async list(): Promise<string[]> {
    const { topicMetadata } = await this.#session.run('listing topics', clusterMetadata)
    return topicMetadata.map(({ topic }) => topic).sort()
  }

  /**
   * Partitions without a leader, by metadata alone: it takes no right to configs. Shape: in the order given; a topic that has none, or does
   * not exist, is left out.
   */
  async offline(topics: readonly string[]): Promise<OfflinePartitions[]> {
    const { topicMetadata } = await this.#session.run('looking for offline partitions', clusterMetadata)
    const known = new Map(topicMetadata.map(({ topic, partitionMetadata }) => [topic, offlineIn(partitionMetadata)]))
    return topics.map((topic) => ({ topic, offline: known.get(topic) ?? [] })).filter(({ offline }) => offline.length > 0)
  }

  /** Topics with partitions and configs. Shape: in the order given; one that does not exist is left out. All where none is given. */
  async describe(topics?: readonly string[]): Promise<TopicDescription[]> {
    return this.#session.run('describing topics', async (cluster) => {
      const { topicMetadata } = await clusterMetadata(cluster)
      const known = new Map(topicMetadata.map((metadata) => [metadata.topic, metadata.partitionMetadata]))
      const names = (topics ?? [...known.keys()].sort()).filter((topic) => known.has(topic))
      const configs = await describeConfigs(cluster, CONFIG_TOPIC, names)
      return names.map((topic) => {
        const partitions = known.get(topic) ?? []
        return {
          topic,
          partitions: partitions.length,
          replication: Math.max(0, ...partitions.map(({ replicas }) => replicas.length)),
          configs: configs.get(topic)?.inForce ?? {},
          ownConfigs: configs.get(topic)?.own ?? {},
          offline: offlineIn(partitions),
        }
      })
    })
  }

  /** Creates topics and waits until they can be used. Shape: names of those that were created; the others existed. */
  async create(topics: readonly NewTopic[]): Promise<string[]> {
    const existed = await this.#session.run(`creating topics ${names(topics)}`, async (cluster) => {
      const broker = await adminBroker(cluster)
      try {
        await broker.createTopics({ topics: topics.map(toRequest), timeout: REQUEST_TIMEOUT_MS })
        return new Set<string>()
      } catch (error) {
        return alreadyExisting(error)
      }
    })
    await this.#settled(topics.map(({ topic, partitions }) => ({ topic, partitions: existed.has(topic) ? 1 : partitions })))
    return topics.map(({ topic }) => topic).filter((topic) => !existed.has(topic))
  }

  /** Raises the number of partitions and waits until all are known. Nothing happens where there are as many already. */
  async addPartitions(topic: string, count: number): Promise<void> {
    await this.#session.run(`adding partitions to topic ${topic}`, async (cluster) => {
      const broker = await adminBroker(cluster)
      try {
        await broker.createPartitions({ topicPartitions: [{ topic, count }], timeout: REQUEST_TIMEOUT_MS })
      } catch (error) {
        // A repeat of a request that did its work and whose answer was lost.
        if (kafkajsFailure(error).type === 'INVALID_PARTITIONS' && (await partitionCount(cluster, topic)) === count) return
        throw error
      }
    })
    await this.#settled([{ topic, partitions: count }])
  }

  /**
   * Sets configs of a topic and keeps its others. The request replaces all of them, so they are read first: a change that somebody
   * else makes between the two is lost.
   */
  async setConfigs(topic: string, configs: Readonly<Record<string, string>>): Promise<void> {
    await this.#session.run(`setting configs of topic ${topic}`, async (cluster) => {
      const found = (await describeConfigs(cluster, CONFIG_TOPIC, [topic])).get(topic)
      const configEntries = Object.entries({ ...found?.own, ...configs }).map(([name, value]) => ({ name, value }))
      const broker = await adminBroker(cluster)
      await broker.alterConfigs({ resources: [{ type: CONFIG_TOPIC, name: topic, configEntries }], validateOnly: false })
    })
  }

  /** Deletes a topic with all its messages. Shape: false when there was none. */
  async delete(topic: string): Promise<boolean> {
    return this.#session.run(`deleting topic ${topic}`, async (cluster) => {
      const broker = await adminBroker(cluster)
      try {
        await broker.deleteTopics({ topics: [topic], timeout: REQUEST_TIMEOUT_MS })
        return true
      } catch (error) {
        if (kafkajsFailure(error).type === 'UNKNOWN_TOPIC_OR_PARTITION') return false
        throw error
      }
    })
  }

  /** What would have to change. Changes nothing. */
  async plan(wanted: readonly TopicDefinition[]): Promise<TopicPlan> {
    const { brokers } = await this.#session.run('looking how many brokers there are', clusterMetadata)
    return topicPlan(wanted, await this.describe(wanted.map(({ topic }) => topic)), brokers.length)
  }

  /**
   * Carries a plan out; a second time does nothing new. Errors: CONFIG_INVALID with every refusal of the plan, before anything is
   * changed.
   */
  async apply(plan: TopicPlan): Promise<void> {
    if (plan.refusals.length > 0) throw new MillraceError('CONFIG_INVALID', plan.refusals.map(({ message }) => message).join('\n'))
    const created = plan.changes.filter((change) => change.kind === 'create')
    if (created.length > 0) await this.create(created)
    for (const change of plan.changes) if (change.kind === 'add-partitions') await this.addPartitions(change.topic, change.to)
    for (const [topic, configs] of configsByTopic(plan.changes)) await this.setConfigs(topic, configs)
  }

  /** Configs of a broker in force, by name. */
  async brokerConfigs(): Promise<Record<string, string>> {
    return this.#session.run('reading the configs of the broker', async (cluster) => {
      const { nodeId } = await adminBroker(cluster)
      return (await describeConfigs(cluster, CONFIG_BROKER, [String(nodeId)])).get(String(nodeId))?.inForce ?? {}
    })
  }

  /** Creation returns before the brokers know of it: a producer that comes at once would not find the topic. */
  async #settled(topics: readonly { topic: string; partitions: number }[]): Promise<void> {
    const deadline = this.#clock.mono() + SETTLE_TIMEOUT_MS
    for (;;) {
      const { topicMetadata } = await this.#session.run('waiting for new partitions', clusterMetadata)
      const led = new Map(topicMetadata.map((entry) => [entry.topic, entry.partitionMetadata.filter(({ leader }) => leader >= 0).length]))
      const waiting = topics.filter(({ topic, partitions }) => (led.get(topic) ?? 0) < partitions)
      if (waiting.length === 0) return this.#answering(topics, deadline)
      if (this.#clock.mono() > deadline) {
        throw new MillraceError(
          'KAFKA_REQUEST_FAILED',
          `partitions of ${names(waiting)} have no leader after ${SETTLE_TIMEOUT_MS} ms: enough brokers must be up for the replication`,
        )
      }
      await this.#clock.sleep(20)
    }
  }

  /**
   * A broker learns that it leads a partition some time after the metadata says so. Of messages for several partitions that are sent in
   * between it takes some and refuses others, and the client then sends all of them again: those that were taken would be there twice.
   */
  async #answering(topics: readonly { topic: string; partitions: number }[], deadline: number): Promise<void> {
    const all = topics.flatMap(({ topic, partitions }) => Array.from({ length: partitions }, (_, partition) => ({ topic, partition })))
    for (;;) {
      try {
        await this.#session.run('waiting for the logs of new partitions', (cluster) =>
          listOffsets(cluster, all, EARLIEST, 'read_uncommitted'),
        )
        return
      } catch (error) {
        if (!isMillraceError(error, 'KAFKA_TOPIC_MISSING') || this.#clock.mono() > deadline) throw error
      }
      await this.#clock.sleep(20)
    }
  }
}

function offlineIn(partitions: readonly PartitionMetadata[]): number[] {
  return partitions.flatMap(({ partitionId, leader }) => (leader < 0 ? [partitionId] : [])).sort((a, b) => a - b)
}

interface Configs {
  readonly inForce: Record<string, string>
  readonly own: Record<string, string>
}

async function describeConfigs(cluster: Cluster, type: number, resources: readonly string[]): Promise<Map<string, Configs>> {
  if (resources.length === 0) return new Map()
  const broker: AdminBroker = await adminBroker(cluster)
  const answer = await broker.describeConfigs({ resources: resources.map((name) => ({ type, name })), includeSynonyms: false })
  return new Map(
    answer.resources.map(({ resourceName, configEntries }) => {
      const found: Configs = { inForce: {}, own: {} }
      for (const { configName, configValue, configSource } of configEntries) {
        // Secrets are answered with null.
        if (configValue === null) continue
        found.inForce[configName] = configValue
        if (configSource === SOURCE_TOPIC) found.own[configName] = configValue
      }
      return [resourceName, found]
    }),
  )
}

async function partitionCount(cluster: Cluster, topic: string): Promise<number | undefined> {
  const { topicMetadata } = await clusterMetadata(cluster)
  return topicMetadata.find((entry) => entry.topic === topic)?.partitionMetadata.length
}

function toRequest({ topic, partitions, replication, configs }: NewTopic) {
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
  return { topic, numPartitions: partitions, replicationFactor: replication, configEntries }
}

/** The topics that exist already, where that is all that went wrong; throws otherwise. */
function alreadyExisting(error: unknown): Set<string> {
  const errors = (error as { errors?: unknown }).errors
  if (!Array.isArray(errors)) throw error
  const failures = errors as readonly { readonly type?: string; readonly topic?: string }[]
  const other = failures.find(({ type }) => type !== 'TOPIC_ALREADY_EXISTS')
  if (other !== undefined) throw other
  return new Set(failures.map(({ topic }) => topic ?? ''))
}

function configsByTopic(changes: readonly TopicChange[]): Map<string, Record<string, string>> {
  const topics = new Map<string, Record<string, string>>()
  for (const change of changes) {
    if (change.kind === 'set-config') topics.set(change.topic, { ...topics.get(change.topic), [change.name]: change.to })
  }
  return topics
}

function names(topics: readonly { readonly topic: string }[]): string {
  return topics.map(({ topic }) => topic).join(', ')
}
