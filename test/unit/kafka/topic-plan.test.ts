import { describe, expect, it } from 'vitest'
import {
  batchLimits,
  gzipTopics,
  type TopicDefinition,
  type TopicSettings,
  topicDefinitions,
} from '../../../src/kafka/topic-definitions.ts'
import { type ExistingTopic, type TopicPlan, takesAway, topicPlan } from '../../../src/kafka/topic-plan.ts'
import { topicNames } from '../../../src/message/topics.ts'

const planTopics = (wanted: readonly TopicDefinition[], existing: readonly ExistingTopic[]): TopicPlan => topicPlan(wanted, existing, 3)

const names = topicNames('t.')
const settings: TopicSettings = {
  names,
  replication: 1,
  partitions: { urls: 4, records: 6 },
  retention: { htmlMs: 1_209_600_000 },
  maxBodyBytes: 8 * 1_048_576,
  maxMessageBytes: 10 * 1_048_576,
}
const wanted = topicDefinitions(settings)
const byName = new Map(wanted.map((definition) => [definition.topic, definition]))

/** What the broker would hold after the plan. */
function apply(plan: TopicPlan, existing: readonly ExistingTopic[]): ExistingTopic[] {
  const topics = new Map(existing.map((topic) => [topic.topic, { ...topic, configs: { ...topic.configs } as Record<string, string> }]))
  for (const change of plan.changes) {
    if (change.kind === 'create') topics.set(change.topic, { ...change, configs: { ...change.configs } })
    const topic = topics.get(change.topic)
    if (topic === undefined) throw new Error(`changes a topic that does not exist: ${change.topic}`)
    if (change.kind === 'add-partitions') topic.partitions = change.to
    if (change.kind === 'set-config') topic.configs[change.name] = change.to
  }
  return [...topics.values()]
}

describe('topic definitions', () => {
  it('gives delay, outcomes and html the number of urls, dead-letters 6 and control 1', () => {
    const count = (topic: string) => byName.get(topic)?.partitions
    expect([names.html, names.outcomes, ...names.delays.map(({ topic }) => topic)].map(count)).toEqual([4, 4, 4, 4, 4, 4])
    expect([count(names.deadLetters), count(names.control), count(names.records)]).toEqual([6, 1, 6])
  })

  it('keeps urls, delays and control for ever, uncompacted, and lets the broker repack urls', () => {
    for (const topic of [...Object.values(names.urls), ...names.delays.map((delay) => delay.topic), names.control]) {
      expect(byName.get(topic)?.configs).toMatchObject({ 'retention.ms': '-1', 'cleanup.policy': 'delete' })
    }
    const gzip = gzipTopics(wanted)
    expect([gzip(names.urls.normal), gzip('t.urls.delay.1h'), gzip(names.html), gzip(names.control)]).toEqual([
      'gzip',
      'gzip',
      undefined,
      undefined,
    ])
  })

  it('limits html and dead letters to a body with its envelope, or to what the operator allows if that is less', () => {
    expect(batchLimits(wanted)(names.html)).toBe(9 * 1_048_576)
    expect(batchLimits(topicDefinitions({ ...settings, maxMessageBytes: 2_000_000 }))(names.deadLetters)).toBe(2_000_000)
    expect(batchLimits(wanted)('foreign')).toBe(1_048_588)
  })

  it('splits a byte bound of html over its partitions and keeps segments small beside it', () => {
    const html = topicDefinitions({ ...settings, retention: { htmlMs: 1, htmlBytes: 10 * 1_073_741_824 } }).find(
      ({ topic }) => topic === names.html,
    )
    expect(html?.configs).toMatchObject({ 'retention.bytes': '2684354560', 'segment.bytes': '268435456' })
  })

  it('asks for two in-sync copies where there are three', () => {
    expect(topicDefinitions({ ...settings, replication: 3 })[0]?.configs['min.insync.replicas']).toBe('2')
    expect(wanted[0]?.configs['min.insync.replicas']).toBe('1')
  })

  it('names no topic twice, also when an extractor names the records topic itself', () => {
    const topics = topicDefinitions({ ...settings, extraRecordTopics: [names.records, 't.books'] }).map(({ topic }) => topic)
    expect(new Set(topics).size).toBe(topics.length)
    expect(topics).toContain('t.books')
  })
})

