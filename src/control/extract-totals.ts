import { addTotals, decodeMetadata, type ExtractorTotals, NO_TOTALS } from '../extract/offset-metadata.ts'
import type { Runtime } from './runtime.ts'

/** What an extract group has counted, over all partitions of html. */
export interface GroupTotals {
  readonly group: string
  /** Pages that no extractor of the group matched; null where a partition no longer knows. */
  readonly noMatch: number | null
  readonly extractors: readonly {
    readonly extractor: string
    /** Null where a partition no longer knows: too many extractors for the metadata of an offset. Never a sum of a part. */
    readonly totals: ExtractorTotals | null
  }[]
}

/** Sums of one group from the metadata of its offsets. Shape: an offset without metadata of ours has counted nothing yet. */
export function groupTotals(group: string, metadata: readonly string[]): GroupTotals {
  const sums = new Map<string, ExtractorTotals>()
  let noMatch = 0
  let isKnown = true
  for (const text of metadata) {
    const decoded = decodeMetadata(text)
    if (decoded === undefined) continue
    isKnown &&= decoded.since >= 0n
    noMatch += decoded.totals.noMatch
    for (const [extractor, totals] of Object.entries(decoded.totals.extractors))
      sums.set(extractor, addTotals(sums.get(extractor) ?? NO_TOTALS, totals))
  }
  return {
    group,
    noMatch: isKnown ? noMatch : null,
    extractors: [...sums].map(([extractor, totals]) => ({ extractor, totals: isKnown ? totals : null })),
  }
}

/** The default group and those of `extract.groups`, by their names on Kafka. */
export function extractGroupsOf({ groups, config }: Pick<Runtime, 'groups' | 'config'>): string[] {
  return [groups.extract(), ...Object.keys(config['extract.groups']).map((name) => groups.extract(name))]
}
