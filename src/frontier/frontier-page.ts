import type { Page, UrlTask } from '../message/generated/types.ts'
import { linkTaskId } from '../message/ids.ts'
import { newUrlTask } from '../message/url-task.ts'
import { canonicalUrl } from '../url/canonical-url.ts'
import { registrableDomain } from '../url/registrable-domain.ts'
import type { ScopeVerdict } from '../url/scope.ts'

/** A link that may become a task, if nobody has claimed its URL. */
export interface Candidate {
  readonly task: UrlTask
  /** What is claimed within the crawl. A sitemap is apart from the page of its URL: neither takes it from the other. */
  readonly identity: string
  /** Registrable domain, for budgets. */
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
  /** Who claims them: whoever says the same may find them again. */
  readonly claimant: string
}

/** Links that are judged, claimed and published together; some milliseconds of work. */
const LINKS_AT_ONCE = 250
/** The same by what each carries of its page: fewer where that is much. */
const BYTES_AT_ONCE = 1_048_576
/** One that robots.txt names, and those of an index: indexes of indexes are against the protocol. */
const MAX_SITEMAP_LEVEL = 2

/**
 * As what the links of a page are looked for; undefined: none is followed. A final 2xx that could be decoded, in a crawl, not at its last
 * depth: HTML, and what may be a sitemap, because its task says so or a user gave it as a URL.
 */
export function readAs(page: Page): 'html' | 'sitemap' | undefined {
  const { crawlId, depth, maxDepth, status, truncated, contentType, sitemapLevel } = page
  if (crawlId === null || depth >= maxDepth || status < 200 || status >= 300 || truncated === 'undecoded') return undefined
  if (sitemapLevel > 0 || contentType === 'application/xml' || contentType === 'text/xml') return 'sitemap'
  return contentType === null || contentType === 'text/html' || contentType === 'application/xhtml+xml' ? 'html' : undefined
}

/**
 * Links of a page as tasks: in scope, each canonical URL once. Pure: the same page gives the same tasks, ids included, so that a page that
 * is read again claims and produces what it did before.
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
    const domain = registrableDomain(url)
    const refusal = batch.to === 'sitemaps' ? refusalOfSitemap(page, domain) : undefined
    if (refusal !== undefined) {
      refuse(refusal)
      continue
    }
    const canonical = canonicalUrl(url)
    const identity = batch.to === 'sitemaps' ? `sitemap ${canonical}` : canonical
    if (candidates.has(identity)) continue
    const taskId = linkTaskId(page.crawlId ?? '', identity, page.round)
    candidates.set(identity, { task: linkTask(page, batch, { url: link, canonicalUrl: canonical, taskId }), identity, domain })
  }
  return { candidates: [...candidates.values()], refused }
}

/** A site speaks for itself alone, whatever the scope: nobody is asked for files that somebody else says they have. */
function refusalOfSitemap({ finalUrl, sitemapLevel }: Page, domain: string): string | undefined {
  if (domain !== registrableDomain(new URL(finalUrl))) return 'foreign-sitemap'
  return sitemapLevel >= MAX_SITEMAP_LEVEL ? 'sitemaps-too-deep' : undefined
}

/** Whoever wrote the task may have written anything as its seed; what is no URL does not narrow the crawl to nothing. */
function seedOf({ seedUrl, url }: Page): URL {
  return new URL(seedUrl !== null && URL.canParse(seedUrl) ? seedUrl : url)
}

function linkTask(page: Page, { to, foundOn }: LinkBatch, link: Pick<UrlTask, 'url' | 'canonicalUrl' | 'taskId'>): UrlTask {
  return newUrlTask({
    ...link,
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

/** Links of which tasks are made together: each carries what its page carries. */
export function batchSize({ meta, finalUrl, seedUrl, url }: Page): number {
  const carried =
    finalUrl.length + (seedUrl ?? url).length + Object.entries(meta).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return Math.min(LINKS_AT_ONCE, Math.max(1, Math.floor(BYTES_AT_ONCE / (carried + 1))))
}
