import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'cheerio'
import sniff from 'html-encoding-sniffer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Page } from '../../src/message/generated/types.ts'
import { unpackPageBody } from '../../src/message/page-body.ts'
import type { CliResult } from '../support/cli.ts'
import { corpusNote, corpusPages, hasCorpus } from '../support/corpus.ts'
import { type CorpusSite, servedAs, startCorpusSite } from '../support/corpus-site.ts'
import { Deployment, type OnTopic, type RecordOnTopic } from '../support/deployment.ts'

const EXTRACTOR = `
name: real-page
version: 1
fields:
  title: title
  canonical: 'link[rel=canonical]@href'
  description: { meta: description }
  headings: { select: 'h1, h2, h3', type: list }
  links: { select: 'a@href', type: list }
`

/** As browsers read it, told by another implementation. */
function charsetOf(index: number, bytes: Buffer): string {
  return servedAs(index).contentType.includes('charset') ? 'UTF-8' : sniff(bytes, { defaultEncoding: 'UTF-8' })
}

describe.skipIf(!hasCorpus)(`160 real pages through Kafka and back${corpusNote}`, () => {
  const corpus = hasCorpus ? corpusPages() : []
  let site: CorpusSite
  let deployment: Deployment
  let result: CliResult
  let pages: OnTopic<Page>[]
  let records: OnTopic<RecordOnTopic>[]

  beforeAll(async () => {
    site = await startCorpusSite(corpus)
    deployment = await Deployment.open({ set: ['politeness.default.concurrency=4'] })
    const seeds = deployment.file('seeds.txt', corpus.map((page) => site.urlOf(page)).join('\n'))
    const extractor = deployment.file('real-page.yaml', EXTRACTOR)
    result = await deployment.run(['run', '--seeds', seeds, '--extractor', extractor, '--out', 'records.ndjson', '--quiet'])
    pages = await deployment.pages()
    records = await deployment.records()
  })

  afterAll(async () => {
    await deployment?.close()
    await site?.close()
  })

  it('fetches every page once, and the command says so', () => {
    expect(corpus).toHaveLength(160)
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' })
    expect(result.stdout).toMatch(/^160 URLs: 160 fetched$/m)
    expect(pages).toHaveLength(160)
    // One for robots.txt of each of the 8 origins.
    expect(site.requestCount()).toBe(168)
  })

  it('keeps every body byte for byte, whichever encoding it came in', async () => {
    const byUrl = new Map(pages.map((page) => [page.value.url, page.value]))
    for (const [index, { id, bytes }] of corpus.entries()) {
      const page = byUrl.get(site.urlOf({ id, bytes }))
      const unpacked = page === undefined ? undefined : await unpackPageBody(page)
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      const got = unpacked?.ok === true ? createHash('sha256').update(unpacked.bytes).digest('hex') : unpacked
      expect({ id, got, told: page?.bodySha256, length: page?.bodyLength, truncated: page?.truncated }).toEqual({
        id,
        got: sha256,
        told: sha256,
        length: bytes.length,
        truncated: null,
      })
      expect(page?.headers).toContainEqual({ name: 'content-type', value: servedAs(index).contentType })
      expect(page?.contentType).toBe('text/html')
      expect({ id, charset: page?.charset }).toEqual({ id, charset: charsetOf(index, bytes) })
      if (servedAs(index).gzip) expect(page?.bodyEncoding).toBe('gzip')
    }
  })

  it('gives one record a page, on the topic and in the file', () => {
    const lines = readFileSync(join(deployment.folder, 'records.ndjson'), 'utf8').trimEnd().split('\n')
    const ofFile = lines.map((line) => JSON.parse(line) as { recordId: string })
    expect(records).toHaveLength(160)
    expect(new Set(records.map(({ value }) => value.url)).size).toBe(160)
    expect(ofFile.map(({ recordId }) => recordId).sort()).toEqual(records.map(({ value }) => value.recordId).sort())
  })

  it('extracts what the page says: title, canonical link, description, headings, links', () => {
    const collapsed = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
    // Between two lines of a heading stands a space for a reader, and none in the source.
    const bare = (text: string): string => text.replaceAll(/\s+/g, '')
    const orNull = (text: string | undefined): string | null => (text === undefined || text.trim() === '' ? null : text)
    const byUrl = new Map(records.map(({ value }) => [value.url, value.data]))
    for (const [index, page] of corpus.entries()) {
      const $ = load(new TextDecoder(charsetOf(index, page.bytes)).decode(page.bytes))
      const data = byUrl.get(site.urlOf(page)) as Record<string, unknown>
      const title = orNull(collapsed($('title').first().text()))
      expect({ id: page.id, title: data.title }).toEqual({ id: page.id, title })
      expect({ id: page.id, canonical: data.canonical }).toEqual({
        id: page.id,
        canonical: orNull($('link[rel=canonical]').first().attr('href')),
      })
      expect({ id: page.id, links: (data.links as string[] | null)?.length ?? 0 }).toEqual({
        id: page.id,
        links: $('a[href]').filter((_, element) => $(element).attr('href')?.trim() !== '').length,
      })
      // What a reader does not see is no text of a heading.
      $('script, style, noscript, template').remove()
      const headings = $('h1, h2, h3')
        .toArray()
        .map((element) => bare($(element).text()))
        .filter((text) => text !== '')
      expect({ id: page.id, headings: ((data.headings ?? []) as string[]).map(bare) }).toEqual({ id: page.id, headings })
      const description = orNull(collapsed($('meta[name="description" i]').first().attr('content') ?? ''))
      expect({ id: page.id, description: data.description }).toEqual({ id: page.id, description })
    }
  })
})
