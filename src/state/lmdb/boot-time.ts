/**
 * Time that outlives a restart of the machine. The monotonic clock starts anew with each boot, so a stored point in time means nothing
 * under another one. Each is therefore stored with the number of its boot and its whole length; under a later boot it ends that length
 * after the file was first opened. A wait can so become longer, never shorter.
 */
export type Timed = readonly [boot: number, until: number, forMs: number]

export class BootTime {
  /** How many boots have used the file. */
  readonly boot: number
  /** When the file was first opened under this boot, on the monotonic clock. */
  readonly openedAt: number

  constructor(boot: number, openedAt: number) {
    this.boot = boot
    this.openedAt = openedAt
  }

  timed(now: number, forMs: number): Timed {
    return [this.boot, now + forMs, forMs]
  }

  /** End of a stored time on the clock of this boot. */
  until([boot, until, forMs]: Timed): number {
    return boot === this.boot ? until : this.openedAt + forMs
  }

  /** A stored moment of the past; under a later boot it is as if it had just been. */
  at(boot: number, moment: number): number {
    return boot === this.boot ? moment : this.openedAt
  }
}
