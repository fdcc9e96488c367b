import { backoffMs } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { grouped } from '../kernel/grouped.ts'
import type { KafkaClient } from './client.ts'
import type { Cluster, ClusterBroker } from './cluster.ts'
import { denied, isDenial, kafkajsFailure } from './failure.ts'
import { REACH_TIMEOUT_MS, reach } from './reach.ts'
import { SharedConnection } from './shared-connection.ts'

export interface ClusterSessionOptions {
  readonly client: KafkaClient
  readonly clock: Clock
  /** How long one call is repeated before it fails. 12 s where not given. */
  readonly timeoutMs?: number
  readonly random?: () => number
}

/** The first may be that of another caller, which was asked too early. */
const MOST_REFRESHES = 3
const BACKOFF = { firstMs: 50, maxMs: 1_000 } as const

/** Answers of a broker that another broker, or the same one a moment later, gives better. */
const TRANSIENT = new Set([
  'NOT_LEADER_FOR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'REPLICA_NOT_AVAILABLE',
  'PREFERRED_LEADER_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
  'OFFSET_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR_FOR_GROUP',
  'NOT_CONTROLLER',
  'NETWORK_EXCEPTION',
  'REQUEST_TIMED_OUT',
  'KAFKA_STORAGE_ERROR',
  'UNSTABLE_OFFSET_COMMIT',
  // An open transaction of this id is being aborted.
  'CONCURRENT_TRANSACTIONS',
])
const UNKNOWN_TOPIC = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'UNKNOWN_TOPIC_ID'])

/** How a failed call goes on. */
type Verdict = 'again' | 'reconnect' | 'topic-missing' | 'denied' | 'final'

/**
 * Calls to the brokers behind the public client: opened when first used, repeated through lost connections and moved leaders, with
 * the errors of our catalogue. One session serves any number of calls at once.
 */
export class ClusterSession {
  readonly #options: ClusterSessionOptions
  readonly #connection: SharedConnection<Cluster>

  constructor(options: ClusterSessionOptions) {
    this.#options = options
    const discard = (cluster: Cluster): Promise<void> => cluster.disconnect()
    this.#connection = new SharedConnection(
      options.clock,
      () => reach(options.client, options.clock, () => options.client.openCluster(), { discard, timeoutMs: this.#timeoutMs }),
      discard,
    )
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? REACH_TIMEOUT_MS
  }

  /**
   * Runs a call until it succeeds or the time is up. `what` says in an error what was tried. The call must be safe to repeat.
   * Errors: KAFKA_UNREACHABLE, KAFKA_TOPIC_MISSING, KAFKA_DENIED, KAFKA_REQUEST_FAILED, ABORTED, and MillraceErrors of the call as they
   * are.
   */
  async run<T>(what: string, call: (cluster: Cluster) => Promise<T>, options: { signal?: AbortSignal | undefined } = {}): Promise<T> {
    const { clock } = this.#options
    const deadline = clock.mono() + this.#timeoutMs
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#connection.use(call)
      } catch (error) {
        if (options.signal?.aborted) throw new MillraceError('ABORTED', `${what} was stopped`, { cause: options.signal.reason })
        if (error instanceof MillraceError) throw error
        const verdict = judge(error)
        // Metadata of a deleted topic, or of one that may not be seen, would fail every later refresh of this connection, so it is
        // replaced as well.
        if (verdict !== 'again' && verdict !== 'final') this.#connection.renew()
        const waitMs = backoffMs(BACKOFF, attempt, (this.#options.random ?? Math.random)())
        const hopeless = verdict === 'final' || verdict === 'topic-missing' || verdict === 'denied'
        if (hopeless || clock.mono() + waitMs > deadline) throw this.#failure(what, verdict, error)
        await this.#pause(what, waitMs, options.signal)
        if (verdict === 'again') await this.#refresh()
      }
    }
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  async #pause(what: string, ms: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#options.clock.sleep(ms, signal)
    } catch (error) {
      throw new MillraceError('ABORTED', `${what} was stopped`, { cause: error })
    }
  }

  async #refresh(): Promise<void> {
    try {
      await this.#connection.use((cluster) => cluster.refreshMetadata())
    } catch {
      // The next try says what is wrong, and a connection without metadata is no use.
      this.#connection.renew()
    }
  }

  #failure(what: string, verdict: Verdict, error: unknown): MillraceError {
    const { type, message } = kafkajsFailure(error)
    const { connection } = this.#options.client
    const brokers = connection.brokers.join(', ')
    const denial = denied(connection, what, error)
    if (denial !== undefined) return denial
    if (verdict === 'topic-missing') {
      return new MillraceError(
        'KAFKA_TOPIC_MISSING',
        `${what} failed: the topic or partition does not exist. Run \`millrace topics apply\`.`,
        {
          cause: error,
          context: { brokers },
        },
      )
    }
    if (verdict === 'reconnect') {
      return new MillraceError('KAFKA_UNREACHABLE', `${what} failed: ${message} (tried ${brokers} for ${this.#timeoutMs} ms)`, {
        cause: error,
        context: { brokers },
      })
    }
    return new MillraceError('KAFKA_REQUEST_FAILED', `${what} failed: ${type === undefined ? message : `${type}: ${message}`}`, {
      cause: error,
      context: { type, brokers },
    })
  }
}

