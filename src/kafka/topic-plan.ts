import { countText, isAre } from '../kernel/count-text.ts'
import type { TopicDefinition } from './topic-definitions.ts'

/** One topic as it is. `configs` holds the values in force, wherever they come from. */
export interface ExistingTopic {
  readonly topic: string
  readonly partitions: number
  readonly replication: number
  readonly configs: Readonly<Record<string, string>>
}

export type TopicChange =
  | {
      readonly kind: 'create'
      readonly topic: string
      readonly partitions: number
      readonly replication: number
      readonly configs: Readonly<Record<string, string>>
    }
  | { readonly kind: 'add-partitions'; readonly topic: string; readonly from: number; readonly to: number }
  | { readonly kind: 'set-config'; readonly topic: string; readonly name: string; readonly from: string | undefined; readonly to: string }
  /** The topic has its partitions, and the members have not been told: another tool has made them. Nothing for the broker. */
  | { readonly kind: 'set-layout'; readonly topic: string; readonly from: number | undefined; readonly to: number }

/** What can't be reached. `message` is for people: what was found, what was wanted, what to do. */
export interface TopicRefusal {
  readonly kind: 'fewer-partitions' | 'lanes-unequal' | 'too-few-brokers'
  readonly topic: string
  readonly message: string
}

/** A difference that is told and left alone: it needs a reassignment, which is the operator's decision. */
export interface TopicNote {
  readonly kind: 'replication-differs'
  readonly topic: string
  readonly message: string
}

export interface TopicPlan {
  readonly changes: readonly TopicChange[]
  readonly refusals: readonly TopicRefusal[]
  readonly notes: readonly TopicNote[]
}

/**
 * Difference between the topics as wanted and as they are. Pure and idempotent: applied once, the next plan has no changes.
 * Shape: changes in the order of `wanted`; configs that `wanted` does not name are never touched. With any refusal nothing should
 * be applied. `brokers`: how many there are. Errors: none.
 */
export function topicPlan(wanted: readonly TopicDefinition[], existing: readonly ExistingTopic[], brokers: number): TopicPlan {
  const found = new Map(existing.map((topic) => [topic.topic, topic]))
  const changes: TopicChange[] = []
  const refusals: TopicRefusal[] = []
  const notes: TopicNote[] = []
  for (const definition of wanted) {
    const present = found.get(definition.topic)
    if (present === undefined) {
      const { topic, partitions, replication, configs } = definition
      changes.push({ kind: 'create', topic, partitions, replication, configs })
      if (replication > brokers && refusals.every(({ kind }) => kind !== 'too-few-brokers'))
        refusals.push(tooFewBrokers(definition, brokers))
      continue
    }
    changes.push(...differences(definition, present))
    if (present.partitions > definition.partitions) refusals.push(fewerPartitions(definition, present))
    if (present.replication !== definition.replication) notes.push(replicationDiffers(definition, present, brokers))
  }
  const unequal = unequalLanes(wanted, found)
  if (unequal !== undefined) refusals.push(unequal)
  return { changes, refusals, notes }
}

/** Time and size bounds of messages, where a lower value takes some away, or takes fewer. -1 is no bound. */
const BOUNDS = new Set(['retention.ms', 'retention.bytes', 'max.message.bytes'])

/**
 * Messages that are there, or that somebody still writes, may be lost by it: a shorter retention, a lower limit, another clean-up. Pure.
 */
export function takesAway(change: TopicChange): boolean {
  if (change.kind !== 'set-config' || change.from === undefined) return false
  if (change.name === 'cleanup.policy') return true
  const bound = (text: string): number => (text === '-1' ? Number.POSITIVE_INFINITY : Number(text))
  return BOUNDS.has(change.name) && bound(change.to) < bound(change.from)
}

function differences(definition: TopicDefinition, present: ExistingTopic): TopicChange[] {
  const changes: TopicChange[] = []
  const topic = definition.topic
  if (present.partitions < definition.partitions) {
    changes.push({ kind: 'add-partitions', topic, from: present.partitions, to: definition.partitions })
  }
  for (const [name, to] of Object.entries(definition.configs)) {
    // Of too few replicas that many are never in sync: every write would be refused until somebody has moved them.
    if (name === 'min.insync.replicas' && present.replication < definition.replication) continue
    const from = present.configs[name]
    if (!sameValue(from, to)) changes.push({ kind: 'set-config', topic, name, from, to })
  }
  return changes
}

/** Lists have no order on the broker, and it may write them back in its own. */
function sameValue(from: string | undefined, to: string): boolean {
  if (from === to) return true
  if (from === undefined) return false
  return from.split(',').sort().join() === to.split(',').sort().join()
}

function fewerPartitions(definition: TopicDefinition, present: ExistingTopic): TopicRefusal {
  return {
    kind: 'fewer-partitions',
    topic: definition.topic,
    message:
      `topic ${definition.topic} has ${countText(present.partitions, 'partition')} and ${definition.partitions} ${isAre(definition.partitions)} wanted: ` +
      'Kafka can not take partitions away. Set `topics.partitions` to at least what is there, or use another `topics.prefix`.',
  }
}

function tooFewBrokers({ topic, replication }: TopicDefinition, brokers: number): TopicRefusal {
  const there = `there ${isAre(brokers)} ${countText(brokers, 'broker')}`
  const message = `topic ${topic} wants ${replication} replicas and ${there}. Set \`topics.replication\` to ${brokers} at most, or start more brokers.`
  return { kind: 'too-few-brokers', topic, message }
}

function replicationDiffers(definition: TopicDefinition, present: ExistingTopic, brokers: number): TopicNote {
  const tooFew = definition.replication > brokers ? ` There ${isAre(brokers)} ${countText(brokers, 'broker')}.` : ''
  return {
    kind: 'replication-differs',
    topic: definition.topic,
    message:
      `topic ${definition.topic} has replication ${present.replication} and ${definition.replication} is wanted: ` +
      `it is left as it is. Move its replicas with kafka-reassign-partitions.${tooFew}`,
  }
}

/** The lanes as they would be after the changes: a fetch worker owns the same number in all of them. */
function unequalLanes(wanted: readonly TopicDefinition[], found: ReadonlyMap<string, ExistingTopic>): TopicRefusal | undefined {
  const lanes = wanted.filter(({ coPartitioned }) => coPartitioned === 'lanes')
  const counts = lanes.map(({ topic, partitions }) => Math.max(partitions, found.get(topic)?.partitions ?? 0))
  const first = lanes[0]
  if (first === undefined || new Set(counts).size === 1) return undefined
  const list = lanes.map(({ topic }, index) => `${topic} ${counts[index]}`).join(', ')
  return {
    kind: 'lanes-unequal',
    topic: first.topic,
    message: `the lanes must have the same number of partitions and would have: ${list}. Set \`topics.partitions.urls\` to ${Math.max(...counts)}.`,
  }
}
