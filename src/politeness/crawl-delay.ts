interface SitePace {
  readonly ratePerSecond: number
  readonly crawlDelayMs: number
}

/**
 * From one start to the next at a site, at least. A crawl delay counts from the end of a request, so one runs at a time, whatever the
 * concurrency. `rateFactor`: the share of its pace that the site bears. Units: ms.
 */
export function spacingOf({ ratePerSecond, crawlDelayMs }: SitePace, rateFactor = 1): number {
  return Math.max(ratePerSecond > 0 ? 1_000 / ratePerSecond : 0, crawlDelayMs) / rateFactor
}

/** Requests of a site at the same time. */
export function requestsAtOnce({ concurrency, crawlDelayMs }: { readonly concurrency: number; readonly crawlDelayMs: number }): number {
  return crawlDelayMs > 0 ? 1 : concurrency
}

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
