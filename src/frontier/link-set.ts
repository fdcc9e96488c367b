import { faultOf, MAX_URL_LENGTH } from '../url/parse-url.ts'

/**
 * Links of a page, a bounded number of different ones, which come out in batches, so that whoever makes a page of them holds up nobody.
 *
 * What is longer than any URL that can be fetched is left out before it is compared with others: a set tells long texts apart by their
 * length alone and then by each character, and below a long base each link is as long as that.
 */
export class LinkSet {
  readonly #maxLinks: number
  /** As they stand in the page, but without fragment. */
  readonly #references = new Set<string>()
  #passedOver = 0

  /** `maxLinks`: different ones that are taken; further ones are counted alone. */
  constructor(maxLinks: number) {
    this.#maxLinks = maxLinks
  }

  add(href: string): void {
    const reference = withoutFragment(href)
    if (reference.length > MAX_URL_LENGTH) return
    if (this.#references.size < this.#maxLinks) this.#references.add(reference)
    else if (!this.#references.has(reference)) this.#passedOver += 1
  }

  /** Different ones that are taken. */
  get size(): number {
    return this.#references.size
  }

  /** Beyond the bound, as often as they stand there. */
  get passedOver(): number {
    return this.#passedOver
  }

  /**
   * What was added, `size` references at a time. Shape: absolute http(s) URLs without fragment and without a user, in the order in which
   * they were added, each once; what can't be fetched is left out. Without a base only absolute links are links. Errors: none.
   */
  *batches(base: string | undefined, size: number): Generator<readonly string[]> {
    const known = new Set<string>()
    let batch: string[] = []
    let read = 0
    for (const reference of this.#references) {
      const link = webUrl(reference, base)?.href
      if (link !== undefined && link.length <= MAX_URL_LENGTH && !known.has(link)) {
        known.add(link)
        batch.push(link)
      }
      read += 1
      if (read % size !== 0) continue
      yield batch
      batch = []
    }
    if (batch.length > 0) yield batch
  }
}

export function withoutFragment(href: string): string {
  const at = href.indexOf('#')
  return at === -1 ? href : href.slice(0, at)
}

/**
 * A user is left out, as most crawlers do: of a mail address that was written as a URL it is the address that is meant, and no site is
 * asked with somebody's password. Shape: undefined for what can't be fetched, whatever its length.
 */
export function webUrl(reference: string, base: string | undefined): URL | undefined {
  if (!URL.canParse(reference, base)) return undefined
  const url = new URL(reference, base)
  url.username = ''
  url.password = ''
  url.hash = ''
  return faultOf(url) === undefined ? url : undefined
}
