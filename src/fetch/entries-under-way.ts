import type { WindowEntry } from '../kafka/windowed-consumer.ts'
import { type PartitionId, partitionId } from '../kernel/brand.ts'

/**
 * Entries whose work has begun, by their place in the log. When a broker was away, the partitions are assigned anew and what was not
 * committed is read again, while its first reading is still on the wire or waits for its acknowledgement. The second reading waits
 * here: when the first has ended, the store knows whether there is anything left to do.
 */
export class EntriesUnderWay {
  readonly #begun = new Map<PartitionId, Map<bigint, { readonly entry: WindowEntry; again?: WindowEntry }>>()

  /** Idempotent. The entry is not held back by another one. */
  begin(entry: WindowEntry): void {
    const { topic, partition, offset } = entry.message
    const id = partitionId(topic, partition)
    const offsets = this.#begun.get(id) ?? new Map<bigint, { readonly entry: WindowEntry; again?: WindowEntry }>()
    this.#begun.set(id, offsets)
    if (!offsets.has(offset)) offsets.set(offset, { entry })
  }

  /** True: an earlier reading of the message is under way; this one is given back by its `end`. */
  holdsBack(entry: WindowEntry): boolean {
    const first = this.#of(entry)
    if (first === undefined || first.entry === entry) return false
    first.again = entry
    return true
  }

  /** Idempotent. Shape: the last reading that was held back meanwhile. */
  end(entry: WindowEntry): WindowEntry | undefined {
    const first = this.#of(entry)
    if (first?.entry !== entry) return undefined
    const { topic, partition, offset } = entry.message
    const id = partitionId(topic, partition)
    const offsets = this.#begun.get(id)
    offsets?.delete(offset)
    if (offsets?.size === 0) this.#begun.delete(id)
    return first.again
  }

  #of({ message: { topic, partition, offset } }: WindowEntry): { readonly entry: WindowEntry; again?: WindowEntry } | undefined {
    return this.#begun.get(partitionId(topic, partition))?.get(offset)
  }
}
