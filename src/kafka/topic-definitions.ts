import type { TopicNames } from '../message/topics.ts'

/** One topic as it should be. `configs` holds what we decide; whatever else is set on the broker is left alone. */
export interface TopicDefinition {
  readonly topic: string
  readonly partitions: number
  readonly replication: number
  readonly configs: Readonly<Record<string, string>>
  /** Topics of one group must have the same number of partitions; undefined: it stands alone. */
  readonly coPartitioned?: 'lanes'
}

export interface TopicSettings {
  readonly names: TopicNames
  readonly replication: number
  /** Where not given: delay, outcomes and html take the number of urls, dead-letters 6, control is always 1. */
  readonly partitions: {
    readonly urls: number
    readonly records: number
    readonly html?: number
    readonly delay?: number
    readonly outcomes?: number
    readonly deadLetters?: number
  }
  readonly retention: {
    /** The replay horizon. */
    readonly htmlMs: number
    /** Upper bound for html over all partitions; undefined: time alone decides. */
    readonly htmlBytes?: number
    readonly recordsMs?: number
    readonly outcomesMs?: number
    readonly deadLettersMs?: number
  }
  /** `fetch.maxBodyBytes`. */
  readonly maxBodyBytes: number
  /** `topics.maxMessageBytes`. */
  readonly maxMessageBytes: number
  /** Keeps the newest record of each key beyond the retention. */
  readonly compactRecords?: boolean
  /** Topics that extractors name for their records. */
  readonly extraRecordTopics?: readonly string[]
}

const DAY_MS = 86_400_000
const MIB = 1_048_576
/** What a broker allows where nothing is set; written out so that the limit we check is the one in force. */
export const DEFAULT_MAX_BATCH_BYTES = 1_048_588
const DELAY_SEGMENT_BYTES = 64 * MIB
const LARGEST_SEGMENT_BYTES = 1_024 * MIB
const SMALLEST_SEGMENT_BYTES = 16 * MIB

/**
 * All topics of one prefix as they should be. Shape: lanes first, one entry per topic, no topic twice. Units: retention in ms,
 * sizes in bytes. Errors: none; `topicPlan` says what can't be reached.
 */
export function topicDefinitions(settings: TopicSettings): TopicDefinition[] {
  const { names, partitions, retention } = settings
  const define = (topic: string, count: number, configs: Record<string, string>): TopicDefinition => ({
    topic,
    partitions: count,
    replication: settings.replication,
    configs: { ...common(settings.replication), ...configs },
  })
  const large = String(largeMessageBytes(settings))
  const records = (topic: string): TopicDefinition =>
    define(topic, partitions.records, {
      'cleanup.policy': settings.compactRecords === true ? 'compact,delete' : 'delete',
      'retention.ms': String(retention.recordsMs ?? 30 * DAY_MS),
      'max.message.bytes': String(DEFAULT_MAX_BATCH_BYTES),
    })

  return [
    ...[names.urls.high, names.urls.normal, names.urls.low].map((topic) => ({
      ...define(topic, partitions.urls, { ...queue(), 'max.message.bytes': String(DEFAULT_MAX_BATCH_BYTES) }),
      coPartitioned: 'lanes' as const,
    })),
    ...names.delays.map(({ topic }) =>
      define(topic, partitions.delay ?? partitions.urls, {
        ...queue(),
        'max.message.bytes': String(DEFAULT_MAX_BATCH_BYTES),
        // The delay counts from when the broker wrote the message: clocks of workers differ.
        'message.timestamp.type': 'LogAppendTime',
        // Disk comes back by whole segments, and these topics turn over quickly.
        'segment.bytes': String(DELAY_SEGMENT_BYTES),
      }),
    ),
    define(names.html, partitions.html ?? partitions.urls, htmlConfigs(settings, large)),
    records(names.records),
    ...(settings.extraRecordTopics ?? []).filter((topic) => topic !== names.records).map(records),
    define(names.outcomes, partitions.outcomes ?? partitions.urls, {
      'cleanup.policy': 'delete',
      'retention.ms': String(retention.outcomesMs ?? 30 * DAY_MS),
      'max.message.bytes': String(DEFAULT_MAX_BATCH_BYTES),
    }),
    define(names.deadLetters, partitions.deadLetters ?? 6, {
      'cleanup.policy': 'delete',
      'retention.ms': String(retention.deadLettersMs ?? 30 * DAY_MS),
      'max.message.bytes': large,
    }),
    // Read from its beginning by every worker: never cut, never compacted, one partition, so that it has one order.
    define(names.control, 1, {
      'cleanup.policy': 'delete',
      'retention.ms': '-1',
      'retention.bytes': '-1',
      'max.message.bytes': String(DEFAULT_MAX_BATCH_BYTES),
    }),
  ]
}

/** Largest batch of html and dead-letters: a whole body with its envelope, unless the operator allows less. Units: bytes. */
export function largeMessageBytes(settings: Pick<TopicSettings, 'maxBodyBytes' | 'maxMessageBytes'>): number {
  return Math.min(settings.maxBodyBytes + MIB, settings.maxMessageBytes)
}

/**
 * Largest batch per topic, as the durable producer asks for it. Shape: a topic that is not defined has the broker's default.
 * Units: bytes.
 */
export function batchLimits(definitions: readonly TopicDefinition[]): (topic: string) => number {
  const limits = new Map(definitions.map(({ topic, configs }) => [topic, Number(configs['max.message.bytes'])]))
  return (topic) => limits.get(topic) ?? DEFAULT_MAX_BATCH_BYTES
}

/** Topics whose batches we compress when writing, since the broker keeps them in that codec anyway. */
export function gzipTopics(definitions: readonly TopicDefinition[]): (topic: string) => 'gzip' | undefined {
  const topics = new Set(definitions.filter(({ configs }) => configs['compression.type'] === 'gzip').map(({ topic }) => topic))
  return (topic) => (topics.has(topic) ? 'gzip' : undefined)
}

function common(replication: number): Record<string, string> {
  return {
    // With three copies one may be away and writes still go to two.
    'min.insync.replicas': replication >= 3 ? '2' : '1',
    'unclean.leader.election.enable': 'false',
  }
}

/** Work that waits: kept until its reader deletes it, never compacted (two tasks of one domain are two tasks). */
function queue(): Record<string, string> {
  return {
    'cleanup.policy': 'delete',
    'retention.ms': '-1',
    'retention.bytes': '-1',
    // The broker repacks whatever a foreign producer sent, so no unknown codec reaches a reader.
    'compression.type': 'gzip',
  }
}

function htmlConfigs(settings: TopicSettings, maxBytes: string): Record<string, string> {
  const configs = {
    'cleanup.policy': 'delete',
    'retention.ms': String(settings.retention.htmlMs),
    'max.message.bytes': maxBytes,
    // Bodies are packed inside the message.
    'compression.type': 'uncompressed',
  }
  if (settings.retention.htmlBytes === undefined) return configs
  const perPartition = Math.max(1, Math.floor(settings.retention.htmlBytes / (settings.partitions.html ?? settings.partitions.urls)))
  // Whole segments are deleted and the active one never is, so a tenth keeps the overshoot small.
  const segment = Math.min(LARGEST_SEGMENT_BYTES, Math.max(SMALLEST_SEGMENT_BYTES, Math.floor(perPartition / 10)))
  return { ...configs, 'retention.bytes': String(perPartition), 'segment.bytes': String(segment) }
}
