import type { ControlLog } from '../../kafka/control-log.ts'
import type { TopicDescription } from '../../kafka/topic-admin.ts'
import { shadowTopicOf } from '../../message/topics.ts'
import { announcedTopics } from '../extractors/announced-versions.ts'
import { shadowTopics } from '../replay/replay-ledger.ts'
import { readLayout } from '../runtime/layout-command.ts'
import type { Runtime } from '../runtime/runtime.ts'

export interface DescribedTopic extends TopicDescription {
  /**
   * From the first one that is still there to the end: messages, and what Kafka keeps beside them (ends of transactions, places of what was
   * compacted away).
   */
  readonly offsets: bigint
  /** Name of the shadow replay whose records these are. */
  readonly replayId?: string
}

/**
 * The topics of this prefix that are there, with what they hold: ours, those that extractors name, those of shadow replays. What `control`
 * alone knows of is left out where that is offline.
 */
export async function describeTopics(runtime: Runtime): Promise<DescribedTopic[]> {
  const existing = new Set(await runtime.admin.listTopics())
  const wanted = runtime.wantedTopics().map(({ topic }) => topic)
  const isControlUp = (await runtime.admin.offlinePartitions([runtime.topics.control])).length === 0
  const control = existing.has(runtime.topics.control) && isControlUp ? await runtime.control() : undefined
  // Together they have the topics of all extractors that ever were applied or run here, whatever files are at hand.
  const told = control === undefined ? [] : [...Object.keys(readLayout(control)?.partitions ?? {}), ...announcedTopics(control)]
  const ofExtractors = [...new Set(told)].filter((topic) => !wanted.includes(topic))
  const own = [...wanted, ...ofExtractors.sort()].filter((topic) => existing.has(topic))
  const shadows = shadowTopicsAmong(runtime, existing, control)
  const named = [...shadows.keys()].filter((topic) => !own.includes(topic)).sort()
  const described = await runtime.admin.describeTopics([...own, ...named])
  return Promise.all(
    described.map(async (topic) => {
      const [low, end] = await Promise.all([
        runtime.admin.earliestOffsets(topic.topic, 'led'),
        runtime.admin.endOffsets(topic.topic, 'read_uncommitted', 'led'),
      ])
      const offsets = [...end].reduce((sum, [partition, offset]) => sum + offset - (low.get(partition) ?? 0n), 0n)
      const replayId = named.includes(topic.topic) ? shadows.get(topic.topic) : undefined
      return { ...topic, offsets, ...(replayId === undefined ? {} : { replayId }) }
    }),
  )
}

/** Topics of shadows that are there: by their name, and by what `control` says of others. */
function shadowTopicsAmong(
  runtime: Pick<Runtime, 'topics'>,
  existing: ReadonlySet<string>,
  control: ControlLog | undefined,
): ReadonlyMap<string, string> {
  const prefix = shadowTopicOf(runtime.topics, '')
  const byName = [...existing].flatMap((topic) => (topic.startsWith(prefix) ? [[topic, topic.slice(prefix.length)] as const] : []))
  const told = control === undefined ? [] : [...shadowTopics(control)]
  return new Map([...byName, ...told.filter(([topic]) => existing.has(topic))])
}
