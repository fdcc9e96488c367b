import type { KafkaMessage } from './message.ts'

/**
 * One message that was taken and is not finished. The consumer commits the lowest incomplete offset of each partition with the
 * completed ones above it in the metadata.
 */
export interface WindowEntry {
  readonly message: KafkaMessage
  /** Our counter of the assignment of this partition; a completion of an older epoch is dropped. */
  readonly epoch: number
  /** Monotonic ms at which the entry was taken. */
  readonly takenMono: number
  /** False once the partition went away: the work may finish and publish, it will not be committed. */
  readonly isCurrent: () => boolean
  /** What the entry stands for is acknowledged; its offset may be committed. Idempotent. */
  readonly complete: () => void
}
