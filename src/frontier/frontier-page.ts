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

/** True where links of the page are followed at all: HTML with a final 2xx that could be decoded, in a crawl, not at its last depth. */
export function isFollowed(page: Page): boolean {
  if (page.crawlId === null || page.depth >= page.maxDepth || page.status < 200 || page.status >= 300) return false
  if (page.truncated === 'undecoded') return false
  return page.contentType === null || page.contentType === 'text/html' || page.contentType === 'application/xhtml+xml'
}

/**
 * Links of a page as tasks: in scope, each canonical URL once, one deeper than the page. Pure: the same page gives the same tasks,
 * ids included, so that a page that is read again claims and produces what it did before.
 */
export function pageCandidates(page: Page, links: readonly string[], inScope: (url: URL, seed: URL) => ScopeVerdict): PageCandidates {
  const seed = seedOf(page)
  const refused = new Map<string, number>()
  const candidates = new Map<string, Candidate>()
  for (const link of links) {
    const url = new URL(link)
    const verdict = inScope(url, seed)
    if (!verdict.inScope) {
      refused.set(verdict.reason, (refused.get(verdict.reason) ?? 0) + 1)
      continue
    }
    const identity = canonicalUrl(url)
    if (!candidates.has(identity)) candidates.set(identity, { task: linkTask(page, link, identity), domain: registrableDomain(url) })
  }
  return { candidates: [...candidates.values()], refused }
}

/** Whoever wrote the task may have written anything as its seed; what is no URL does not narrow the crawl to nothing. */
function seedOf({ seedUrl, url }: Page): URL {
  return new URL(seedUrl !== null && URL.canParse(seedUrl) ? seedUrl : url)
}

function linkTask(page: Page, url: string, identity: string): UrlTask {
  return newUrlTask({
    url,
    canonicalUrl: identity,
    taskId: linkTaskId(page.crawlId ?? '', identity, page.round),
    crawlId: page.crawlId,
    jobId: page.jobId,
    round: page.round,
    lane: page.lane,
    depth: page.depth + 1,
    maxDepth: page.maxDepth,
    parentUrl: page.finalUrl,
    seedUrl: page.seedUrl ?? page.url,
    // Links of a page that was fetched in any case are links like any other.
    dedup: page.dedup === 'none' ? 'crawl' : page.dedup,
    extractors: page.extractors,
    meta: page.meta,
    traceId: page.traceId,
  })
}
