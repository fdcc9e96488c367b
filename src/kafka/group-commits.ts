import type { Consumer } from 'kafkajs'
import { partitionId } from '../kernel/brand.ts'
import type { Observer } from '../kernel/observe.ts'
import type { AssignedPartition } from './assignment.ts'
import type { CommitSent } from './consumer-events.ts'
import { type CommitRefusal, commitRefusal } from './consumer-failure.ts'

export interface PartitionCommit extends AssignedPartition {
  readonly offset: bigint
  readonly metadata: string
}

/** Shape: `stored` are those that the client's commit event showed; `refused` says why others were not, stale epochs apart. */
export interface CommitResult {
  readonly stored: readonly PartitionCommit[]
  readonly refused?: CommitRefusal
}

/**
 * Commits of one member, one call at a time. A promise of kafkajs that resolves is no proof that anything was stored; its commit
 * event, which follows the answer of the broker, is.
 */
export class GroupCommits {
  readonly #group: string
  readonly #observer: Observer
  #proof: Set<string> | undefined

  constructor(group: string, observer: Observer) {
    this.#group = group
    this.#observer = observer
  }

  /** To be called with the payload of every commit event. */
  observe({ topics }: CommitSent): void {
    for (const { topic, partitions } of topics) {
      for (const { partition, offset } of partitions) this.#proof?.add(proofKey(topic, partition, String(offset)))
    }
  }

  /**
   * Errors: none, a refusal is a value. The call goes out before anything is awaited: in a rebalance it has to reach the coordinator
   * before the new join does. It is never repeated here: by then a partition may be another's.
   */
  async send(consumer: Consumer | undefined, commits: readonly PartitionCommit[]): Promise<CommitResult> {
    if (commits.length === 0) return { stored: [] }
    if (this.#proof !== undefined) return { stored: [], refused: 'busy' }
    const proof = new Set<string>()
    this.#proof = proof
    const refused = await call(consumer, commits)
    this.#proof = undefined
    const stored = commits.filter(({ topic, partition, offset }) => proof.has(proofKey(topic, partition, offset.toString())))
    if (stored.length > 0) this.#observer.emit('OffsetsCommitted', { group: this.#group, partitionCount: stored.length })
    if (stored.length === commits.length) return { stored }
    const reason = refused ?? 'not-joined'
    this.#observer.emit('CommitRefused', { group: this.#group, reason })
    return { stored, refused: reason }
  }
}

async function call(consumer: Consumer | undefined, commits: readonly PartitionCommit[]): Promise<CommitRefusal | undefined> {
  if (consumer === undefined) return 'not-joined'
  try {
    await consumer.commitOffsets(
      commits.map(({ topic, partition, offset, metadata }) => ({ topic, partition, offset: offset.toString(), metadata })),
    )
    return undefined
  } catch (error) {
    return commitRefusal(error)
  }
}

function proofKey(topic: string, partition: number, offset: string): string {
  return `${partitionId(topic, partition)}@${offset}`
}
