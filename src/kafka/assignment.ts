import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'

/** A partition under one assignment. Work carries the epoch; what ends under an older one is never committed. */
export interface AssignedPartition extends TopicPartition {
  /** Counts the assignments of this process, from 1; unique per partition and assignment. */
  readonly epoch: number
}

export interface AssignmentChange {
  readonly gained: readonly AssignedPartition[]
  /** Owned before and since without a gap: same epoch. */
  readonly kept: readonly AssignedPartition[]
  readonly lost: readonly AssignedPartition[]
}

/** What a member owns, as the last join said it. */
export interface Assignment {
  readonly memberId: string | undefined
  readonly owned: ReadonlyMap<PartitionId, AssignedPartition>
  readonly lastEpoch: number
}

export const NO_ASSIGNMENT: Assignment = { memberId: undefined, owned: new Map(), lastEpoch: 0 }

/**
 * What a join changed. A partition is kept only where the member id is the same as before: a member that missed a generation is
 * expelled and comes back under a new id, and another may have owned and moved its partitions meanwhile.
 * Errors: none. Pure.
 */
export function joined(
  before: Assignment,
  join: { memberId: string; partitions: readonly TopicPartition[] },
): { after: Assignment; change: AssignmentChange } {
  const continuous = before.memberId === join.memberId
  const owned = new Map<PartitionId, AssignedPartition>()
  const gained: AssignedPartition[] = []
  const kept: AssignedPartition[] = []
  let lastEpoch = before.lastEpoch
  for (const { topic, partition } of join.partitions) {
    const id = partitionId(topic, partition)
    const previous = before.owned.get(id)
    if (continuous && previous !== undefined) {
      kept.push(previous)
      owned.set(id, previous)
    } else {
      lastEpoch += 1
      const assigned = { topic, partition, epoch: lastEpoch }
      gained.push(assigned)
      owned.set(id, assigned)
    }
  }
  const lost = [...before.owned].filter(([id, previous]) => owned.get(id) !== previous).map(([, previous]) => previous)
  return { after: { memberId: join.memberId, owned, lastEpoch }, change: { gained, kept, lost } }
}

/** All is lost: the consumer crashed or left. What it owned may be another's from now on. */
export function left(before: Assignment): { after: Assignment; change: AssignmentChange } {
  return {
    after: { memberId: undefined, owned: new Map(), lastEpoch: before.lastEpoch },
    change: { gained: [], kept: [], lost: [...before.owned.values()] },
  }
}

/** One partition begins anew under the same member: where it was read is no place in the log any more. */
export function begunAnew(before: Assignment, id: PartitionId): { after: Assignment; change: AssignmentChange } {
  const previous = before.owned.get(id)
  if (previous === undefined) return { after: before, change: { gained: [], kept: [], lost: [] } }
  const lastEpoch = before.lastEpoch + 1
  const assigned = { ...previous, epoch: lastEpoch }
  const owned = new Map(before.owned).set(id, assigned)
  return { after: { ...before, owned, lastEpoch }, change: { gained: [assigned], kept: [], lost: [previous] } }
}
