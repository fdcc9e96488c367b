import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { searchTexts } from '../../../../src/control/crawls/url-search.ts'
import { createMessageCodec } from '../../../../src/message/codec.ts'
import { createSchemaStore } from '../../../../src/message/schema-store.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'
import { canonicalUrl } from '../../../../src/url/canonical-url.ts'

const codec = createMessageCodec({ schemaStore: createSchemaStore() })

function isFoundIn(bytes: Buffer, url: string): boolean {
  return searchTexts(new URL(url)).some((text) => bytes.includes(text))
}

describe('the texts by which messages about a URL are found', () => {
  it.each([
    ['https://a.example/catalogue/item-4711.html?ref=x', ['item-4711.html']],
    ['https://a.example/b%C3%BCcher/verzeichnis', ['verzeichnis']],
  ])('of %s are its longest plain run', (url, texts) => {
    expect(searchTexts(new URL(url)).map(String)).toEqual(texts)
  })

  it.each(['https://a.example/', 'https://a.example/b/', 'https://a.example/?q=1'])(
    'of %s are the whole of it, and no longer URL',
    (url) => {
      const longer = Buffer.from(JSON.stringify({ url: `${url}and-more` }))
      expect(isFoundIn(longer, url)).toBe(false)
      expect(isFoundIn(codec.encode('UrlTask', newUrlTask({ url: `${url}and-more` }), 'urls'), url)).toBe(false)
      expect(isFoundIn(Buffer.from(JSON.stringify({ url })), url)).toBe(true)
    },
  )

  it.each([
    '{"url":"HTTPS://A.example:443/catalogue/./item-4711.html#top"}',
    String.raw`{"url":"https:\/\/a.example\/catalogue\/item-4711.html"}`,
  ])('find another spelling in %s', (json) => {
    expect(isFoundIn(Buffer.from(json), 'https://a.example/catalogue/item-4711.html')).toBe(true)
  })

  it('lie in every task of ours, whatever the URL', () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true }), (text) => {
        const url = new URL(text)
        const task = newUrlTask({ url: url.href, canonicalUrl: canonicalUrl(url), taskId: 't' })
        expect(isFoundIn(codec.encode('UrlTask', task, 'urls'), text)).toBe(true)
      }),
    )
  })
})
