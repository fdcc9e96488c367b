import { CrawlEnd } from '../../src/control/crawls/crawl-end.ts'
import { produce } from '../../src/control/crawls/produce.ts'
import type { Deployment } from './deployment.ts'
import type { LinkedSite } from './linked-site.ts'

/** What the fault runs crawl a linked site with: extractors, the pace of its hosts, seeds, and the look for its end. */
const PAGE = 'name: page\nversion: 1\nfields: { title: title, heading: { select: h1, required: true } }\n'
const LINK = "name: link\nversion: 1\neach: 'li'\nfields: { target: 'a@href', text: a }\nmatch: { paths: ['/', '/page/*', '/flaky/*'] }\n"

/** Writes the extractors into the folder. Shape: the arguments that name them. */
export function linkedExtractors(deployment: Deployment): string[] {
  return ['--extractor', deployment.file('page.yaml', PAGE), '--extractor', deployment.file('link.yaml', LINK)]
}

export function linkedSettings(site: LinkedSite, pace: { readonly ratePerSecond: number; readonly concurrency: number }): string[] {
  return [
    `politeness.default.ratePerSecond=${pace.ratePerSecond}`,
    `politeness.default.concurrency=${pace.concurrency}`,
    'retry.firstDelay=1s',
    `crawl.maxDepth=${site.depth}`,
  ]
}

/** As `produce` does from the command line. */
export async function produceSeeds(deployment: Deployment, site: LinkedSite, crawlId: string): Promise<void> {
  const seeds = site.seeds().map((text) => ({ text, line: undefined }))
  const template = { crawlId, lane: 'normal' as const, maxDepth: site.depth, headers: {}, meta: {} }
  await deployment.read(async (runtime) => {
    const state = await runtime.state()
    const accept = (taskIds: readonly string[]): Promise<unknown> => state.accept(crawlId, taskIds)
    await produce(runtime, seeds, { ...template, notBefore: null, expiresAt: null, ifChanged: false }, { accept })
  })
}

/** Every task has come to an end, and its page was read by frontier and extract: of one crawl, or of all that is queued. */
export function isCrawlOver(deployment: Deployment, crawlId?: string): Promise<boolean> {
  return deployment.read(async (runtime) => {
    const end = new CrawlEnd(runtime, { ...(crawlId === undefined ? {} : { crawlId }), maxWaitMs: 600_000 })
    // The end is told by two looks of one after the other.
    for (let looks = 0; looks < 5; looks += 1) {
      if ((await end.check()).kind === 'ended') return true
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    return false
  })
}
