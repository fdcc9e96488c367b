import type { ConsumerConfig } from 'kafkajs'
import { METADATA_MAX_AGE_MS } from './client.ts'
import { AWAY_BUDGET_MS } from './consumer-failure.ts'

/** How a member of a group behaves. Every value has a default. */
export interface ConsumerSettings {
  /** Without a heartbeat for this long the group counts the member as dead. */
  readonly sessionTimeoutMs?: number
  /** How long the others wait for a member to join again. */
  readonly rebalanceTimeoutMs?: number
  /** At most a third of the session timeout; a rebalance is noticed at a heartbeat. */
  readonly heartbeatIntervalMs?: number
  /** How long a fetch waits for something to come; also the longest time until a resumed partition is read. */
  readonly maxWaitMs?: number
  /** Of one partition in one fetch, compressed; a larger message still comes, alone. */
  readonly maxBytesPerPartition?: number
  /** Of one fetch from one broker, compressed. */
  readonly maxBytesPerFetch?: number
  /** How old the view of topics may be; new partitions are noticed by then. */
  readonly metadataMaxAgeMs?: number
  /** `committed` sees no record of an open or aborted transaction. */
  readonly isolation?: 'committed' | 'uncommitted'
  /** How long the brokers may be away before the member gives up. */
  readonly awayBudgetMs?: number
}

export const DEFAULT_CONSUMER_SETTINGS: Required<ConsumerSettings> = {
  sessionTimeoutMs: 30_000,
  rebalanceTimeoutMs: 60_000,
  heartbeatIntervalMs: 2_000,
  maxWaitMs: 250,
  maxBytesPerPartition: 65_536,
  maxBytesPerFetch: 4_194_304,
  metadataMaxAgeMs: METADATA_MAX_AGE_MS,
  isolation: 'committed',
  awayBudgetMs: AWAY_BUDGET_MS,
}

/** Batches handled at once; our handler only takes them over, so this bounds nothing but kafkajs's own queue. */
export const PARTITIONS_AT_ONCE = 8

export function kafkajsConsumerConfig(groupId: string, settings: Required<ConsumerSettings>): ConsumerConfig {
  return {
    groupId,
    sessionTimeout: settings.sessionTimeoutMs,
    rebalanceTimeout: settings.rebalanceTimeoutMs,
    heartbeatInterval: settings.heartbeatIntervalMs,
    maxWaitTimeInMs: settings.maxWaitMs,
    minBytes: 1,
    maxBytesPerPartition: settings.maxBytesPerPartition,
    maxBytes: settings.maxBytesPerFetch,
    metadataMaxAge: settings.metadataMaxAgeMs,
    readUncommitted: settings.isolation === 'uncommitted',
    allowAutoTopicCreation: false,
    // A restart by kafkajs can not be stopped once it has begun, so we start a new consumer ourselves.
    retry: { initialRetryTime: 100, maxRetryTime: 5_000, retries: 8, restartOnFailure: async () => false },
  }
}
