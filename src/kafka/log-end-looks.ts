import { MillraceError } from '../kernel/errors.ts'

/** With the pauses of their callers some seconds; a log that is shorter then is another one, or was cut. */
const MOST_LOOKS = 5

/**
 * A broker that has just started may not know the end of its log yet, and would have a group begin elsewhere than where it stands: whoever
 * finds a committed offset behind the end asks a few times before it is believed.
 */
export class LogEndLooks {
  #count = 0

  /** Errors: KAFKA_REQUEST_FAILED while the log is to be looked at again. */
  check(committed: bigint, end: bigint): void {
    if (committed <= end) this.#count = 0
    if (committed <= end || this.#count >= MOST_LOOKS) return
    this.#count += 1
    throw new MillraceError(
      'KAFKA_REQUEST_FAILED',
      `the log ends at ${end}, before the committed offset ${committed}: it is looked at again`,
    )
  }
}
