import type { compareShadow } from '../control/shadow-replay.ts'
import type { CommandContext } from './context.ts'
import { renderCount, renderTable, toJson } from './render.ts'

type Comparison = Awaited<ReturnType<typeof compareShadow>>

/** Old records against new ones, for people: counts, then a line a field, then examples with where they come from. */
export async function writeComparison(context: CommandContext, { records, fields, examples }: Comparison): Promise<void> {
  const { same, added, removed, changed } = records
  await context.out(
    `records: ${renderCount(same)} same, ${renderCount(changed)} changed, ${renderCount(added)} added, ${renderCount(removed)} removed`,
  )
  const right = 'right' as const
  const columns = [
    { title: 'FIELD', flexible: true },
    { title: 'ADDED', align: right },
    { title: 'REMOVED', align: right },
    { title: 'CHANGED', align: right },
    { title: 'NULLS BEFORE', align: right },
    { title: 'NULLS AFTER', align: right },
  ]
  const rows = Object.entries(fields).map(([name, field]) => [
    name,
    renderCount(field.added),
    renderCount(field.removed),
    renderCount(field.changed),
    renderCount(field.nullsBefore),
    renderCount(field.nullsAfter),
  ])
  await context.out(renderTable(columns, rows))
  for (const { entityKey, field, before, after, source } of examples.slice(0, 6)) {
    await context.out(
      `${entityKey} ${field}: ${toJson(before)} -> ${toJson(after)}  (${source.topic}/${source.partition} offset ${source.offset})`,
    )
  }
}
