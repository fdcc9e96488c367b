import type { WindowEntry } from '../kafka/window-entry.ts'
import type { UrlTask } from '../message/generated/types.ts'

type Attempt = Pick<UrlTask, 'taskId' | 'attempt'>

interface UnderWay {
  readonly entry: WindowEntry
  copies: readonly WindowEntry[]
  /** Those that came before its own copy was written. */
  repeats: readonly WindowEntry[]
}

/** What came of an attempt while it was under way. */
export interface HeldCopies {
  /** A copy that was put aside stands for them as well. */
  readonly repeats: readonly WindowEntry[]
  /** Whether they are done is for the store to say. */
  readonly open: readonly WindowEntry[]
}

const NONE: HeldCopies = { repeats: [], open: [] }

/**
 * Attempts that wait for their turn or have begun, and copies that came meanwhile: of a stage that was killed before it had committed
 * what it wrote, or the message itself, read again after the broker was away. The store knows what is finished, not what is under way,
 * so a copy waits here until its first is at its end.
 *
 * An attempt that is put aside goes on in the copy that is written for it, which may be back before its acknowledgement is: it is the only
 * one that is left then. So whatever comes once it is being written has its turn, and only what came before is a repeat of it.
 */
export class AttemptsUnderWay {
  readonly #attempts = new Map<string, UnderWay>()

  /** Shape: false where another entry of the attempt is under way; this one is given back by its `end`. */
  begin(entry: WindowEntry, attempt: Attempt): boolean {
    if (this.holdsBack(entry, attempt)) return false
    this.#attempts.set(keyOf(attempt), { entry, copies: [], repeats: [] })
    return true
  }

  /** True where another entry of the attempt is under way; this one is given back by its `end`. */
  holdsBack(entry: WindowEntry, attempt: Attempt): boolean {
    const first = this.#attempts.get(keyOf(attempt))
    if (first === undefined || first.entry === entry) return false
    // A copy whose partition went away meanwhile has come again, or will.
    first.copies = [...first.copies.filter((copy) => copy !== entry && copy.isCurrent()), entry]
    return true
  }

  /** It is put aside: its copy is written from now on. */
  leaves(entry: WindowEntry, attempt: Attempt): void {
    const first = this.#attempts.get(keyOf(attempt))
    if (first?.entry !== entry) return
    first.repeats = first.copies
    first.copies = []
  }

  /** It is at its end, or its copy is acknowledged. Shape: what was held back; nothing where it had ended already. */
  end(entry: WindowEntry, attempt: Attempt): HeldCopies {
    const key = keyOf(attempt)
    const first = this.#attempts.get(key)
    if (first?.entry !== entry) return NONE
    this.#attempts.delete(key)
    return { repeats: first.repeats, open: first.copies }
  }
}

function keyOf({ taskId, attempt }: Attempt): string {
  return `${attempt} ${taskId}`
}
