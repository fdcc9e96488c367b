import type { Page, UrlTask } from '../message/generated/types.ts'
import { linkTaskId } from '../message/ids.ts'
import { newUrlTask } from '../message/url-task.ts'
import { canonicalUrl } from '../url/canonical-url.ts'
import { registrableDomain } from '../url/registrable-domain.ts'
import type { ScopeVerdict } from '../url/scope.ts'

/** A link that may become a task, if nobody has claimed its URL. */
export interface Candidate {
  readonly task: UrlTask
  /** Registrable domain, for page budgets. */
  readonly domain: string
}

/** What became of the links of a page, before anybody is asked about claims. */
export interface PageCandidates {
  readonly candidates: readonly Candidate[]
  /** Links that are not followed, by reason. */
  readonly refused: ReadonlyMap<string, number>
}

/** Links that were found together. */
export interface LinkBatch {
  /** Absolute, each once. */
  readonly links: readonly string[]
  /** Sitemaps are of the page's own depth: it is their URLs that are one deeper. */
  readonly to: 'pages' | 'sitemaps'
  /** URL of what held them. */
  readonly foundOn: string
}

/** Sitemaps that name each other: one that robots.txt names, two indexes below it. */
const MAX_SITEMAP_LEVEL = 3

/**
 * As what the links of a page are looked for; undefined: none is followed. A final 2xx that could be decoded, in a crawl, not at its last depth: HTML,
 * and what may be a sitemap, because its task says so or a user gave it as a URL.
 */
export function readAs(page: Page): 'html' | 'sitemap' | undefined {
  const { crawlId, depth, maxDepth, status, truncated, contentType, sitemapLevel } = page
  if (crawlId === null || depth >= maxDepth || status < 200 || status >= 300 || truncated === 'undecoded') return undefined
  if (sitemapLevel > 0 || contentType === 'application/xml' || contentType === 'text/xml') return 'sitemap'
  return contentType === null || contentType === 'text/html' || contentType === 'application/xhtml+xml' ? 'html' : undefined
}

/**
 * Links of a page as tasks: in scope, each canonical URL once. Pure: the same page gives the same tasks,
 * ids included, so that a page that is read again claims and produces what it did before.
 */
export function pageCandidates(page: Page, batch: LinkBatch, inScope: (url: URL, seed: URL) => ScopeVerdict): PageCandidates {
  const seed = seedOf(page)
  const refused = new Map<string, number>()
  const candidates = new Map<string, Candidate>()
  const refuse = (reason: string): void => void refused.set(reason, (refused.get(reason) ?? 0) + 1)
  for (const link of batch.links) {
    const url = new URL(link)
    const verdict = inScope(url, seed)
    if (!verdict.inScope) {
      refuse(verdict.reason)
      continue
    }
    if (batch.to === 'sitemaps' && page.sitemapLevel >= MAX_SITEMAP_LEVEL) {
      refuse('sitemaps-too-deep')
      continue
    }
    const identity = canonicalUrl(url)
    if (!candidates.has(identity)) candidates.set(identity, { task: linkTask(page, batch, link, identity), domain: registrableDomain(url) })
  }
  return { candidates: [...candidates.values()], refused }
}

/** Whoever wrote the task may have written anything as its seed; what is no URL does not narrow the crawl to nothing. */
function seedOf({ seedUrl, url }: Page): URL {
  return new URL(seedUrl !== null && URL.canParse(seedUrl) ? seedUrl : url)
}

function linkTask(page: Page, { to, foundOn }: LinkBatch, url: string, identity: string): UrlTask {
  return newUrlTask({
    url,
    canonicalUrl: identity,
    taskId: linkTaskId(page.crawlId ?? '', identity, page.round),
    crawlId: page.crawlId,
    jobId: page.jobId,
    round: page.round,
    lane: page.lane,
    depth: to === 'pages' ? page.depth + 1 : page.depth,
    maxDepth: page.maxDepth,
    parentUrl: foundOn,
    seedUrl: page.seedUrl ?? page.url,
    // Links of a page that was fetched in any case are links like any other.
    dedup: page.dedup === 'none' ? 'crawl' : page.dedup,
    extractors: page.extractors,
    meta: page.meta,
    traceId: page.traceId,
    sitemapLevel: to === 'pages' ? 0 : page.sitemapLevel + 1,
  })
}
