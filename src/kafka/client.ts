import type { Kafka, KafkaConfig, LogEntry } from 'kafkajs'
import { MillraceError } from '../kernel/errors.ts'
import type { EventFields, Observer } from '../kernel/observe.ts'
import type { Cluster, ClusterOptions } from './cluster.ts'
import { registerCodecs } from './codecs.ts'
import type { KafkaConnection } from './connection.ts'
import { loadKafkajs } from './patches/load-kafkajs.ts'
import { OFFLINE_LINE } from './patches/offline-partition.ts'
import { verifyReachable } from './probe-brokers.ts'

/** How old the client's view of topics and leaders may be: this bounds how long a new partition is unknown to a running process. */
export const METADATA_MAX_AGE_MS = 30_000

/** Retries of one call inside kafkajs; what is worth trying longer is tried again by us. */
const RETRY = { initialRetryTime: 50, maxRetryTime: 2_000, retries: 8 } as const

/** A log line of kafkajs that somebody in src/kafka has to act on. */
export interface KafkajsLogLine {
  readonly namespace: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** One patched kafkajs client: the way to Kafka for everything in this folder. */
export interface KafkaClient {
  readonly connection: KafkaConnection
  readonly observer: Observer
  /** The loaded library, for its classes and constants. */
  readonly kafkajs: typeof import('kafkajs')
  /** For producers and admin clients. Only src/kafka may touch it. */
  readonly kafka: Kafka
  /**
   * A client for one consumer alone. kafkajs keeps the committed offsets of a group per client, so two members of one group on the
   * same client would overwrite each other's.
   */
  isolated(onLog?: (line: KafkajsLogLine) => void): Kafka
  /** Own connections for calls that the public client does not offer. Connected; the caller disconnects. */
  openCluster(options?: ClusterOptions): Promise<Cluster>
  /**
   * Resolves when a broker was reached, by its address in `brokers` and by one that the cluster gives out.
   * Errors: KAFKA_UNREACHABLE within `timeoutMs` (5 s where not given), naming every address tried and why it failed; ABORTED.
   */
  verifyReachable(options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<void>
}

/**
 * A client for one Kafka; connects to nothing yet.
 * Errors: KAFKA_VERSION when another version of kafkajs is installed.
 */
export function createKafkaClient(connection: KafkaConnection, observer: Observer): KafkaClient {
  const kafkajs = loadKafkajs()
  registerCodecs(kafkajs)
  const create = (onLog?: (line: KafkajsLogLine) => void, overrides: Partial<KafkaConfig> = {}): Kafka =>
    new kafkajs.Kafka({ ...kafkaConfig(kafkajs, connection, observer, onLog), ...overrides })
  const clusterOf = (options: ClusterOptions, overrides: Partial<KafkaConfig> = {}): Cluster => {
    const retry = { ...RETRY, ...(options.retries === undefined ? {} : { retries: options.retries }) }
    return createCluster(create(undefined, { ...overrides, retry }), options)
  }
  return {
    connection,
    observer,
    kafkajs,
    kafka: create(),
    isolated: (onLog) => create(onLog),
    openCluster: async (options = {}) => {
      const cluster = clusterOf(options)
      await cluster.connect()
      return cluster
    },
    verifyReachable: ({ timeoutMs = 5_000, signal } = {}) =>
      verifyReachable({
        connection,
        clusterAt: (address) => clusterOf({ retries: 0 }, { brokers: [address], connectionTimeout: timeoutMs, requestTimeout: timeoutMs }),
        timeoutMs,
        ...(signal === undefined ? {} : { signal }),
      }),
  }
}

/** The cluster class behind kafkajs's clients, built by its own factory, which hides behind a symbol. */
export function createCluster(kafka: Kafka, options: ClusterOptions = {}): Cluster {
  const symbol = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === 'private:Kafka:createCluster')
  const factory = symbol === undefined ? undefined : (kafka as unknown as Record<symbol, unknown>)[symbol]
  if (typeof factory !== 'function') {
    throw new MillraceError('KAFKA_VERSION', 'kafkajs has no createCluster factory: it is not the version that our code was written for')
  }
  return factory({
    metadataMaxAge: METADATA_MAX_AGE_MS,
    allowAutoTopicCreation: false,
    maxInFlightRequests: null,
    isolationLevel: options.isolationLevel ?? 0,
  }) as Cluster
}

function kafkaConfig(
  kafkajs: typeof import('kafkajs'),
  connection: KafkaConnection,
  observer: Observer,
  onLog: ((line: KafkajsLogLine) => void) | undefined,
): KafkaConfig {
  return {
    brokers: [...connection.brokers],
    clientId: connection.clientId,
    ...(connection.tls === undefined ? {} : { ssl: connection.tls.material }),
    ...(connection.sasl === undefined ? {} : { sasl: connection.sasl as NonNullable<KafkaConfig['sasl']> }),
    connectionTimeout: connection.connectionTimeoutMs ?? 5_000,
    authenticationTimeout: 10_000,
    requestTimeout: connection.requestTimeoutMs ?? 30_000,
    retry: RETRY,
    // At INFO every pause and resume of a partition is a line.
    logLevel: kafkajs.logLevel.WARN,
    logCreator: () => (entry) => report(entry, observer, onLog),
  }
}

/** kafkajs logs at ERROR what is daily life of a group: a heartbeat that learns of a rebalance. */
const NOISE = /rebalanc|not aware of this member|coordinator is not aware/i

function report(entry: LogEntry, observer: Observer, onLog: ((line: KafkajsLogLine) => void) | undefined): void {
  const { message, timestamp: _timestamp, logger: _logger, ...fields } = entry.log
  onLog?.({ namespace: entry.namespace, message, fields })
  const error = typeof fields.error === 'string' ? fields.error : undefined
  if (NOISE.test(message) || (error !== undefined && NOISE.test(error))) return
  if (message === OFFLINE_LINE) {
    const { topic, partition } = fields as { topic: string; partition: number }
    observer.emit('PartitionOffline', { topic, partition, place: `${topic}/${partition}` })
    return
  }
  const out: Record<string, EventFields[string]> = { namespace: entry.namespace, clientLevel: entry.label, text: message }
  for (const name of ['error', 'broker', 'groupId', 'memberId', 'topic', 'partition', 'retryCount', 'retryTime']) {
    const value = fields[name]
    if (typeof value === 'string' || typeof value === 'number') out[name] = value
  }
  observer.emit('KafkaClientLogged', out)
}
