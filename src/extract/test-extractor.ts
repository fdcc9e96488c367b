import { createHash } from 'node:crypto'
import type { MessagePlace } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ErrorCode } from '../kernel/errors.ts'
import { silentObserver } from '../kernel/observe.ts'
import { decideCharset, decodeText } from '../message/charset.ts'
import type { Page } from '../message/generated/types.ts'
import { h } from '../message/ids.ts'
import { unpackPageBodySync } from '../message/page-body.ts'
import { plainValue } from '../message/plain-value.ts'
import { canonicalUrl } from '../url/canonical-url.ts'
import { compileExtractor } from './declarative-extractor.ts'
import { ExtractorHost, type ParserChoice } from './extractor-host.ts'
import { readDefinition } from './language/read-definition.ts'
import type { LoadedExtractor } from './load-extractors.ts'
import type { ExtractionResult } from './page-extraction.ts'
import { createPageSelectors, PageView } from './page-view.ts'
import { createPageParser } from './parse-page.ts'
import type { JsonLdNote } from './sources/jsonld.ts'
import { type FieldTrace, traceFields } from './trace-fields.ts'

export interface TestInput {
  readonly extractor: LoadedExtractor
  readonly page: Page
  readonly source: MessagePlace
  readonly pageTimeoutMs: number
  readonly pageMemoryBytes: number
  /** Left out: `auto`. The trace is always that of the default parser. */
  readonly parser?: ParserChoice
  readonly clock: Clock
  /** What the extractor prints. */
  readonly onOutput?: (text: string) => void
  /** Ends it before the next page. */
  readonly signal?: AbortSignal
}

/** What `extractors test` shows. */
export interface TestReport {
  /** It would read this page in a crawl; it is run in any case. */
  readonly matches: boolean
  readonly records: readonly { readonly key: string; readonly record: Readonly<Record<string, unknown>> }[]
  readonly failure: { readonly code: ErrorCode; readonly message: string; readonly field: string | undefined } | undefined
  /** Empty for code extractors. */
  readonly fields: readonly FieldTrace[]
  /** JSON-LD of the page that was repaired or left out. */
  readonly notes: readonly JsonLdNote[]
}

/** What an extractor made of one page. */
export interface PageRun {
  readonly url: string
  readonly records: readonly { readonly key: string; readonly record: Readonly<Record<string, unknown>> }[]
  readonly failure: { readonly code: ErrorCode; readonly message: string; readonly field: string | undefined } | undefined
}

/** Runs an extractor on one page as the stage would, under its limits, and tells of a declarative one where each value came from. */
export async function testExtractor(input: TestInput): Promise<TestReport> {
  const { extractor, page, source, ...rest } = input
  const [run] = await runOnPages({ extractor, pages: [{ page, source }], ...rest })
  const { records = [], failure } = run ?? {}
  return {
    matches: extractor.matches(page),
    // Whoever writes a test compares them with literals.
    records: records.map(({ key, record }) => ({ key, record: plainValue(record) as Readonly<Record<string, unknown>> })),
    failure,
    // A page that does not end the process in time is not looked at here either.
    ...(failure === undefined || failure.field !== undefined ? traced(extractor, page) : { fields: [], notes: [] }),
  }
}

/** Runs an extractor on some pages, one after the other, as the stage would. */
export async function runOnPages(
  input: Omit<TestInput, 'page' | 'source'> & { readonly pages: readonly Pick<TestInput, 'page' | 'source'>[] },
): Promise<readonly PageRun[]> {
  const { extractor, pages, pageTimeoutMs, pageMemoryBytes, parser, clock, onOutput, signal } = input
  const host = new ExtractorHost({
    extractors: [extractor],
    threads: 1,
    pageTimeoutMs,
    pageMemoryBytes,
    ...(parser === undefined ? {} : { parser }),
    clock,
    observer: silentObserver,
    framing: () => Buffer.alloc(0),
    ...(onOutput === undefined ? {} : { onOutput }),
  })
  await host.start()
  try {
    const runs: PageRun[] = []
    for (const { page, source } of pages) {
      signal?.throwIfAborted()
      const [result] = await host.extract({ page, source, extractors: [extractor.name], extractedAt: clock.now(), replayId: null })
      runs.push(runOf(extractor, page, result))
    }
    return runs
  } finally {
    await host.stop({ mode: 'abort', timeoutMs: 0 })
  }
}

function runOf(extractor: LoadedExtractor, page: Page, result: ExtractionResult | undefined): PageRun {
  const records = result?.kind === 'records' ? result.records : []
  return {
    url: page.finalUrl,
    records: records.map(({ key, value }) => ({ key, record: extractor.schema.decode(value) as Readonly<Record<string, unknown>> })),
    failure: result?.kind === 'failure' ? { code: result.code, message: result.message, field: result.field } : undefined,
  }
}

function traced(extractor: LoadedExtractor, page: Page): Pick<TestReport, 'fields' | 'notes'> {
  if (extractor.source.kind !== 'declarative') return { fields: [], notes: [] }
  const { definition } = readDefinition(extractor.source.text)
  if (definition === undefined) return { fields: [], notes: [] }
  const compiled = compileExtractor(definition)
  const unpacked = unpackPageBodySync(page)
  if (!unpacked.ok) return { fields: [], notes: [] }
  const text = decodeText(unpacked.bytes, page.charset)
  return createPageParser().withPage(text, { mode: definition.parse, locations: true }, ({ root }) => {
    const view = new PageView(root, page.finalUrl, createPageSelectors(), page.charset)
    return { fields: traceFields(compiled, view), notes: view.jsonLd.notes }
  })
}

const TEXT = { charset: 'UTF-8', source: 'utf8-valid' } as const

interface GivenPage {
  readonly contentType?: string
  /** The body is text in UTF-8, whatever it says of itself. */
  readonly isText?: boolean
  readonly fetchedAt: number
}

/** A page of a saved file or of one request, as it would lie on the topic. Shape: body is decoded; contentType is the whole header. */
export function pageOf(body: Buffer, url: string, given: GivenPage): Page {
  const contentType = given.contentType ?? 'text/html'
  const { charset, source } = given.isText === true ? TEXT : decideCharset(body, contentType)
  const taskId = h('test', url)
  return {
    fetchId: h(taskId, 1),
    taskId,
    url,
    canonicalUrl: canonicalUrl(url),
    finalUrl: url,
    redirects: [],
    status: 200,
    headers: [{ name: 'content-type', value: contentType }],
    contentType: contentType.split(';', 1)[0]?.trim().toLowerCase() ?? null,
    charset,
    charsetSource: source,
    body,
    bodyEncoding: 'identity',
    bodyRef: null,
    bodySha256: createHash('sha256').update(body).digest('hex'),
    bodyLength: body.length,
    truncated: null,
    fetchedAt: given.fetchedAt,
    ttfbMs: 0,
    totalMs: 0,
    remoteAddress: null,
    robots: null,
    policy: null,
    attempt: 1,
    crawlId: null,
    jobId: null,
    round: 0,
    lane: null,
    depth: 0,
    maxDepth: 0,
    seedUrl: null,
    parentUrl: null,
    extractors: [],
    dedup: 'none',
    meta: {},
    traceId: null,
    enqueuedAt: null,
    sitemapLevel: 0,
  }
}
