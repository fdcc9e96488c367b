import type { Observer } from '../kernel/observe.ts'
import type { Page } from '../message/generated/types.ts'
import { domainOfUrl } from '../url/registrable-domain.ts'
import type { RunResult } from './page-runner.ts'
import { OTHER_DOMAINS, TopDomains } from './top-domains.ts'

interface Counts {
  readonly extractor: string
  readonly version: number
  readonly domain: string
  readonly results: { records: number; none: number; failed: number }
  records: number
  /** By field. */
  readonly nulls: Map<string, number>
  readonly invalid: Map<string, number>
}

/** A page of one extractor gives up to a dozen figures: they are told together for so many pages. */
const PAGES = 64
const DOMAINS = 20

/**
 * What extractors give, by version, domain and field, as metrics: pages by result, records, nulls and values without the type of their
 * field. Their ratios are what shows that a site has changed under an extractor. Labels are bounded by the extractors that are loaded, and
 * by the domains that give most pages.
 */
export class YieldCounts {
  readonly #observer: Observer
  readonly #domains: TopDomains
  readonly #counts = new Map<string, Counts>()
  #pages = 0

  /** Shape: `domains` have labels of their own, the rest is `other`. */
  constructor(observer: Observer, domains = DOMAINS) {
    this.#observer = observer
    this.#domains = new TopDomains(domains)
  }

  add(version: number, page: Pick<Page, 'finalUrl'>, result: RunResult): void {
    // Another program may have written the page.
    const domain = domainOfUrl(page.finalUrl) ?? OTHER_DOMAINS
    const { extractor } = result
    const key = `${extractor}:${version}:${domain}`
    const counts = this.#counts.get(key) ?? fresh(extractor, version, domain)
    this.#counts.set(key, counts)
    if (result.kind === 'failure') counts.results.failed += 1
    else {
      counts.results[result.records.length === 0 ? 'none' : 'records'] += 1
      counts.records += result.records.length
      addAll(counts.nulls, result.nulls)
      addAll(counts.invalid, result.invalid)
    }
    if (domain !== OTHER_DOMAINS) this.#domains.add(domain)
    this.#pages += 1
    if (this.#pages >= PAGES) this.tell()
  }

  tell(): void {
    this.#pages = 0
    for (const counts of this.#byLabel()) {
      const { extractor, version, domain, results, records, nulls, invalid } = counts
      const about = { extractor, version, domain }
      for (const [result, count] of Object.entries(results)) if (count > 0) this.#observer.emit('PagesRead', { ...about, result, count })
      if (records > 0) this.#observer.emit('RecordsGiven', { ...about, count: records })
      for (const [field, count] of nulls) this.#observer.emit('FieldsNull', { ...about, field, count })
      for (const [field, count] of invalid) this.#observer.emit('FieldValuesInvalid', { ...about, field, count })
    }
    this.#counts.clear()
  }

  /** Domains without a label of their own together. */
  #byLabel(): Iterable<Counts> {
    const together = new Map<string, Counts>()
    for (const { extractor, version, domain, results, records, nulls, invalid } of this.#counts.values()) {
      const label = this.#domains.labelOf(domain)
      const key = `${extractor}:${version}:${label}`
      const counts = together.get(key) ?? fresh(extractor, version, label)
      together.set(key, counts)
      counts.results.records += results.records
      counts.results.none += results.none
      counts.results.failed += results.failed
      counts.records += records
      addAll(counts.nulls, Object.fromEntries(nulls))
      addAll(counts.invalid, Object.fromEntries(invalid))
    }
    return together.values()
  }
}

function fresh(extractor: string, version: number, domain: string): Counts {
  return { extractor, version, domain, results: { records: 0, none: 0, failed: 0 }, records: 0, nulls: new Map(), invalid: new Map() }
}

function addAll(counts: Map<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [field, count] of Object.entries(more)) counts.set(field, (counts.get(field) ?? 0) + count)
}
