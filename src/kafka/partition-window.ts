import type { AssignedPartition } from './assignment.ts'
import type { PartitionCommit } from './group-commits.ts'
import { heldBytes } from './incoming.ts'
import type { KafkaMessage } from './message.ts'
import type { Committable, OffsetTracker } from './offset-tracker.ts'
import type { WindowEntry } from './window-entry.ts'

/** A commit that is on its way, and what to tell the tracker when it has arrived. */
export interface PendingCommit {
  readonly window: PartitionWindow
  readonly commit: PartitionCommit
  readonly committable: Committable
}

/** What one assignment of a partition holds: its tracker, the entries in work and their bytes. */
export class PartitionWindow {
  readonly assigned: AssignedPartition
  readonly tracker: OffsetTracker
  /** In the order of taking, so the first is the lowest. */
  readonly #entries = new Map<bigint, { readonly entry: WindowEntry; readonly bytes: number }>()
  #bytes = 0
  isPaused = false
  /** Another assignment has begun or ended this one: entries may finish, nothing is committed. */
  isLost = false
  /** The broker took the offset but not the map; its limit is lower than usual. */
  withoutMap = false

  constructor(assigned: AssignedPartition, tracker: OffsetTracker) {
    this.assigned = assigned
    this.tracker = tracker
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The entry that holds back the committable offset. */
  get base(): WindowEntry | undefined {
    const [first] = this.#entries.values()
    return first?.entry
  }

  /** Shape: undefined for a message that is in work or done already. `onComplete` is called at most once, with the bytes freed. */
  take(message: KafkaMessage, takenMono: number, onComplete: (bytes: number) => void): WindowEntry | undefined {
    if (this.tracker.take(message.offset) !== 'taken') return undefined
    const entry: WindowEntry = {
      message,
      epoch: this.assigned.epoch,
      takenMono,
      isCurrent: () => !this.isLost,
      complete: () => {
        const freed = this.#complete(message.offset)
        if (freed !== undefined) onComplete(freed)
      },
    }
    const bytes = heldBytes(message)
    this.#entries.set(message.offset, { entry, bytes })
    this.#bytes += bytes
    return entry
  }

  #complete(offset: bigint): number | undefined {
    if (this.isLost || !this.tracker.complete(offset)) return undefined
    const bytes = this.#entries.get(offset)?.bytes ?? 0
    this.#entries.delete(offset)
    this.#bytes -= bytes
    return bytes
  }

  /** What should be committed now; undefined where the broker holds just that. */
  pendingCommit(): PendingCommit | undefined {
    const committable = this.tracker.committable({ withoutMap: this.withoutMap })
    if (committable === undefined) return undefined
    const { offset, metadata } = committable
    return { window: this, committable, commit: { ...this.assigned, offset, metadata } }
  }

  /** The assignment is over: nothing is held for it any more. Shape: the bytes freed. */
  lose(): number {
    const bytes = this.#bytes
    this.isLost = true
    this.#entries.clear()
    this.#bytes = 0
    return bytes
  }
}
