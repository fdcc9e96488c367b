import type { OutgoingMessage } from './message.ts'

/** What a group has committed for one partition. */
export interface CommittedOffset {
  /** Next offset to read; undefined where nothing is committed. */
  readonly offset: bigint | undefined
  readonly metadata: string
}

/**
 * Output and consumed offset of one input partition in one transaction. `transactional.id` = group/topic/partition, so the next
 * owner of the partition fences this one.
 */
export interface PartitionTransactions {
  /** Opens and aborts an empty transaction, which is what fences; then reads the committed offset, which is right only after it. */
  fence(): Promise<CommittedOffset>
  /**
   * Writes the messages, then the offset with its metadata, then commits. Any rejection, KAFKA_FENCED apart, is ambiguous (it may
   * have committed): the caller drops what it holds and goes on from `fence()`.
   */
  commit(messages: readonly OutgoingMessage[], offset: bigint, metadata: string): Promise<void>
  close(): Promise<void>
}
