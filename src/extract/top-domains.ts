/** Domains that are counted; of more sites than that only the frequent ones are remembered. */
const REMEMBERED = 1_024
/** Pages below which a ratio says nothing of a site. */
const LEAST_PAGES = 16

export const OTHER_DOMAINS = 'other'

/**
 * Which domains have a label of their own on metrics. A site gets one for good, so that its counters only rise, once it has given sixteen
 * pages and at least half of an equal share (1 / 2n of all pages, of n labels); all others are `other`. Memory is bounded however
 * many sites there are. Source: Misra and Gries, Finding repeated elements, 1982.
 */
export class TopDomains {
  readonly #labels = new Set<string>()
  readonly #counts = new Map<string, number>()
  readonly #max: number
  #pages = 0

  /** Shape: `max` domains have labels; 0: none. */
  constructor(max: number) {
    this.#max = max
  }

  /** Counts pages of a domain. */
  add(domain: string, pages = 1): void {
    this.#pages += pages
    if (this.#labels.has(domain) || this.#labels.size >= this.#max) return
    const count = (this.#counts.get(domain) ?? 0) + pages
    this.#counts.set(domain, count)
    if (count >= LEAST_PAGES && count * 2 * this.#max >= this.#pages) {
      this.#labels.add(domain)
      this.#counts.delete(domain)
    } else if (this.#counts.size > REMEMBERED) this.#forget()
  }

  labelOf(domain: string): string {
    return this.#labels.has(domain) ? domain : OTHER_DOMAINS
  }

  #forget(): void {
    for (const [domain, count] of this.#counts) {
      if (count <= 1) this.#counts.delete(domain)
      else this.#counts.set(domain, count - 1)
    }
  }
}
