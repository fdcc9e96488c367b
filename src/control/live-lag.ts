import { decodeMetadata } from '../extract/offset-metadata.ts'
import { livePosition } from '../extract/replay-step.ts'
import type { PartitionLag } from '../kafka/admin.ts'

/**
 * Lag of live work. The committed offset of a partition that replays stands in the range, where live work is not behind; `replay status`
 * tells of that. Pure. Shape: groups that replay nothing are as they were.
 */
export function liveLag(lags: readonly PartitionLag[]): PartitionLag[] {
  return lags.map((lag) => {
    const metadata = decodeMetadata(lag.metadata)
    if (lag.committed === undefined || metadata === undefined) return lag
    const committed = livePosition(metadata, lag.committed)
    const from = committed > lag.low ? committed : lag.low
    return { ...lag, committed, lag: lag.end > from ? lag.end - from : 0n }
  })
}

/** True while a replay in place has work left in the partition, in a turn of live work too. Pure. */
export function isReplaying({ metadata }: Pick<PartitionLag, 'metadata'>): boolean {
  const phase = decodeMetadata(metadata)?.replay?.phase
  return phase !== undefined && phase !== 'done'
}
