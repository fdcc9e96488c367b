import type { Config } from '../../config/options.ts'
import { type TopicDefinition, topicDefinitions } from '../../kafka/topic-definitions.ts'
import { topicNames } from '../../message/topics.ts'

/** Partitions of urls where nothing is configured. */
const PARTITIONS = { embedded: 4, cluster: 12 } as const
/** Of html on the embedded broker, in total: a laptop's disk is not a cluster's. */
const EMBEDDED_HTML_BYTES = 10 * 1024 ** 3

/** All topics as the configuration wants them. */
export function wantedTopics(config: Config, isEmbedded: boolean, recordTopics: readonly string[]): TopicDefinition[] {
  const urls = config['topics.partitions.urls'] ?? (isEmbedded ? PARTITIONS.embedded : PARTITIONS.cluster)
  const optional = (name: 'html' | 'delay' | 'outcomes'): { [Name in typeof name]?: number } => {
    const count = config[`topics.partitions.${name}`]
    return count === undefined ? {} : { [name]: count }
  }
  return topicDefinitions({
    names: topicNames(config['topics.prefix']),
    replication: config['topics.replication'],
    partitions: {
      urls,
      records: config['topics.partitions.records'] ?? urls,
      deadLetters: config['topics.partitions.deadLetters'],
      ...optional('html'),
      ...optional('delay'),
      ...optional('outcomes'),
    },
    retention: {
      htmlMs: config['topics.retention.html'],
      ...(isEmbedded ? { htmlBytes: EMBEDDED_HTML_BYTES } : {}),
      recordsMs: config['topics.retention.records'],
      outcomesMs: config['topics.retention.outcomes'],
      deadLettersMs: config['topics.retention.deadLetters'],
    },
    maxBodyBytes: config['fetch.maxBodyBytes'],
    maxMessageBytes: config['topics.maxMessageBytes'],
    compactRecords: config['topics.recordsCleanup'] === 'compact,delete',
    extraRecordTopics: recordTopics,
  })
}