function judge(error: unknown): Verdict {
  const { type, name } = kafkajsFailure(error)
  if (type !== undefined && isDenial(type)) return 'denied'
  if (type !== undefined) return TRANSIENT.has(type) ? 'again' : UNKNOWN_TOPIC.has(type) ? 'topic-missing' : 'final'
  // The patched client: the metadata does not know this partition.
  if (name === 'KafkaJSMetadataNotLoaded') return 'topic-missing'
  if (name === 'KafkaJSSASLAuthenticationError' || name === 'KafkaJSServerDoesNotSupportApiKey' || name === 'KafkaJSNotImplemented')
    return 'final'
  // Connections in all their forms: closed, refused, timed out, a broker that left, and the plain errors that kafkajs throws when one
  // goes away in the middle of a call.
  return 'reconnect'
}

/**
 * Partitions of topics, from fresh enough metadata. Shape: one entry per topic, at least one number each, ascending.
 * Errors: rejects with UNKNOWN_TOPIC_OR_PARTITION, which a session turns into KAFKA_TOPIC_MISSING.
 */
export async function partitionsOf(cluster: Cluster, topics: readonly string[]): Promise<Map<string, number[]>> {
  await learn(cluster, topics)
  return new Map(
    topics.map((topic) => [
      topic,
      cluster
        .findTopicPartitionMetadata(topic)
        .map(({ partitionId }) => partitionId)
        .sort((a, b) => a - b),
    ]),
  )
}

/**
 * Metadata of all of these topics. kafkajs lets a call join a refresh that is under way, and that one may have been asked before these
 * topics were wanted: a topic that exists would then seem to have no partition at all, and its log to end at 0. One that begins later has
 * them.
 */
async function learn(cluster: Cluster, topics: readonly string[]): Promise<void> {
  await cluster.addMultipleTargetTopics(topics)
  await cluster.refreshMetadataIfNecessary()
  const unknown = (): string[] => topics.filter((topic) => cluster.findTopicPartitionMetadata(topic).length === 0)
  for (let refreshes = 0; unknown().length > 0; refreshes += 1) {
    if (refreshes === MOST_REFRESHES) {
      const [topic] = unknown()
      throw new MillraceError('KAFKA_REQUEST_FAILED', `the brokers give no partition of topic ${topic}`, { context: { topic } })
    }
    await cluster.refreshMetadata()
  }
}

/** Those of the partitions that have a leader, as far as fresh enough metadata knows. */
export async function ledOf<P extends { readonly topic: string; readonly partition: number }>(
  cluster: Cluster,
  partitions: readonly P[],
): Promise<P[]> {
  await learn(cluster, [...new Set(partitions.map(({ topic }) => topic))])
  return partitions.filter(({ topic, partition }) =>
    cluster.findTopicPartitionMetadata(topic).every(({ partitionId, leader }) => partitionId !== partition || leader >= 0),
  )
}

/**
 * Partitions with the broker that leads them. Shape: every given partition exactly once. Errors: LEADER_NOT_AVAILABLE where one has none.
 */
export async function byLeader<P extends { readonly topic: string; readonly partition: number }>(
  cluster: Cluster,
  partitions: readonly P[],
): Promise<{ broker: ClusterBroker; partitions: P[] }[]> {
  await learn(cluster, [...new Set(partitions.map(({ topic }) => topic))])
  const byNode = new Map<string, P[]>()
  for (const entry of partitions) {
    for (const nodeId of Object.keys(cluster.findLeaderForPartitions(entry.topic, [entry.partition]))) {
      const group = byNode.get(nodeId) ?? []
      byNode.set(nodeId, group)
      group.push(entry)
    }
  }
  return Promise.all([...byNode].map(async ([nodeId, entries]) => ({ broker: await cluster.findBroker({ nodeId }), partitions: entries })))
}

/** Entries as the protocol lists them: topics with their partitions. */
export function byTopic<P extends { readonly topic: string; readonly partition: number }, Q>(
  entries: readonly P[],
  map: (entry: P) => Q,
): { topic: string; partitions: Q[] }[] {
  return [...grouped(entries, ({ topic }) => topic)].map(([topic, own]) => ({ topic, partitions: own.map(map) }))
}
