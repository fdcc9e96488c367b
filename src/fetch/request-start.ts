import { type Clock, sleepUntil } from '../kernel/clock.ts'
import type { HttpExchange, HttpLimits, HttpRequest, HttpResult } from './http-exchange.ts'
import { SendSpacing } from './send-spacing.ts'
import type { SiteLease, SiteLeases } from './site-leases.ts'

export interface RequestStartOptions {
  readonly exchange: Pick<HttpExchange, 'request'>
  readonly leases: Pick<SiteLeases, 'isStale' | 'isOvertaken' | 'endsBefore' | 'startAgain' | 'sent'>
  readonly limits: HttpLimits
  readonly clock: Clock
}

/** What is asked for; the rest follows from the lease. */
type Content = Omit<HttpRequest, 'limits' | 'address' | 'beforeSent' | 'onSent' | 'signal'>

export interface Started {
  /** As it counts in the end. */
  readonly lease: SiteLease
  /** Undefined where nobody was asked, since the lease would not have lasted. */
  readonly asked: { readonly result: HttpResult /** Epoch ms. */; readonly startedAt: number; readonly sentMono: number } | undefined
}

/** Starts that a request takes, each after it has let one go by; a process that stands still all the time sends late in the end. */
const MAX_STARTS = 4

/**
 * Has each request leave at the moment of its lease, and no sooner after another one of its site than the pace allows. One that lets its
 * moment go by, since this process stood still or a connection had to be made first, takes another.
 */
export class RequestStart {
  readonly #options: RequestStartOptions
  readonly #spacing = new SendSpacing()

  constructor(options: RequestStartOptions) {
    this.#options = options
  }

  /**
   * `ask` is called when the moment has come. Errors: the signal's reason; those of the store other than STATE_UNAVAILABLE, which is waited
   * out.
   */
  async request(given: SiteLease, signal: AbortSignal, ask: () => Content): Promise<Started> {
    const { exchange, leases, limits, clock } = this.#options
    const { startMono, address } = given
    const { key } = pacedKey(given)
    const takenMono = Math.max(startMono, clock.mono() + this.#spacing.take(pacedKey(given), clock.mono()))
    await sleepUntil(clock, takenMono, signal)
    let lease = leases.isStale(given) ? await this.#again(given, takenMono, signal) : given
    // It must last for as long as the request may take.
    if (leases.endsBefore(lease, clock.mono() + limits.totalMs)) return { lease, asked: undefined }
    const startedAt = clock.now()
    let sentMono = clock.mono()
    let broken: unknown
    let isEnded = false
    const result = await exchange.request({
      ...ask(),
      limits,
      ...(address === undefined ? {} : { address }),
      beforeSent: async () => {
        try {
          if (leases.isOvertaken(lease)) lease = await this.#again(lease, takenMono, signal)
        } catch (error) {
          broken = error
          throw error
        }
        isEnded = leases.endsBefore(lease, clock.mono())
        if (isEnded) throw new Error('its lease has ended')
      },
      onSent: () => {
        sentMono = clock.mono()
        this.#spacing.sentAt(key, sentMono)
        leases.sent(lease)
      },
      signal,
    })
    if (isEnded) return { lease, asked: undefined }
    // Of the store, not of the site.
    if (broken !== undefined) throw broken
    return { lease, asked: { result, startedAt, sentMono } }
  }

  /**
   * The lease as it counts from another start, which has come. One that goes by as well, since the process stood still again, is asked for
   * again a few times. `takenMono`: the moment of this process that the request has let go by.
   */
  async #again(lease: SiteLease, takenMono: number, signal: AbortSignal): Promise<SiteLease> {
    const { leases, clock } = this.#options
    let [again, taken] = [lease, takenMono]
    for (let starts = 0; starts === 0 || (starts < MAX_STARTS && leases.isStale(again)); starts += 1) {
      // The store no longer knows it.
      if (leases.endsBefore(again, clock.mono())) break
      again = await leases.startAgain(again)
      const now = clock.mono()
      taken = Math.max(again.startMono, now + this.#spacing.takeAgain(pacedKey(again), taken, now))
      await sleepUntil(clock, taken, signal)
    }
    return again
  }
}

/** What the site is spaced by: its address, where that is paced as well. */
function pacedKey({ keys }: SiteLease): SiteLease['keys'][0] {
  return keys.at(-1) ?? keys[0]
}
