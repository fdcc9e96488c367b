import type { PolitenessKey } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { spacingOf } from '../politeness/crawl-delay.ts'
import type { BodyRoom, ComingBody } from './body-room.ts'
import type { QueuedTask } from './queued-task.ts'
import type { Scheduler } from './scheduler.ts'
import { isSpaced } from './send-spacing.ts'
import { type SiteLease, WAKE_AHEAD_MS } from './site-leases.ts'

/**
 * The place of one task in the scheduler, given back exactly once whatever happens: each step is legal only after the one before it,
 * and `close` ends whatever is still open.
 */
export class Turn implements ComingBody {
  readonly #scheduler: Scheduler<QueuedTask>
  readonly #queued: QueuedTask
  readonly #room: BodyRoom
  readonly #clock: Clock
  readonly #onChange: () => void
  #phase: 'probing' | 'requesting' | 'over' = 'probing'
  #bytes = 0
  #giveUp: (() => void) | undefined

  constructor(parts: { scheduler: Scheduler<QueuedTask>; queued: QueuedTask; room: BodyRoom; clock: Clock; onChange: () => void }) {
    this.#scheduler = parts.scheduler
    this.#queued = parts.queued
    this.#room = parts.room
    this.#clock = parts.clock
    this.#onChange = parts.onChange
  }

  get key(): PolitenessKey {
    return this.#queued.key
  }

  /** What it holds in memory. */
  get bytes(): number {
    return this.#bytes
  }

  /** Ends the request whose body is coming; undefined while none is. */
  get giveUp(): (() => void) | undefined {
    return this.#giveUp
  }

  /** The limiter gave a lease. */
  admitted({ keys: [pace], concurrency, startMono }: Pick<SiteLease, 'keys' | 'concurrency' | 'startMono'>): void {
    this.#phase = 'requesting'
    const now = this.#clock.mono()
    const site = this.#scheduler.site(this.#queued.key)
    const intervalMs = 1_000 / pace.ratePerSecond
    if (site !== undefined) {
      site.paceIntervalMs = spacingOf(pace)
      site.waitReason = 'rate'
    }
    // Until then the limiter would only say so.
    if (isSpaced(pace)) this.#scheduler.sleep(this.#queued.key, startMono + intervalMs - WAKE_AHEAD_MS, now)
    this.#scheduler.setConcurrency(this.#queued.key, concurrency, now)
    this.#scheduler.admitted(this.#queued, now)
    this.holds(this.#scheduler.expectedBytes)
    this.#onChange()
  }

  /** Back to the head of its site, which sleeps. `reason`: as the limiter says it. */
  putBack(waitMs: number, reason: string): void {
    this.#phase = 'over'
    const now = this.#clock.mono()
    const site = this.#scheduler.site(this.#queued.key)
    if (site !== undefined) site.waitReason = reason
    this.#scheduler.putBack(this.#queued, now + waitMs, now)
    this.#onChange()
  }

  /** It waits for something of its own, and its site goes on without it. */
  setAside(waitMs: number): void {
    this.#phase = 'over'
    const now = this.#clock.mono()
    this.#scheduler.setAside(this.#queued, now + waitMs, now)
    this.#onChange()
  }

  /** No request of the task is under way any more. */
  leave(): void {
    if (this.#phase === 'over') return
    const now = this.#clock.mono()
    if (this.#phase === 'probing') this.#scheduler.dropped(this.#queued, now)
    else this.#scheduler.ended(this.#queued, now)
    this.#phase = 'over'
    this.#onChange()
  }

  /**
   * Bytes of a body that is still coming, which `giveUp` ends, or is about to be unpacked. Shape: undefined where that may go on at once.
   */
  receives(bytes: number, giveUp?: () => void): Promise<void> | undefined {
    if (bytes <= this.#scheduler.expectedBytes) return undefined
    this.#giveUp = giveUp
    this.#hold(bytes)
    return this.#room.wait(this)
  }

  /** Bytes that the task holds in memory from now on; its body is there. */
  holds(bytes: number): void {
    this.#hold(bytes)
    this.#room.leave(this)
  }

  close(): void {
    this.leave()
    if (this.#bytes === 0) return
    this.holds(0)
    this.#onChange()
  }

  #hold(bytes: number): void {
    this.#scheduler.hold(bytes - this.#bytes)
    this.#bytes = bytes
  }
}
