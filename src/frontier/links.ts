import { Parser } from 'htmlparser2'

/**
 * Links of a page by tokenizer: no tree is built, so a page costs a third of a parse. `<base href>` counts from the first one on, as
 * in browsers; links before it are resolved against it too.
 *
 * Shape: text of an HTML page and the URL that answered -> absolute URLs without fragment, in document order, each once; what is no
 * http(s) URL is left out. Links within `<template>`, comments and scripts are none. Errors: none; any text gives an answer.
 */
export function extractLinks(html: string, pageUrl: string): string[] {
  const hrefs: string[] = []
  let base: string | undefined
  let templateDepth = 0
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (name === 'template') templateDepth += 1
        if (templateDepth > 0) return
        const href = attributes.href
        if (href === undefined) return
        if (name === 'base') base ??= href
        else if (name === 'a' || name === 'area') hrefs.push(href)
      },
      onclosetag(name) {
        if (name === 'template' && templateDepth > 0) templateDepth -= 1
      },
    },
    { decodeEntities: true, lowerCaseTags: true, lowerCaseAttributeNames: true },
  )
  parser.end(html)
  return resolveLinks(hrefs, baseUrl(base, pageUrl))
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