describe('topic plan', () => {
  it('creates what is missing, and is empty once applied', () => {
    const plan = planTopics(wanted, [])
    expect(plan.changes.map(({ kind }) => kind)).toEqual(wanted.map(() => 'create'))
    expect(planTopics(wanted, apply(plan, []))).toEqual({ changes: [], refusals: [], notes: [] })
  })

  it('adds partitions and sets only the configs that differ, leaving foreign ones alone', () => {
    const existing = apply(planTopics(wanted, []), []).map((topic) =>
      topic.topic === names.html
        ? { ...topic, partitions: 2, configs: { ...topic.configs, 'retention.ms': '5', 'follower.replication.throttled.replicas': 'x' } }
        : topic,
    )
    const plan = planTopics(wanted, existing)
    expect(plan.changes).toEqual([
      { kind: 'add-partitions', topic: names.html, from: 2, to: 4 },
      { kind: 'set-config', topic: names.html, name: 'retention.ms', from: '5', to: '1209600000' },
    ])
    expect(planTopics(wanted, apply(plan, existing)).changes).toEqual([])
  })

  it('refuses fewer partitions than there are', () => {
    const more = apply(planTopics(wanted, []), []).map((topic) => (topic.topic === names.records ? { ...topic, partitions: 9 } : topic))
    expect(planTopics(wanted, more).refusals).toMatchObject([{ kind: 'fewer-partitions', topic: names.records }])
  })

  it('refuses lanes that would stay unequal, and heals those that would not', () => {
    const lane = (topic: string, partitions: number): ExistingTopic => ({ topic, partitions, replication: 1, configs: {} })
    const unequal = planTopics(wanted, [lane(names.urls.high, 6), lane(names.urls.normal, 4)])
    expect(unequal.refusals.map(({ kind }) => kind)).toEqual(['fewer-partitions', 'lanes-unequal'])
    expect(unequal.refusals[1]?.message).toContain('`topics.partitions.urls` to 6')
    expect(planTopics(wanted, [lane(names.urls.high, 2), lane(names.urls.normal, 4)]).refusals).toEqual([])
  })

  it('tells of another replication and changes nothing about it', () => {
    const existing = apply(planTopics(wanted, []), []).map((topic) => ({ ...topic, replication: 2 }))
    const plan = planTopics(wanted, existing)
    expect([plan.changes.length, plan.notes.length]).toEqual([0, wanted.length])
  })

  it('leaves min.insync.replicas until the replicas are there', () => {
    const three = topicDefinitions({ ...settings, replication: 3 })
    const alone = apply(planTopics(wanted, []), [])
    expect(planTopics(three, alone).changes).toEqual([])
    const moved = alone.map((topic) => ({ ...topic, replication: 3 }))
    expect(planTopics(three, moved).changes).toContainEqual({
      kind: 'set-config',
      topic: names.html,
      name: 'min.insync.replicas',
      from: '1',
      to: '2',
    })
  })

  it('says how many brokers there are where they are fewer than the replicas', () => {
    const three = topicDefinitions({ ...settings, replication: 3 })
    expect(topicPlan(three, [], 2).refusals).toMatchObject([
      { kind: 'too-few-brokers', message: expect.stringContaining('wants 3 replicas and there are 2 brokers') },
    ])
    expect(topicPlan(three, [], 3).refusals).toEqual([])
    const note = topicPlan(three, apply(planTopics(wanted, []), []), 1).notes[0]
    expect(note?.message).toMatch(/replication 1 and 3 is wanted.*There is 1 broker\.$/)
  })

  it('takes a list of policies in any order for the same', () => {
    const compacted = topicDefinitions({ ...settings, compactRecords: true })
    const existing = apply(planTopics(compacted, []), []).map((topic) =>
      topic.topic === names.records ? { ...topic, configs: { ...topic.configs, 'cleanup.policy': 'delete,compact' } } : topic,
    )
    expect(planTopics(compacted, existing).changes).toEqual([])
  })
})

describe('a change of configs', () => {
  it.each([
    ['retention.ms', '86400000', '3600000', true],
    ['retention.ms', '3600000', '86400000', false],
    ['retention.ms', '-1', '86400000', true],
    ['retention.ms', '86400000', '-1', false],
    ['retention.bytes', '-1', '1000', true],
    ['max.message.bytes', '2000', '1000', true],
    ['max.message.bytes', '1000', '2000', false],
    ['cleanup.policy', 'compact,delete', 'delete', true],
    ['cleanup.policy', 'delete', 'compact,delete', true],
    ['segment.bytes', '2000', '1000', false],
    ['compression.type', 'gzip', 'uncompressed', false],
  ])('of %s from %s to %s takes something away: %s', (name, from, to, isLess) => {
    expect(takesAway({ kind: 'set-config', topic: 't', name, from, to })).toBe(isLess)
  })
})
