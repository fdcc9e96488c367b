import type { Page } from '../message/generated/types.ts'
import type { LinkBatch } from './frontier-page.ts'
import { LinkSet } from './link-set.ts'
import { MAX_SITEMAPS_PER_FILE, SitemapScanner } from './sitemap-scanner.ts'
import { sitemapText } from './sitemap-text.ts'

/** What a sitemap leads to, as it is read: nothing of it is held but the file. Shape: what the file was, in the end. */
export async function* sitemapLinks(
  { finalUrl, fetchId }: Pick<Page, 'finalUrl' | 'fetchId'>,
  file: Buffer,
  { size, breath }: { readonly size: number; readonly breath: () => Promise<void> },
): AsyncGenerator<LinkBatch, Pick<SitemapScanner, 'kind' | 'passedOver'>> {
  const scanner = new SitemapScanner(finalUrl)
  const found = function* (): Generator<LinkBatch> {
    const { pages, sitemaps } = scanner.take()
    for (const [to, links] of Object.entries({ pages, sitemaps }) as [LinkBatch['to'], readonly string[]][])
      for (let start = 0; start < links.length; start += size)
        yield { links: links.slice(start, start + size), to, foundOn: finalUrl, claimant: fetchId }
  }
  for await (const text of sitemapText(file)) {
    scanner.write(text)
    yield* found()
    if (scanner.isDone) break
    await breath()
  }
  scanner.end()
  yield* found()
  return scanner
}

/** The first ones that a robots.txt names. */
export function* namedSitemaps(urls: readonly string[], robotsUrl: string, size: number): Generator<LinkBatch> {
  const named = new LinkSet(MAX_SITEMAPS_PER_FILE)
  for (const url of urls) named.add(url)
  for (const links of named.batches(undefined, size)) yield { links, to: 'sitemaps', foundOn: robotsUrl, claimant: robotsUrl }
}
