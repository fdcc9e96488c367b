import type { PreviewReport } from '../control/trials/replay-preview.ts'
import type { CommandContext } from './context.ts'
import { type Column, counted, renderBytes, renderCount, renderPlace, renderTable, toJson } from './render.ts'
import { rangeGoneText } from './replay-status.ts'
import { singleLine } from './terminal-text.ts'

type Comparison = Pick<PreviewReport, 'records' | 'fields' | 'examples' | 'failures'>
type ComparisonExample = Comparison['examples'][number]

const EXAMPLES_SHOWN = 6

/** Old records against new ones, for people: counts, then a line a field, then examples with where they come from. */
export async function writeComparison(context: CommandContext, { records, fields, examples, failures }: Comparison): Promise<void> {
  const { same, added, removed, changed, failed } = records
  const failing = failed === 0 ? '' : `, ${counted(failed, 'page')} failed`
  await context.out(
    `records: ${renderCount(same)} same, ${renderCount(changed)} changed, ${renderCount(added)} added, ${renderCount(removed)} removed${failing}`,
  )
  const columns: readonly Column[] = [
    { title: 'FIELD', flexible: true },
    { title: 'ADDED', align: 'right' },
    { title: 'REMOVED', align: 'right' },
    { title: 'CHANGED', align: 'right' },
    { title: 'NULLS BEFORE', align: 'right' },
    { title: 'NULLS AFTER', align: 'right' },
  ]
  const rows = Object.entries(fields).map(([name, field]) => [
    name,
    renderCount(field.added),
    renderCount(field.removed),
    renderCount(field.changed),
    renderCount(field.nullsBefore),
    renderCount(field.nullsAfter),
  ])
  if (rows.length > 0) await context.out(renderTable(columns, rows))
  for (const { code, field, pages, source } of failures)
    await context.out(`${code}${field === undefined ? '' : ` ${field}`}: ${counted(pages, 'page')}, the first at ${renderPlace(source)}`)
  if (examples.length > 0) await context.out('')
  for (const example of oneOfEach(examples)) await writeExample(context, example)
}

/** A preview for people: the comparison, and what it means for a run. */
export async function writePreview(context: CommandContext, report: PreviewReport): Promise<void> {
  const { extractor, version, before, range, pages, compatibility, topic, movedFrom, largestRecord, gate } = report
  const old = Object.keys(before.versions)
  const against = old.length === 0 ? 'no older records' : `version ${old.join(' and ')}${before.kind === 'records' ? ' of the log' : ''}`
  await context.out(
    `${extractor} version ${version} against ${against}: ${counted(pages.compared, 'page')}${pages.sampled ? ` of ${counted(range.offsets, 'offset')}` : ', all of the range'}`,
  )
  await writeComparison(context, report)
  await context.out('')
  if (range.gone > 0) await context.out(rangeGoneText(range))
  if (compatibility.ok) await context.out('schema: can read the records of all older versions')
  for (const { path, reason } of compatibility.problems) await context.out(`schema: ${path}: ${reason}`)
  if (movedFrom.length > 0)
    await context.out(`topic: records go to ${topic}; those before lie on ${movedFrom.join(' and ')}, and stay there`)
  if (largestRecord !== null) {
    const { bytes, limit, source } = largestRecord
    await context.out(`largest record: ${renderBytes(bytes)} (${renderPlace(source)}); ${topic} takes ${renderBytes(limit)}`)
  }
  if (report.versionTaken)
    await context.out(`version ${version} has run with another definition: raise it to ${version + 1} before it runs`)
  for (const reason of gate.reasons) await context.out(`held back: ${reason}`)
  await context.out(`nothing was written; to replay just this: --expect ${report.hash}`)
}

/** One example of each field first, so that the few that are shown tell most. */
function oneOfEach(examples: readonly ComparisonExample[]): readonly ComparisonExample[] {
  const seen = new Map<string, number>()
  const ranked = examples.map((example) => {
    const kind = example.field ?? (example.before === null ? '+' : '-')
    const rank = seen.get(kind) ?? 0
    seen.set(kind, rank + 1)
    return { example, rank }
  })
  return ranked
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, EXAMPLES_SHOWN)
    .map(({ example }) => example)
}

async function writeExample(context: CommandContext, { entityKey, field, before, after, source }: ComparisonExample): Promise<void> {
  const what = field ?? (before === null ? 'is new' : 'is gone')
  await context.out(singleLine(`${entityKey} ${what}  (${renderPlace(source)})`))
  if (before !== null || field !== undefined) await context.out(`  - ${cut(toJson(before))}`)
  if (after !== null || field !== undefined) await context.out(`  + ${cut(toJson(after))}`)
}

const TEXT_SHOWN = 160

function cut(text: string): string {
  return text.length <= TEXT_SHOWN ? text : `${text.slice(0, TEXT_SHOWN)}…`
}
