import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Page } from '../../src/message/generated/types.ts'
import { corpusPages } from '../support/corpus.ts'
import { testPage } from '../support/extraction.ts'

/** One page of the corpus, as a site would send it. */
export interface LoadPage {
  readonly id: string
  readonly body: Buffer
  /** By gzip at its default level, as most servers do. */
  readonly packed: Buffer
  readonly sha256: string
}

/** All pages of the corpus, in their order. Errors: where the corpus is not there; ask `hasCorpus` first. */
export function loadPages(): LoadPage[] {
  return corpusPages().map(({ id, bytes: body }) => ({
    id,
    body,
    packed: gzipSync(body),
    sha256: createHash('sha256').update(body).digest('hex'),
  }))
}

const HOSTS = 200

/** Address of the page with this number: the pages of the corpus repeat, addresses never. */
export function addressOf(index: number): string {
  return `http://site${index % HOSTS}.example/pages/${index}.html`
}

/** Number of the page with this address; the inverse of `addressOf`. */
export function numberOf(address: string): number {
  return Number(/\/(\d+)\.html$/.exec(address)?.[1] ?? Number.NaN)
}

const HEADERS = [
  ['date', 'Fri, 27 Nov 2026 12:00:00 GMT'],
  ['content-type', 'text/html; charset=utf-8'],
  ['content-encoding', 'gzip'],
  ['server', 'nginx'],
  ['vary', 'Accept-Encoding, Cookie'],
  ['cache-control', 'private, must-revalidate, max-age=0'],
  ['last-modified', 'Thu, 26 Nov 2026 09:30:00 GMT'],
  ['strict-transport-security', 'max-age=31536000; includeSubDomains; preload'],
  ['x-content-type-options', 'nosniff'],
].map(([name = '', value = '']) => ({ name, value }))

const FETCHED_AT = Date.now()

/** The load as it stands on html once it was fetched. Shape: index counts over all repetitions. */
export function storedPage(pages: readonly LoadPage[], index: number): Page {
  const page = pages[index % pages.length]
  if (page === undefined) throw new Error('there are no pages')
  const url = addressOf(index)
  const taskId = createHash('sha256').update(`task ${index}`).digest('hex').slice(0, 32)
  return {
    ...testPage('', url),
    taskId,
    fetchId: `${taskId.slice(0, 28)}0001`,
    // Older ones would fall to the retention of the topic.
    fetchedAt: FETCHED_AT,
    headers: HEADERS,
    charset: 'UTF-8',
    charsetSource: 'header',
    body: page.packed,
    bodyEncoding: 'gzip',
    bodyLength: page.body.length,
    bodySha256: page.sha256,
  }
}
