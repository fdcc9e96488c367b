import { TagReader } from '../message/tag-reader.ts'
import { faultOf, MAX_URL_LENGTH } from '../url/parse-url.ts'

/**
 * Links of a page by its tags: no tree is built, so a page costs a third of a parse. `<base href>` counts from the first one on, as
 * in browsers; links before it are resolved against it too. Links within `<template>`, comments and scripts are none.
 *
 * The text may come in pieces, so that a large page does not hold up the event loop; nor do its links, which come in batches. What is
 * longer than any URL that can be fetched is left out before it is compared with others: a set tells long texts apart by their length alone
 * and then by each character, and below a long base each link is as long as that.
 */
export class LinkScanner {
  readonly #maxLinks: number
  /** As they stand in the page, but without fragment. */
  readonly #references = new Set<string>()
  readonly #reader: TagReader
  #base: string | undefined
  #templateDepth = 0
  #passedOver = 0

  /** `maxLinks`: different ones that are taken; further ones are counted alone. */
  constructor(maxLinks: number) {
    this.#maxLinks = maxLinks
    this.#reader = new TagReader(['href'], {
      onOpen: (name, attributes) => this.#onOpen(name, attributes.get('href')),
      onClose: (name) => {
        if (name === 'template' && this.#templateDepth > 0) this.#templateDepth -= 1
      },
    })
  }

  write(text: string): void {
    this.#reader.write(text)
  }

  /** One that was found elsewhere. */
  add(href: string): void {
    const reference = withoutFragment(href)
    if (reference.length > MAX_URL_LENGTH) return
    if (this.#references.size < this.#maxLinks) this.#references.add(reference)
    else if (!this.#references.has(reference)) this.#passedOver += 1
  }

  /** The text is at its end. */
  end(): void {
    this.#reader.end()
  }

  /** Different links that are taken. */
  get taken(): number {
    return this.#references.size
  }

  /** Links beyond the bound. */
  get passedOver(): number {
    return this.#passedOver
  }

  /**
   * What was found, `size` references at a time. Shape: absolute http(s) URLs without fragment and without a user, in document order,
   * each once; what can't be fetched is left out. Errors: none; any text gives an answer.
   */
  *batches(pageUrl: string, size: number): Generator<readonly string[]> {
    const base = this.#baseOf(pageUrl)
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

  /** Shape: undefined where it is too long, so that only absolute links are links. */
  #baseOf(pageUrl: string): string | undefined {
    if (this.#base !== undefined && this.#base.length > MAX_URL_LENGTH) return undefined
    const base = this.#base === undefined ? pageUrl : (webUrl(this.#base, pageUrl)?.href ?? pageUrl)
    return base.length > MAX_URL_LENGTH ? undefined : base
  }

  #onOpen(name: string, href: string | undefined): void {
    if (name === 'template') this.#templateDepth += 1
    if (this.#templateDepth > 0 || href === undefined) return
    if (name === 'base') this.#base ??= href
    else if (name === 'a' || name === 'area') this.add(href)
  }
}

function withoutFragment(href: string): string {
  const at = href.indexOf('#')
  return at === -1 ? href : href.slice(0, at)
}

/** A user is left out, as most crawlers do: of a mail address that was written as a URL it is the address that is meant, and no site is asked with somebody's password. */
function webUrl(reference: string, base: string | undefined): URL | undefined {
  if (!URL.canParse(reference, base)) return undefined
  const url = new URL(reference, base)
  url.username = ''
  url.password = ''
  url.hash = ''
  return faultOf(url) === undefined ? url : undefined
}
