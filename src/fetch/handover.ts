import type { AssignedPartition } from '../kafka/assignment.ts'
import { type PartitionId, partitionId } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { StateStore } from '../state/state-store.ts'
import type { QueuedTask } from './queued-task.ts'
import type { StoreGate } from './store-gate.ts'

export interface HandoverOptions {
  readonly state: Pick<StateStore, 'noteUnderWay' | 'isUnderWay'>
  readonly gate: StoreGate
  /** Longest request, with all its timeouts. */
  readonly leaseMs: number
  readonly clock: Clock
}

/** The next owner asks again after this whether an attempt of its predecessor has ended. */
export const HANDOVER_POLL_MS = 500

/**
 * Partitions that go from one live worker to another. What the first has on the wire is not committed, so the second reads it again; a
 * note in the store keeps it from asking the site for it until the first is done. Notes are written when a partition goes, and asked
 * for while they can be: a worker that keeps its partitions has nothing to do with them, and one that is killed leaves none.
 */
export class Handover {
  readonly #options: HandoverOptions
  readonly #begun = new Set<QueuedTask>()
  /** Monotonic ms until which a predecessor may be at work. */
  readonly #gained = new Map<PartitionId, number>()

  constructor(options: HandoverOptions) {
    this.#options = options
  }

  gained({ topic, partition }: AssignedPartition): void {
    this.#gained.set(partitionId(topic, partition), this.#options.clock.mono() + this.#options.leaseMs)
  }

  /** The partition went: what has begun of it goes on here. */
  async lost({ topic, partition }: AssignedPartition): Promise<void> {
    const window = partitionId(topic, partition)
    this.#gained.delete(window)
    await this.#announce([...this.#begun].filter((queued) => queued.window === window))
  }

  /** Partitions may go: told at once, since the next owner may read them before we learn which do. */
  rebalancing(): Promise<void> {
    return this.#announce([...this.#begun])
  }

  /** It is ended here, whoever owns its partition. */
  begun(queued: QueuedTask): void {
    this.#begun.add(queued)
  }

  over(queued: QueuedTask): void {
    this.#begun.delete(queued)
  }

  async #announce(tasks: readonly QueuedTask[]): Promise<void> {
    const { state, gate, leaseMs } = this.#options
    if (tasks.length === 0) return
    const attempts = tasks.map(({ task: { taskId, attempt } }) => ({ taskId, attempt }))
    await gate.run(() => state.noteUnderWay(attempts, leaseMs))
  }

  /** True while the predecessor has the attempt on the wire. */
  async isElsewhere({ window, task: { taskId, attempt } }: QueuedTask): Promise<boolean> {
    const until = this.#gained.get(window)
    if (until === undefined) return false
    const { state, gate, clock } = this.#options
    if (clock.mono() > until) {
      this.#gained.delete(window)
      return false
    }
    const [isUnderWay] = await gate.run(() => state.isUnderWay([{ taskId, attempt }]))
    return isUnderWay === true
  }
}
