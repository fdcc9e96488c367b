import type { PartitionId, PolitenessKey } from '../kernel/brand.ts'
import type { Lane } from '../message/generated/types.ts'

/** What the queues need to know of a task. */
export interface SiteTask {
  readonly key: PolitenessKey
  readonly lane: Lane
  readonly crawlId: string | null
  /** Window of the consumer that holds the task. */
  readonly window: PartitionId
}
