import { countText } from '../kernel/count-text.ts'
import type { ErrorCode } from '../kernel/errors.ts'
import type { Comparison } from './compare.ts'

/** Whether a new version may take the place of the old one. */
export interface GateVerdict {
  readonly held: boolean
  /** One sentence each. */
  readonly reasons: readonly string[]
  /** What it gives less of although nobody requires it, one sentence each: it holds nothing back, and somebody should know. */
  readonly notes: readonly string[]
}

/** Of a page whose record is larger than its topic takes: the log keeps nothing of it, whatever was there before. */
const REFUSED: ErrorCode = 'EXTRACT_RECORD_TOO_LARGE'

/**
 * A version that gives less than the one before on the same pages is held back: pages that gave records and are dead letters now, records
 * that their topic would not take, records without a required field that had it, records that are gone. Pure. Fields that are required are
 * those of the old version where it is known, and of the new one.
 */
export function gateVerdict(comparison: Comparison, required: ReadonlySet<string>): GateVerdict {
  const reasons: string[] = []
  const notes: string[] = []
  const failing = comparison.failures.filter(({ code, gaveRecords }) => gaveRecords > 0 && code !== REFUSED)
  for (const { code, field, gaveRecords } of failing) {
    const what = field === undefined ? code : `${code} ${field}`
    reasons.push(`${countText(gaveRecords, 'page')} that gave records would become dead letters (${what})`)
  }
  for (const { pages } of comparison.failures.filter(({ code }) => code === REFUSED))
    reasons.push(`${countText(pages, 'page')} would become dead letters: a record of theirs is larger than its topic takes (${REFUSED})`)
  for (const [name, { removed }] of Object.entries(comparison.fields)) {
    if (removed === 0) continue
    if (required.has(name)) reasons.push(`the required field ${name} would be lost in ${countText(removed, 'record')}`)
    else notes.push(`the field ${name} would be missing in ${countText(removed, 'record')} that had it`)
  }
  const { added, removed } = comparison.records
  if (removed > added) reasons.push(`${countText(removed - added, 'record')} fewer on the same pages`)
  return { held: reasons.length > 0, reasons, notes }
}
