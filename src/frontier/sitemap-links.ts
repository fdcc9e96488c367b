import type { Page } from '../message/generated/types.ts'
import type { LinkBatch } from './frontier-page.ts'
import { SitemapScanner } from './sitemap-scanner.ts'
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
