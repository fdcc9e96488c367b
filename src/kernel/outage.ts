import type { Clock } from './clock.ts'
import { errorText, isAway, isMillraceError } from './errors.ts'
import type { EventName } from './events.ts'
import type { Observer } from './observe.ts'

/** What a process stands on beside Kafka and the state store. Whoever needs it while it is away waits for it. */
export type Dependency = 'registry' | 'blobs'

const EVENTS_OF = {
  registry: { away: 'RegistryPaused', back: 'RegistryResumed' },
  blobs: { away: 'BlobStorePaused', back: 'BlobStoreResumed' },
} as const satisfies Record<Dependency, { readonly away: EventName; readonly back: EventName }>

/**
 * A call that has no answer after so long counts as one that failed: a network folder that hangs may never give one. Longer than one try
 * takes.
 */
const LATE_MS = 90_000
/** Who waits asks again much sooner: after so long without a call that failed nobody waits any more, and nothing is known. */
const STALE_MS = 300_000

/** Whether a dependency is away, as the calls of this process find it. Tells when that begins and ends, once each. */
export class Outage {
  readonly dependency: Dependency
  readonly #clock: Clock
  readonly #observer: Observer
  /** By what was tried: a disk that is full still reads. */
  readonly #failedMono = new Map<string, number>()

  constructor(dependency: Dependency, parts: { readonly clock: Clock; readonly observer: Observer }) {
    this.dependency = dependency
    this.#clock = parts.clock
    this.#observer = parts.observer
  }

  get isAway(): boolean {
    return [...this.#failedMono.values()].some((mono) => this.#clock.mono() - mono < STALE_MS)
  }

  /**
   * The call itself, and what it tells of all calls to the same end. Any answer says that the dependency is there, a refusal too. Errors:
   * as of the call.
   */
  async watch<T>(call: () => Promise<T>, end = 'read'): Promise<T> {
    const disarm = this.#clock.timer(LATE_MS, () => this.#failed(end, `no answer for ${LATE_MS / 1_000}s`), { unref: true })
    try {
      const answer = await call()
      this.#answered(end)
      return answer
    } catch (error) {
      if (isAway(error) || isMillraceError(error, 'DISK_FULL')) this.#failed(end, errorText(error))
      else this.#answered(end)
      throw error
    } finally {
      disarm()
    }
  }

  #failed(end: string, error: string): void {
    if (!this.isAway) this.#observer.emit(EVENTS_OF[this.dependency].away, { error })
    this.#failedMono.set(end, this.#clock.mono())
  }

  #answered(end: string): void {
    if (this.#failedMono.delete(end) && !this.isAway) this.#observer.emit(EVENTS_OF[this.dependency].back)
  }
}
