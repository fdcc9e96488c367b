import type { UrlTask } from '../message/generated/types.ts'
import type { Claim, StateStore } from '../state/state-store.ts'
import { canonicalUrl } from '../url/canonical-url.ts'
import type { ChainRequest, HopAnswer } from './redirect.ts'
import type { StoreGate } from './store-gate.ts'

export interface ChainClaimsOptions {
  readonly state: Pick<StateStore, 'claim' | 'lookUpClaims'>
  readonly gate: StoreGate
  /** How long a claim with dedup `ttl` lives. */
  readonly claimTtlMs: number
}

/**
 * The seen set of a crawl for chains of redirects: a chain that leads to a page which the crawl has, or will have, ends there, and the
 * page at its end is nobody else's to fetch.
 *
 * Only the end of a chain is claimed, before its page is written: the frontier may read that at once, and a page that links to itself would
 * be asked for again. What stands between is a gateway perhaps (a consent, a look at cookies), through which every page of a site leads.
 */
export class ChainClaims {
  readonly #options: ChainClaimsOptions

  constructor(options: ChainClaimsOptions) {
    this.#options = options
  }

  /**
   * True where another task of the crawl has the target. A target of the chain itself is followed, and so is a hop that sets cookies: the
   * answer may be another one then.
   */
  async isKnown(task: UrlTask, { target, method, hop }: HopAnswer): Promise<boolean> {
    const claim = this.#claimOf(task, { target, method })
    if (claim === undefined || hop.setCookies.length > 0) return false
    const own = [task.url, ...task.redirects.map(({ url }) => url)]
    // A chain may come from another program, with anything in it.
    if (own.some((url) => URL.canParse(url) && canonicalUrl(new URL(url)) === claim.canonicalUrl)) return false
    const [verdict] = await this.#options.gate.run(() => this.#options.state.lookUpClaims([claim]))
    return verdict === 'known'
  }

  /** `last` was answered by a page, which is about to be written; a copy of the task finds its own claim, and goes on. */
  async claimEnd(task: UrlTask, last: Pick<ChainRequest, 'target' | 'method'>): Promise<void> {
    const claim = task.redirects.length === 0 ? undefined : this.#claimOf(task, last)
    if (claim !== undefined) await this.#options.gate.run(() => this.#options.state.claim([claim]))
  }

  #claimOf(
    { crawlId, round, taskId, dedup, sitemapLevel }: UrlTask,
    { target, method }: Pick<ChainRequest, 'target' | 'method'>,
  ): Claim | undefined {
    // A sitemap is no page that another task of the crawl could have.
    if (crawlId === null || dedup === 'none' || sitemapLevel > 0 || method !== 'GET') return undefined
    const ttl = dedup === 'ttl' ? { ttlMs: this.#options.claimTtlMs } : {}
    return { crawlId, canonicalUrl: canonicalUrl(target), round, claimant: taskId, ...ttl }
  }
}
