import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { type TopicChange, type TopicPlan, takesAway } from '../../kafka/topic-plan.ts'
import { subject } from '../../message/command.ts'
import { announce, announceSchema } from './announce.ts'
import { countIn, type LayoutPayload, nextLayout, readLayout } from './layout-command.ts'
import { type Runtime, requireTopics } from './runtime.ts'

export type { TopicPlan }

/** Topics as code: what differs from the configuration. Changes nothing. */
export async function planTopics(runtime: Runtime, recordTopics: readonly string[] = []): Promise<TopicPlan> {
  const wanted = runtime.wantedTopics(recordTopics)
  const plan = await runtime.admin.planTopics(wanted)
  // What has to be made, or refused, is told of the topic itself.
  const told = new Set([...plan.changes.filter(({ kind }) => kind !== 'set-config'), ...plan.refusals].map(({ topic }) => topic))
  if (told.has(runtime.topics.control)) return plan
  const layout = await presentLayout(runtime)
  const layoutChanges = wanted.flatMap(({ topic, partitions: to }): TopicChange[] => {
    const from = countIn(layout, topic)
    return told.has(topic) || from === to ? [] : [{ kind: 'set-layout', topic, from, to }]
  })
  return { ...plan, changes: [...plan.changes, ...layoutChanges] }
}

/** Of each topic that is there and has another number of partitions than all members go by. Empty before `topics apply`. */
export async function layoutDifferences(runtime: Runtime): Promise<readonly { topic: string; layout: number; partitions: number }[]> {
  const existing = new Set(await runtime.admin.listTopics())
  if (!existing.has(runtime.topics.control)) return []
  const layout = await presentLayout(runtime)
  const known = Object.entries(layout?.partitions ?? {}).filter(([topic]) => existing.has(topic))
  const counted = await Promise.all(
    known.map(async ([topic, count]) => ({ topic, layout: count, partitions: (await runtime.admin.partitions(topic)).length })),
  )
  return counted.filter(({ layout: count, partitions }) => count !== partitions)
}

async function presentLayout(runtime: Runtime): Promise<LayoutPayload | undefined> {
  const control = await runtime.control()
  await control.readToEnd()
  control.requireReadable(subject.layout)
  return readLayout(control)
}

/**
 * Makes the topics as the configuration wants them, and tells all members the layout and the schemas of this release. Idempotent. Errors:
 * CONFIG_INVALID with the refusals of the plan, before anything is changed.
 */
export async function applyTopics(runtime: Runtime, recordTopics: readonly string[] = []): Promise<TopicPlan> {
  const plan = await planTopics(runtime, recordTopics)
  await carryOut(runtime, plan, recordTopics)
  return plan
}

async function carryOut(runtime: Runtime, plan: TopicPlan, recordTopics: readonly string[]): Promise<void> {
  await runtime.admin.applyTopics(plan)
  const wanted = runtime.wantedTopics(recordTopics).map(({ topic, partitions }) => [topic, partitions] as const)
  await publishLayout(runtime, await presentLayout(runtime), Object.fromEntries(wanted))
  await announceMessages(runtime)
}

/** What stages of this release write: so they find it announced, and need not write to `control` themselves. */
async function announceMessages(runtime: Runtime): Promise<void> {
  for (const name of ['UrlTask', 'Page', 'Outcome'] as const) await announceSchema(runtime, runtime.schemaStore.current(name))
}

/** The layout rises by a version when a topic has another number of partitions than it says. */
async function publishLayout(
  runtime: Runtime,
  present: LayoutPayload | undefined,
  partitions: Readonly<Record<string, number>>,
): Promise<void> {
  const layout = nextLayout(present, partitions)
  if (layout !== undefined) await announce(runtime, { kind: 'set', subject: subject.layout, payload: layout })
}

/**
 * Topics for a process that works on them. On a given broker they are the operator's decision and have to be there. Our own is made as the
 * configuration of this process wants it, which is told, but for what takes something away: that is done by `topics apply` alone.
 */
export async function prepareTopics(runtime: Runtime, extractors: readonly Pick<LoadedExtractor, 'topic'>[]): Promise<void> {
  const topics = extractors.flatMap(({ topic }) => (topic === undefined ? [] : [topic]))
  if (!runtime.isEmbedded) return requireTopics(runtime, namesOf(runtime.wantedTopics(topics)))
  const plan = await planTopics(runtime, topics)
  const changes = plan.changes.filter((change) => !takesAway(change))
  await carryOut(runtime, { ...plan, changes }, topics)
  for (const [topic, configs] of configTexts(changes)) runtime.observer.emit('TopicChanged', { topic, configs })
  for (const [topic, configs] of configTexts(plan.changes.filter(takesAway))) runtime.observer.emit('TopicLeftAsItIs', { topic, configs })
}

/** Topics for one command: those that are missing on our own broker are made, and nothing is changed in what others have configured. */
export async function requireOrMakeTopics(runtime: Runtime): Promise<void> {
  const wanted = runtime.wantedTopics()
  if (!runtime.isEmbedded) return requireTopics(runtime, namesOf(wanted))
  const plan = await runtime.admin.planTopics(wanted)
  const changes = plan.changes.filter(({ kind }) => kind === 'create')
  const refusals = changes.length === 0 ? [] : plan.refusals.filter(({ kind }) => kind === 'lanes-unequal')
  await runtime.admin.applyTopics({ ...plan, changes, refusals })
  const layout = await presentLayout(runtime)
  const untold = wanted.filter(({ topic }) => countIn(layout, topic) === undefined)
  const counts = untold.map(async ({ topic }) => [topic, (await runtime.admin.partitions(topic)).length] as const)
  await publishLayout(runtime, layout, Object.fromEntries(await Promise.all(counts)))
  await announceMessages(runtime)
}

function namesOf(definitions: readonly { readonly topic: string }[]): string[] {
  return definitions.map(({ topic }) => topic)
}

/** What configs of a topic become, by topic. */
function configTexts(changes: readonly TopicChange[]): Map<string, string> {
  const texts = new Map<string, string>()
  for (const change of changes) {
    if (change.kind !== 'set-config') continue
    const before = texts.get(change.topic)
    const text = `${change.name} ${change.from ?? '(default)'} -> ${change.to}`
    texts.set(change.topic, before === undefined ? text : `${before}, ${text}`)
  }
  return texts
}
