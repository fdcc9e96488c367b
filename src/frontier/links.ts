import { TagReader } from '../message/tag-reader.ts'

/**
 * Links of a page by its tags: no tree is built, so a page costs a third of a parse. `<base href>` counts from the first one on, as
 * in browsers; links before it are resolved against it too. Links within `<template>`, comments and scripts are none.
 *
 * The text may come in pieces, so that a large page does not hold up the event loop.
 */
export class LinkScanner {
  readonly #hrefs: string[] = []
  readonly #reader: TagReader
  #base: string | undefined
  #templateDepth = 0

  constructor() {
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

  /**
   * Shape: absolute URLs without fragment, in document order, each once; what is no http(s) URL is left out. Errors: none; any text
   * gives an answer.
   */
  end(pageUrl: string): string[] {
    this.#reader.end()
    return resolveLinks(this.#hrefs, baseUrl(this.#base, pageUrl))
  }

  #onOpen(name: string, href: string | undefined): void {
    if (name === 'template') this.#templateDepth += 1
    if (this.#templateDepth > 0 || href === undefined) return
    if (name === 'base') this.#base ??= href
    else if (name === 'a' || name === 'area') this.#hrefs.push(href)
  }
}

/** Links of a whole text at once. */
export function extractLinks(html: string, pageUrl: string): string[] {
  const scanner = new LinkScanner()
  scanner.write(html)
  return scanner.end(pageUrl)
}

/** Absolute http(s) URLs without fragment, each once, in order. */
export function resolveLinks(hrefs: readonly string[], base: string): string[] {
  const found = new Set<string>()
  for (const href of hrefs) {
    const url = webUrl(href, base)
    if (url !== undefined) found.add(url.href)
  }
  return [...found]
}

function baseUrl(base: string | undefined, pageUrl: string): string {
  return base === undefined ? pageUrl : (webUrl(base, pageUrl)?.href ?? pageUrl)
}

function webUrl(reference: string, base: string): URL | undefined {
  if (!URL.canParse(reference, base)) return undefined
  const url = new URL(reference, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined
  url.hash = ''
  return url
}
