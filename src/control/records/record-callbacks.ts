import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock } from '../../kernel/clock.ts'
import { MillraceError } from '../../kernel/errors.ts'
import type { WriteRecord } from './record-output.ts'

/** How long the end waits for a record that is in hand. */
const LAST_RECORD_MS = 5_000

/** Calls of `onRecord`, a function of the user's: one that calls for the end itself, or never comes back, must not hold the end up. */
export class RecordCallbacks {
  readonly #clock: Clock
  readonly #stopped: AbortSignal
  readonly #within = new AsyncLocalStorage<true>()

  constructor(clock: Clock, stopped: AbortSignal) {
    this.#clock = clock
    this.#stopped = stopped
  }

  /** Whoever asks is called by one of them, or by what it has begun. */
  get areAsking(): boolean {
    return this.#within.getStore() === true
  }

  /** As `onRecord`. Errors: its own; ABORTED where it is not done with a record five seconds after the stop. */
  bounded(onRecord: WriteRecord): WriteRecord {
    return (record) =>
      new Promise((resolve, reject) => {
        let disarm = (): void => undefined
        const onStopped = (): void => {
          const late = new MillraceError('ABORTED', '`onRecord` was not done with its record five seconds after `stop`')
          disarm = this.#clock.timer(LAST_RECORD_MS, () => reject(late))
        }
        if (this.#stopped.aborted) onStopped()
        else this.#stopped.addEventListener('abort', onStopped, { once: true })
        const release = (): void => {
          disarm()
          this.#stopped.removeEventListener('abort', onStopped)
        }
        this.#within
          .run(true, async () => onRecord(record))
          .finally(release)
          .then(resolve, reject)
      })
  }
}
