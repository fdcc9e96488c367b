import { formatDuration } from '../config/units.ts'
import { loadConfigured } from '../control/extractors/configured-extractors.ts'
import { describeTopics } from '../control/inspect/describe-topics.ts'
import { offlineTexts } from '../control/inspect/stalls.ts'
import { applyTopics, planTopics, type TopicPlan } from '../control/runtime/topics.ts'
import type { CommandContext } from './context.ts'
import { type Column, counted, renderCount, renderTable, toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

/** `topics plan` and `topics apply`. A plan with refusals ends with 2, and nothing is changed. */
export async function planOrApply(context: CommandContext, verb: 'plan' | 'apply'): Promise<void> {
  const { config } = context.loadConfig()
  const extractors = await loadConfigured(config.extractors, context.draining)
  const recordTopics = extractors.flatMap(({ topic }) => (topic === undefined ? [] : [topic]))
  await withRuntime(context, config, `millrace topics ${verb}`, async (runtime) => {
    const plan = verb === 'plan' ? await planTopics(runtime, recordTopics) : await applyTopics(runtime, recordTopics)
    if (context.globals.json) await context.out(toJson(plan.changes))
    else await writePlan(context, plan, verb)
    for (const note of plan.notes) context.note(`note: ${note.message}`)
    for (const refusal of plan.refusals) context.err(`refused: ${refusal.message}`)
    if (plan.refusals.length > 0) context.setExitCode(2)
  })
}

async function writePlan(context: CommandContext, { changes, refusals }: TopicPlan, verb: 'plan' | 'apply'): Promise<void> {
  for (const change of changes) {
    if (change.kind === 'create')
      await context.out(`create ${change.topic}: ${counted(change.partitions, 'partition')}, ${counted(change.replication, 'replica')}`)
    else if (change.kind === 'add-partitions') await context.out(`add partitions to ${change.topic}: ${change.from} -> ${change.to}`)
    else if (change.kind === 'set-layout')
      await context.out(`tell all members of the partitions of ${change.topic}: ${change.from ?? '(none)'} -> ${change.to}`)
    else await context.out(`set ${change.topic} ${change.name}: ${change.from ?? '(default)'} -> ${change.to}`)
  }
  const count = changes.length === 1 ? '1 change' : `${changes.length} changes`
  if (refusals.length > 0) await context.out(`${count}, and ${refusals.length} that can not be made; nothing was changed`)
  else if (changes.length === 0) await context.out('the topics are as the configuration wants them')
  else await context.out(verb === 'plan' ? `${count}; nothing was changed` : `${count} made`)
}

export async function describe(context: CommandContext): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace topics describe', async (runtime) => {
    const topics = await describeTopics(runtime)
    const { control } = runtime.topics
    if (topics.some(({ topic, offline }) => topic === control && offline.length > 0))
      context.note(`note: topics that extractors or \`replay --out\` name are left out, since ${control} can not be read`)
    if (context.globals.json) {
      await context.out(toJson(topics))
      return
    }
    const columns: readonly Column[] = [
      { title: 'TOPIC', flexible: true },
      { title: 'PARTITIONS', align: 'right' },
      { title: 'REPLICAS', align: 'right' },
      { title: 'OFFSETS', align: 'right' },
      { title: 'RETENTION', align: 'right' },
      { title: 'CLEANUP' },
    ]
    const rows = topics.map(({ topic, partitions, replication, offsets, configs }) => [
      topic,
      String(partitions),
      String(replication),
      renderCount(offsets),
      retentionText(configs['retention.ms']),
      configs['cleanup.policy'] ?? '',
    ])
    await context.out(
      topics.length === 0
        ? `no topic of the prefix ${config['topics.prefix']} is there; \`millrace topics apply\` makes them`
        : renderTable(columns, rows),
    )
    for (const text of offlineTexts(topics)) await context.out(`! ${text}`)
    const shadows = topics.filter(({ replayId }) => replayId !== undefined)
    if (shadows.length > 0) {
      const [first] = shadows
      const whose = `${counted(shadows.length, 'topic')} of shadow replays`
      await context.out(
        `\n${whose}: records live as long as on ${config['topics.prefix']}records, a topic until it is removed, as by \`millrace replay forget ${first?.replayId}\``,
      )
    }
  })
}

/** As it would be written in the configuration. Pure. */
export function retentionText(ms: string | undefined): string {
  if (ms === undefined) return ''
  return ms === '-1' ? 'for ever' : formatDuration(Number(ms))
}
