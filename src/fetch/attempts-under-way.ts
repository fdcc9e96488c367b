import type { WindowEntry } from '../kafka/windowed-consumer.ts'
import type { UrlTask } from '../message/generated/types.ts'

type Attempt = Pick<UrlTask, 'taskId' | 'attempt'>

interface UnderWay {
  readonly entry: WindowEntry
  copies?: WindowEntry[]
}

/**
 * Attempts that wait for their turn or have begun, and copies that came meanwhile: of a stage that was killed before it had committed
 * what it wrote, or the message itself, read again after the broker was away. The store knows what is finished, not what is under way,
 * so a copy waits here until its first is at its end.
 */
export class AttemptsUnderWay {
  readonly #attempts = new Map<string, UnderWay>()

  /** Shape: false where another entry of the attempt is under way; this one is given back by its `end`. */
  begin(entry: WindowEntry, attempt: Attempt): boolean {
    if (this.holdsBack(entry, attempt)) return false
    this.#attempts.set(keyOf(attempt), { entry })
    return true
  }

  /** True where another entry of the attempt is under way; this one is given back by its `end`. */
  holdsBack(entry: WindowEntry, attempt: Attempt): boolean {
    const first = this.#attempts.get(keyOf(attempt))
    if (first === undefined || first.entry === entry) return false
    // A copy whose partition went away meanwhile has come again, or will.
    first.copies = first.copies?.filter((copy) => copy !== entry && copy.isCurrent()) ?? []
    first.copies.push(entry)
    return true
  }

  /** Shape: the copies that were held back. */
  end(entry: WindowEntry, attempt: Attempt): readonly WindowEntry[] {
    const key = keyOf(attempt)
    const first = this.#attempts.get(key)
    if (first?.entry !== entry) return []
    this.#attempts.delete(key)
    return first.copies ?? []
  }
}

function keyOf({ taskId, attempt }: Attempt): string {
  return `${attempt} ${taskId}`
}
