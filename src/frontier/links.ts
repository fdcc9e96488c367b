import { withEncodedQuery } from '../message/charset.ts'
import { TagReader } from '../message/tag-reader.ts'
import { MAX_URL_LENGTH } from '../url/parse-url.ts'
import { type LinkSet, webUrl, withoutFragment } from './link-set.ts'

/**
 * Links of a page by its tags: no tree is built, so a page costs a third of a parse. `<base href>` counts from the first one on, as
 * in browsers; links before it are resolved against it too. Links within `<template>`, comments and scripts are none.
 *
 * The text may come in pieces, so that a large page does not hold up the event loop.
 */
export class LinkScanner {
  readonly #links: LinkSet
  readonly #charset: string | null
  readonly #reader: TagReader
  #base: string | undefined
  #templateDepth = 0

  /** `charset`: in which the text stood. */
  constructor(links: LinkSet, charset: string | null) {
    this.#links = links
    this.#charset = charset
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

  /** The text is at its end. Shape: what its links are relative to; undefined where that is too long to be fetched. */
  end(pageUrl: string): string | undefined {
    this.#reader.end()
    if (this.#base !== undefined && this.#base.length > MAX_URL_LENGTH) return undefined
    const base = this.#base === undefined ? pageUrl : (webUrl(this.#base, pageUrl)?.href ?? pageUrl)
    return base.length > MAX_URL_LENGTH ? undefined : base
  }

  #onOpen(name: string, href: string | undefined): void {
    if (name === 'template') this.#templateDepth += 1
    if (this.#templateDepth > 0 || href === undefined) return
    if (name === 'base') {
      if (!this.#reader.isForeign) this.#base ??= href
    } else if (name === 'a' || name === 'area') this.#addLink(withoutFragment(href))
  }

  /** Encoding takes time by its length, and makes nothing shorter. */
  #addLink(reference: string): void {
    if (reference.length <= MAX_URL_LENGTH) this.#links.add(withEncodedQuery(reference, this.#charset))
  }
}
