import type { Config } from '../../config/options.ts'
import type { PageBudget } from '../../fetch/admission.ts'
import type { ControlLog } from '../../kafka/control-log.ts'
import type { Clock } from '../../kernel/clock.ts'
import { commandPayload, subject } from '../../message/command.ts'
import type { UrlTask } from '../../message/generated/types.ts'
import { parseSiteOverride, type SiteOverride } from '../../message/site-override.ts'
import { createPolicy, type Policy } from '../../politeness/policy.ts'
import { domainOfUrl } from '../../url/registrable-domain.ts'
import { compileScope, type ScopeVerdict } from '../../url/scope.ts'

function pageBudgets(config: Config, crawlId: string, domain: string): readonly PageBudget[] {
  return [
    { id: `crawl:${crawlId}:pages`, crawlId, limit: config['crawl.maxPages'], reason: 'max-pages' },
    { id: `crawl:${crawlId}:pages:${domain}`, crawlId, limit: config['crawl.maxPagesPerDomain'], reason: 'max-pages-per-domain' },
  ]
}

/** Budgets of a crawl, as fetch reserves them and the frontier asks whether they are full; they are forgotten with it. */
export function taskBudgets(config: Config): (task: UrlTask) => readonly PageBudget[] {
  return ({ crawlId, url, sitemapLevel }) => {
    // Whoever wrote the task may have written anything as its URL; then no page is ever fetched for it, and it holds no place.
    const domain = domainOfUrl(url)
    if (crawlId === null || domain === undefined) return []
    return sitemapLevel > 0 ? sitemapBudgets(config, crawlId, domain) : pageBudgets(config, crawlId, domain)
  }
}

/** Files, of up to 50,000 URLs each. They take no places of pages, and there is never more need of them than of pages. */
const MAX_SITEMAPS_PER_DOMAIN = 1_000

function sitemapBudgets(config: Config, crawlId: string, domain: string): readonly PageBudget[] {
  const perDomain = Math.min(MAX_SITEMAPS_PER_DOMAIN, config['crawl.maxPagesPerDomain'])
  return [
    { id: `crawl:${crawlId}:sitemaps`, crawlId, limit: config['crawl.maxPages'], reason: 'max-sitemaps' },
    { id: `crawl:${crawlId}:sitemaps:${domain}`, crawlId, limit: perDomain, reason: 'max-sitemaps-per-domain' },
  ]
}

/** The live override of this very domain. Errors: MESSAGE_INVALID where what stands on control is no JSON. */
export function overrideOf(control: Pick<ControlLog, 'get'>, domain: string): SiteOverride | undefined {
  return parseSiteOverride(overridePayload(control, domain))
}

/** The same as it was written, with what is not known here. */
export function overridePayload(control: Pick<ControlLog, 'get'>, domain: string): unknown {
  const command = control.get(subject.site(domain))
  return command === undefined || command.kind === 'delete' ? undefined : commandPayload(command)
}

/** Pace by URL: configuration, and live overrides on control. `instead`: what is taken to stand there of a domain. */
export function paceRules(
  config: Config,
  control: Pick<ControlLog, 'get'>,
  clock: Pick<Clock, 'now'>,
  instead?: { readonly domain: string; readonly override: SiteOverride | undefined },
): Policy {
  return createPolicy({
    key: config['politeness.key'],
    default: {
      ratePerSecond: config['politeness.default.ratePerSecond'],
      burst: config['politeness.default.burst'],
      concurrency: config['politeness.default.concurrency'],
    },
    rules: config['politeness.rules'],
    now: () => clock.now(),
    overrideOf: (domain) => (domain === instead?.domain ? instead.override : overrideOf(control, domain)),
  })
}

export function linkScope(config: Config): (url: URL, seed: URL) => ScopeVerdict {
  return compileScope({ kind: config['crawl.scope'] })
}

/** A redirect within a crawl stays within its scope; a task that stands alone may go anywhere. */
export function hopScope(config: Config): (target: URL, task: UrlTask) => boolean {
  const inScope = linkScope(config)
  return (target, task) => {
    if (task.crawlId === null) return true
    const seed = task.seedUrl !== null && URL.canParse(task.seedUrl) ? task.seedUrl : task.url
    const verdict = inScope(target, new URL(seed))
    // The bounds against endless paths are for links: a redirect has its own bound.
    return verdict.inScope || verdict.reason !== 'out-of-scope'
  }
}
