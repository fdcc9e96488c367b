import { createHash } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'
import type { ForwardProxy } from './proxy-url.ts'

/** A proxy that nobody is sent through for a while. */
export interface ProxyOut {
  /** Without user and password. */
  readonly proxy: string
  readonly reason: ProxyFault
  /** ms until it is tried again. */
  readonly forMs: number
}

export type ProxyFault = 'proxy-down' | 'proxy-failed' | 'proxy-auth' | ProxySuspicion
/** What may be the target's fault as well. */
export type ProxySuspicion = 'proxy-unreached' | 'proxy-timeout' | 'proxy-reset'

interface Health {
  readonly label: string
  reason: ProxyFault
  /** Since it last worked. */
  failures: number
  /** Monotonic ms until which nobody is sent through it. */
  outUntilMono: number
  /** Hosts that could not be reached, or were cut off, since it last worked. */
  readonly unreached: Set<string>
  /** Monotonic ms at which a target last answered through it. */
  workedMono: number
}

const FIRST_OUT_MS = 10_000
/** Whoever refuses our credentials will refuse them for longer than a restart takes. */
const FIRST_OUT_AUTH_MS = 60_000
const MAX_OUT_MS = 600_000
const SUSPECT_HOSTS = 3
/** A crawl with dead sites meets several of them between two answers: who has worked lately works. */
const WORKS_FOR_MS = 30_000

/**
 * Which proxy a site is asked through. Sites spread over the proxies by the hash of both, so that a site keeps its proxy, in every worker
 * and after a restart, as long as that one works. A proxy that does not answer is left out for 10 s, doubled with each failure up to
 * 10 min; its sites go to the others meanwhile and come back with it.
 */
export class ProxyRing {
  readonly #clock: Clock
  readonly #observer: Observer
  readonly #health = new Map<string, Health>()

  constructor(clock: Clock, observer: Observer) {
    this.#clock = clock
    this.#observer = observer
  }

  /** Undefined: all of them are out. */
  pick(site: string, proxies: readonly ForwardProxy[]): ForwardProxy | undefined {
    const now = this.#clock.mono()
    const healthy = proxies.filter(({ id }) => (this.#health.get(id)?.outUntilMono ?? 0) <= now)
    return healthy.reduce<ForwardProxy | undefined>(
      (best, proxy) => (best === undefined || weight(site, proxy) > weight(site, best) ? proxy : best),
      undefined,
    )
  }

  /** ms until the first of them is tried again. */
  backInMs(proxies: readonly ForwardProxy[]): number {
    const now = this.#clock.mono()
    return Math.max(0, Math.min(...proxies.map(({ id }) => this.#health.get(id)?.outUntilMono ?? 0)) - now)
  }

  /** Those that are out now. */
  out(): ProxyOut[] {
    const now = this.#clock.mono()
    return [...this.#health.values()]
      .filter(({ outUntilMono }) => outUntilMono > now)
      .map(({ label, reason, outUntilMono }) => ({ proxy: label, reason, forMs: Math.ceil(outUntilMono - now) }))
  }

  failed(proxy: ForwardProxy, reason: ProxyFault, detail: string): void {
    const now = this.#clock.mono()
    const health = this.#health.get(proxy.id) ?? fresh(proxy)
    // Requests that were under way together fail together: that is one failure.
    if (health.outUntilMono > now) return
    health.failures += 1
    health.reason = reason
    const firstMs = reason === 'proxy-auth' ? FIRST_OUT_AUTH_MS : FIRST_OUT_MS
    const forMs = Math.min(MAX_OUT_MS, firstMs * 2 ** Math.min(20, health.failures - 1))
    health.outUntilMono = now + forMs
    health.unreached.clear()
    this.#health.set(proxy.id, health)
    this.#observer.emit('ProxyTakenOut', { proxy: proxy.label, reason, forMs, text: detail })
  }

  /**
   * It did not come through, or not in time, or cut the connection, which may be the target's fault. It is the proxy's where several
   * targets in a row end so and none has answered for a while; of one that was out for it, the first is enough. Shape: true where it may be
   * the proxy's, false where it works for others.
   */
  suspected(proxy: ForwardProxy, reason: ProxySuspicion, host: string, detail: string): boolean {
    const health = this.#health.get(proxy.id) ?? fresh(proxy)
    this.#health.set(proxy.id, health)
    health.unreached.add(host)
    const wasOut = health.failures > 0
    const areSeveral = health.unreached.size >= SUSPECT_HOSTS
    const works = !wasOut && this.#clock.mono() - health.workedMono < WORKS_FOR_MS
    if (wasOut || (areSeveral && !works)) this.failed(proxy, reason, detail)
    // Where an outage begins it has just worked: its sites are not to be parked for that.
    return areSeveral || !works
  }

  /** One answer clears it of all. */
  worked(proxy: ForwardProxy): void {
    const health = this.#health.get(proxy.id) ?? fresh(proxy)
    const wasOut = health.failures > 0
    health.failures = 0
    health.outUntilMono = 0
    health.unreached.clear()
    health.workedMono = this.#clock.mono()
    this.#health.set(proxy.id, health)
    if (wasOut) this.#observer.emit('ProxyReturned', { proxy: proxy.label })
  }
}

const fresh = ({ label }: ForwardProxy): Health => ({
  label,
  reason: 'proxy-timeout',
  failures: 0,
  outUntilMono: 0,
  unreached: new Set(),
  workedMono: Number.NEGATIVE_INFINITY,
})

/** Rendezvous hashing: taking one proxy away moves the sites of that one alone. */
function weight(site: string, proxy: ForwardProxy): number {
  return createHash('sha256').update(`${site} ${proxy.id}`).digest().readUIntBE(0, 6)
}
