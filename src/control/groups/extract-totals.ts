import { addTotals, decodeMetadata, type ExtractorTotals, NO_TOTALS } from '../../extract/offset-metadata.ts'
import { livePosition } from '../../extract/replay-step.ts'
import type { PartitionLag } from '../../kafka/admin.ts'

/** What an extract group has counted, over all partitions of html. */
export interface GroupTotals {
  readonly group: string
  /** Pages that no extractor of the group matched; null where a partition no longer knows. */
  readonly noMatch: number | null
  /** Pages that retention deleted before live work had read them. */
  readonly gone: number
  readonly extractors: readonly {
    readonly extractor: string
    /** Null where a partition no longer knows: too many extractors for the metadata of an offset. Never a sum of a part. */
    readonly totals: ExtractorTotals | null
  }[]
}

type Standing = Pick<PartitionLag, 'committed' | 'metadata' | 'low'>

/** Sums of one group from the metadata of its offsets. Shape: an offset without metadata of ours has counted nothing yet. */
export function groupTotals(group: string, partitions: readonly Standing[]): GroupTotals {
  const sums = new Map<string, ExtractorTotals>()
  let noMatch = 0
  let isKnown = true
  for (const { metadata } of partitions) {
    const decoded = decodeMetadata(metadata)
    if (decoded === undefined) continue
    isKnown &&= decoded.since >= 0n
    noMatch += decoded.totals.noMatch
    for (const [extractor, totals] of Object.entries(decoded.totals.extractors))
      sums.set(extractor, addTotals(sums.get(extractor) ?? NO_TOTALS, totals))
  }
  return {
    group,
    noMatch: isKnown ? noMatch : null,
    gone: goneCounted(partitions) + goneUnmet(partitions),
    extractors: [...sums].map(([extractor, totals]) => ({ extractor, totals: isKnown ? totals : null })),
  }
}

/** As the group has counted them; it does where it goes on behind them. */
export function goneCounted(partitions: readonly Standing[]): number {
  return partitions.reduce((sum, { metadata }) => sum + (decodeMetadata(metadata)?.gone?.pages ?? 0), 0)
}

/** Those that lie before it and that it has not met yet. */
function goneUnmet(partitions: readonly Standing[]): number {
  return partitions.reduce((sum, { committed, metadata, low }) => {
    const decoded = decodeMetadata(metadata)
    const at = committed === undefined || decoded === undefined ? committed : livePosition(decoded, committed)
    return sum + (at !== undefined && at < low ? Number(low - at) : 0)
  }, 0)
}
