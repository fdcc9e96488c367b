/** Who asked for the delay that is kept. */
export type CrawlDelaySource = 'none' | 'configured' | 'robots'

export interface EffectiveCrawlDelay {
  /** From the end of a request to the start of the next. */
  readonly crawlDelayMs: number
  readonly source: CrawlDelaySource
  /** The site asks for more than `maxMs`: it is parked, not asked sooner. */
  readonly isParked: boolean
}

/**
 * Crawl delay of one site: the larger of what is configured and what its robots.txt asks for. A delay is never shortened; one that
 * is longer than `maxMs` is kept as well and parks the site. Units: ms. RFC 9309 has no Crawl-delay; this is what sites mean by it.
 */
export function effectiveCrawlDelay(configuredMs: number, robotsMs: number | undefined, maxMs: number): EffectiveCrawlDelay {
  const asked = robotsMs ?? 0
  if (asked > configuredMs) return { crawlDelayMs: asked, source: 'robots', isParked: asked > maxMs }
  return { crawlDelayMs: configuredMs, source: configuredMs > 0 ? 'configured' : 'none', isParked: false }
}
