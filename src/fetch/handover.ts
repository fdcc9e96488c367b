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
  /** Runs what nobody waits for. */
  readonly work: (run: () => Promise<void>) => void
  readonly clock: Clock
}

/** A note that is over as soon as it is written. */
const FORGET_MS = 1
/** A note lives so long without being renewed: a worker that was killed after it had written some holds nothing up for longer. */
const NOTE_MS = 10_000
const RENEW_MS = 3_000

/** The next owner asks again after this whether an attempt of its predecessor has ended. */
export const HANDOVER_POLL_MS = 500

/**
 * Partitions that go from one live worker to another. What the first has on the wire is not committed, so the second reads it again; a
 * note in the store keeps it from asking the site for it until the first is done. Notes are written when a partition goes, and asked
 * for while they can be: a worker that keeps its partitions has nothing to do with them. They are short and renewed, so that those of a
 * worker that is killed end soon.
 */
export class Handover {
  readonly #options: HandoverOptions
  readonly #begun = new Set<QueuedTask>()
  /** Those of them that are noted. */
  readonly #noted = new Set<QueuedTask>()
  #isRenewing = false
  #writes: Promise<void> = Promise.resolve()
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

  /**
   * Not on the wire any more. One that has not come to its end (it was put back, spilled, or dropped before it was asked for) waits for
   * another turn, maybe here: its note would hold it up for as long as it lives. Of one that has, the store says so itself.
   */
  over(queued: QueuedTask, isSettled: boolean): void {
    this.#begun.delete(queued)
    if (this.#noted.delete(queued) && !isSettled) this.#options.work(() => this.#note([queued], FORGET_MS))
  }

  /** The chain goes on with its next hop, under the same note. */
  follows(queued: QueuedTask, hop: QueuedTask): void {
    this.#begun.delete(queued)
    this.#begun.add(hop)
    if (this.#noted.delete(queued)) this.#noted.add(hop)
  }

  /** Nothing is asked for here any more: chains that wait for their next hop go on with the next owner, at once. */
  close(): void {
    const waiting = [...this.#noted]
    this.#begun.clear()
    this.#noted.clear()
    if (waiting.length > 0) this.#options.work(() => this.#note(waiting, FORGET_MS))
  }

  #announce(tasks: readonly QueuedTask[]): Promise<void> {
    for (const queued of tasks) this.#noted.add(queued)
    this.#renewLater()
    return this.#note(tasks, NOTE_MS)
  }

  /** What is noted and still on the wire stays noted. */
  #renewLater(): void {
    const { clock, work } = this.#options
    if (this.#isRenewing || this.#noted.size === 0) return
    this.#isRenewing = true
    clock.timer(
      RENEW_MS,
      () => {
        this.#isRenewing = false
        const open = [...this.#noted].filter((queued) => this.#begun.has(queued))
        if (open.length > 0) work(() => this.#announce(open))
      },
      { unref: true },
    )
  }

  /** One after the other: what is forgotten must not be noted behind that. */
  #note(tasks: readonly QueuedTask[], ttlMs: number): Promise<void> {
    const { state, gate } = this.#options
    if (tasks.length === 0) return Promise.resolve()
    const attempts = tasks.map(({ task: { taskId, attempt } }) => ({ taskId, attempt }))
    const write = this.#writes.then(() => gate.run(() => state.noteUnderWay(attempts, ttlMs)))
    // Whoever asked for it is told of a failure.
    this.#writes = write.catch(() => undefined)
    return write
  }

  /** For how long the predecessor may have it on the wire, at most. Units: ms. */
  leftMs({ window }: QueuedTask): number {
    return Math.max(0, (this.#gained.get(window) ?? 0) - this.#options.clock.mono())
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
