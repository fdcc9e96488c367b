import { compileExtractor, type Extracted } from '../../src/extract/declarative-extractor.ts'
import { readDefinition } from '../../src/extract/language/read-definition.ts'
import type { PageJob, RunResult } from '../../src/extract/page-runner.ts'
import { createPageSelectors, PageView } from '../../src/extract/page-view.ts'
import { createPageParser } from '../../src/extract/parse-page.ts'
import { pageOf } from '../../src/extract/test-extractor.ts'
import type { Page } from '../../src/message/generated/types.ts'

const parser = createPageParser()
const selectors = createPageSelectors()

/** Runs the text of an extractor file on some HTML, in this process. Errors: where the file has problems. */
export function extractFrom(definitionText: string, html: string, url = 'http://shop.example.test/p/1'): Extracted {
  const { definition, problems } = readDefinition(definitionText)
  if (definition === undefined) throw new Error(problems.map(({ line, column, message }) => `${line}:${column} ${message}`).join('\n'))
  const compiled = compileExtractor(definition)
  return parser.withPage(html, { mode: definition.parse }, ({ root }) => compiled.extract(new PageView(root, url, selectors), url))
}

/** Data of the records; the code of the failure where there is none. */
export function dataFrom(definitionText: string, html: string, url?: string): unknown {
  const extracted = extractFrom(definitionText, html, url)
  return extracted.ok ? extracted.items.map(({ data }) => data) : extracted.code
}

/** Value of one field, given as it stands behind `x:` in the file. */
export function fieldFrom(field: string, html: string, url?: string): unknown {
  const data = dataFrom(`name: t\nversion: 1\nfields:\n  x: ${field}\n`, html, url)
  return Array.isArray(data) ? (data[0] as { x: unknown }).x : data
}

export function testPage(html: string | Buffer, url = 'http://shop.example.test/p/1', change: Partial<Page> = {}): Page {
  const body = typeof html === 'string' ? Buffer.from(html) : html
  return { ...pageOf(body, url, { contentType: 'text/html; charset=utf-8', fetchedAt: 1_700_000_000_000 }), ...change }
}

export function testJob(page: Page, extractors: readonly string[]): PageJob {
  return { page, source: { topic: 'scrape.html', partition: 3, offset: 41n }, extractors, extractedAt: 1_700_000_001_000, replayId: null }
}

/** Result in one line: `name: 2 records` or `name: CODE`. */
export function outcomeOf(
  result: Pick<RunResult, 'kind' | 'extractor'> & { readonly records?: readonly unknown[]; readonly code?: string },
): string {
  return result.kind === 'records' ? `${result.extractor}: ${result.records?.length} records` : `${result.extractor}: ${result.code}`
}
