import { decodeMetadata } from '../../extract/offset-metadata.ts'
import { livePosition } from '../../extract/replay-step.ts'
import { type KafkaAdmin, nextToRead, type PartitionLag } from '../../kafka/admin.ts'
import { readOne } from '../../kafka/log-reader.ts'
import type { KafkaMessage } from '../../kafka/message.ts'

/**
 * Lag of live work. The committed offset of a partition that replays stands in the range, where live work is not behind; `replay status`
 * tells of that. Pure. Shape: groups that replay nothing are as they were.
 */
export function liveLag(lags: readonly PartitionLag[]): PartitionLag[] {
  return lags.map((lag) => {
    const metadata = decodeMetadata(lag.metadata)
    if (lag.committed === undefined || metadata === undefined) return lag
    const committed = livePosition(metadata, lag.committed)
    const from = nextToRead({ committed, low: lag.low })
    return { ...lag, committed, lag: lag.end > from ? lag.end - from : 0n }
  })
}

/**
 * The message that has waited longest; of an open transaction too, since what stands behind that waits. Shape: undefined where none waits.
 */
export async function oldestWaiting({ session }: Pick<KafkaAdmin, 'session'>, lag: PartitionLag): Promise<KafkaMessage | undefined> {
  return lag.lag === 0n ? undefined : readOne(session, lag, nextToRead(lag), 'read_uncommitted')
}

/** True while a replay in place has work left in the partition, in a turn of live work too. Pure. */
export function isReplaying({ metadata }: Pick<PartitionLag, 'metadata'>): boolean {
  const phase = decodeMetadata(metadata)?.replay?.phase
  return phase !== undefined && phase !== 'done'
}
