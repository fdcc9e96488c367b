import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface SiteOptions {
  /** Until an answer begins. */
  readonly latencyMs: number
  /** Of the HTML before it is packed. 61,000 where not given. */
  readonly pageBytes?: number
  /** Pages of the corpus instead of made ones: `/NUMBER` is `loadPages()[NUMBER]`, and so on in turn. */
  readonly corpus?: boolean
  /** Hosts that take a request and say nothing. */
  readonly silentHosts?: readonly string[]
  /** Hosts that send a byte of the body a second. */
  readonly drippingHosts?: readonly string[]
  readonly keepLog: boolean
}

/** One request as the site saw it. Times: epoch ms with fractions, of the clock that all processes of the machine share. */
export interface SiteRequestLog {
  readonly host: string
  readonly path: string
  readonly at: number
  endedAt: number | undefined
}

export type SiteMessage = 'log'

/** A site in a process of its own; every name below .example leads to it. */
export class BenchSite {
  readonly port: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(options: SiteOptions): Promise<BenchSite> {
    const child = fork(fileURLToPath(new URL('./site-main.ts', import.meta.url)), [JSON.stringify(options)], { serialization: 'advanced' })
    const [port] = (await once(child, 'message')) as [number]
    return new BenchSite(child, port)
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  url(host: string, index: number): string {
    return `http://${host}:${this.port}/${index}`
  }

  /** What was asked since the last call. */
  async takeLog(): Promise<SiteRequestLog[]> {
    this.#child.send('log' satisfies SiteMessage)
    const [log] = (await once(this.#child, 'message')) as [SiteRequestLog[]]
    return log
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.disconnect()
    await ended
  }
}

export function hostNames(count: number, name = 'site'): string[] {
  return Array.from({ length: count }, (_, index) => `${name}${index}.example`)
}
