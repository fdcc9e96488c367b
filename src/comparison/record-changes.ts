import type { PageRun } from '../extract/test-extractor.ts'
import { byKey, isSame } from './compare.ts'

type RunRecord = PageRun['records'][number]

/** One value that is another one now. Shape: field undefined where the whole record, or the page, is new, gone or failed. */
export interface RecordChange {
  readonly url: string
  readonly key: string
  readonly field: string | undefined
  readonly before: unknown
  readonly after: unknown
}

export interface RunChanges {
  readonly records: { readonly before: number; readonly after: number; readonly changed: number }
  /** Changes per field, `''` for whole records. */
  readonly fields: Readonly<Record<string, number>>
  readonly changes: readonly RecordChange[]
}

/** Runs over the same pages, held against each other page by page. Shape: records are joined by key, several of one key in their order. */
export function compareRuns(before: readonly PageRun[], after: readonly PageRun[]): RunChanges {
  const changes = after.flatMap((run, index) => pageChanges(before[index], run))
  const fields: Record<string, number> = {}
  for (const { field = '' } of changes) fields[field] = (fields[field] ?? 0) + 1
  const count = (runs: readonly PageRun[]): number => runs.reduce((sum, { records }) => sum + records.length, 0)
  const changed = new Set(changes.map(({ url, key }) => `${url} ${key}`)).size
  return { records: { before: count(before), after: count(after), changed }, fields, changes }
}

function pageChanges(before: PageRun | undefined, after: PageRun): RecordChange[] {
  const { url } = after
  const changes: RecordChange[] = []
  const [was, is] = [before?.failure?.message ?? null, after.failure?.message ?? null]
  if (was !== is) changes.push({ url, key: '', field: undefined, before: was, after: is })
  const [old, fresh] = [recordsOf(before), recordsOf(after)]
  for (const name of new Set([...old.keys(), ...fresh.keys()])) {
    const key = name.replace(/\n(\d+)$/, ' ($1)')
    const [from, to] = [dataOf(old.get(name)), dataOf(fresh.get(name))]
    if (from === undefined || to === undefined) {
      changes.push({ url, key, field: undefined, before: from ?? null, after: to ?? null })
      continue
    }
    for (const field of new Set([...Object.keys(from), ...Object.keys(to)])) {
      const [valueBefore, valueAfter] = [from[field] ?? null, to[field] ?? null]
      if (!isSame(valueBefore, valueAfter)) changes.push({ url, key, field, before: valueBefore, after: valueAfter })
    }
  }
  return changes
}

/** The name of the extractor before their keys may be another one on the other side. */
function recordsOf(run: PageRun | undefined): ReadonlyMap<string, RunRecord> {
  return byKey(run?.records ?? [], ({ key }) => key.slice(key.indexOf('/') + 1))
}

function dataOf(found: RunRecord | undefined): Readonly<Record<string, unknown>> | undefined {
  return found === undefined ? undefined : ((found.record.data ?? {}) as Readonly<Record<string, unknown>>)
}
