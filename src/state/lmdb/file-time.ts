/**
 * The time of a file. The monotonic clock starts anew whenever the machine does; this one then goes on from the last moment that was
 * noted in the file, so that what had ended stays ended, and of a wait only what is left is waited for. It stands still while the machine
 * is off, and what passed between the last note and a power loss counts again: a wait can so become longer, never shorter.
 *
 * Files of older formats have no such note, and a clock for each start of the machine. So a stored time bears the number of its clock;
 * one of an earlier clock ends its whole length after this one began.
 */
export type Timed = readonly [clock: number, until: number, forMs: number]

/** What a file keeps of its time. */
export interface FileTimeRecord {
  /** Id of the start of the machine. */
  readonly bootId: string
  /** Number of the clock. */
  readonly boot: number
  /** When this clock began. */
  readonly openedAt: number
  /** What it is ahead of the monotonic clock of the machine; older formats have none. */
  readonly aheadMs?: number
  /** The last moment that was noted, never later than the truth; older formats have none. */
  readonly lastAt?: number
}

/** Whether the machine has not been started anew since. A clock that went back tells it where the system gives no boot id. */
export function isSameBoot({ bootId, openedAt, aheadMs = 0, lastAt = openedAt }: FileTimeRecord, id: string, machineMono: number): boolean {
  return bootId === id && lastAt <= machineMono + aheadMs
}

/** The time of a file under another start of the machine, or of a new file: goes on from the last moment where one is known. */
export function timeAfterBoot(found: FileTimeRecord | undefined, bootId: string, machineMono: number): FileTimeRecord {
  if (found?.lastAt === undefined) return { bootId, boot: (found?.boot ?? 0) + 1, openedAt: machineMono, aheadMs: 0, lastAt: machineMono }
  return { ...found, bootId, aheadMs: found.lastAt - machineMono }
}

export class FileTime {
  readonly clock: number
  readonly #beganAt: number
  readonly #aheadMs: number

  constructor({ boot, openedAt, aheadMs = 0 }: FileTimeRecord) {
    this.clock = boot
    this.#beganAt = openedAt
    this.#aheadMs = aheadMs
  }

  now(machineMono: number): number {
    return machineMono + this.#aheadMs
  }

  timed(now: number, forMs: number): Timed {
    return [this.clock, now + forMs, forMs]
  }

  /** End of a stored time on this clock. */
  until([clock, until, forMs]: Timed): number {
    return clock === this.clock ? until : this.#beganAt + forMs
  }

  /** A stored moment of the past; one of an earlier clock is as if it had just been. */
  at(clock: number, moment: number): number {
    return clock === this.clock ? moment : this.#beganAt
  }
}
