/** `millrace/testing`: for those who write extractors, in any test runner. No broker is needed. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type LoadedExtractor, loadExtractor } from './extract/load-extractors.ts'
import { pageOf, type TestReport, testExtractor } from './extract/test-extractor.ts'
import { systemClock } from './kernel/clock.ts'
import { errorText, MillraceError } from './kernel/errors.ts'
import { makeFolder } from './machine/make-folder.ts'

export type { JsonLdNote } from './extract/sources/jsonld.ts'
export type { TestReport } from './extract/test-extractor.ts'
export type { FieldTrace, SourceReport } from './extract/trace-fields.ts'

/** A page to try: one of both, `html` or `file`. */
export interface TestedPage {
  readonly html?: string | Uint8Array
  readonly file?: string
  /** Where it was fetched from: links are resolved against it. */
  readonly url?: string
  /** The whole header; bytes are decoded by it as a stage does. A text is one already, whatever it or the header says of a charset. */
  readonly contentType?: string
  /** Epoch ms; what the clock of a code extractor says. */
  readonly fetchedAt?: number
}

export interface TestOptions {
  readonly pageTimeoutMs?: number
  readonly pageMemoryBytes?: number
}

/** A record without what differs from run to run. */
export interface TestedRecord {
  /** Entity key. */
  readonly key: string
  readonly data: unknown
}

/** 2024-01-01: the same page gives the same record on every day. */
const FETCHED_AT = 1_704_067_200_000

/**
 * Runs the extractor of a file on a page as a stage would: in a process of its own, under its limits, through its Avro schema. Of a
 * declarative one the report says where each field came from, and why it is empty. Errors: EXTRACTOR_INVALID, USAGE.
 */
export async function runExtractor(file: string, page: TestedPage, options: TestOptions = {}): Promise<TestReport> {
  const extractor: LoadedExtractor = await loadExtractor(file)
  const { url = 'http://localhost/', contentType, fetchedAt = FETCHED_AT } = page
  const isText = typeof page.html === 'string'
  return await testExtractor({
    extractor,
    page: pageOf(bodyOf(page), url, { fetchedAt, isText, ...(contentType === undefined ? {} : { contentType }) }),
    source: { topic: '', partition: 0, offset: 0n },
    pageTimeoutMs: options.pageTimeoutMs ?? 10_000,
    pageMemoryBytes: options.pageMemoryBytes ?? 256 * 1024 * 1024,
    clock: systemClock,
  })
}

/**
 * The records alone. Shape: none where the page has a `url` that the extractor does not match. Errors: as `runExtractor`, and the code of
 * the dead letter where the page gives one.
 */
export async function recordsOf(file: string, page: TestedPage, options?: TestOptions): Promise<readonly TestedRecord[]> {
  const { matches, records, failure } = await runExtractor(file, page, options)
  // Without one there is nothing to match.
  if (page.url !== undefined && !matches) return []
  if (failure !== undefined) throw new MillraceError(failure.code, failure.message)
  return records.map(({ record }) => ({ key: String(record.entityKey), data: record.data }))
}

/**
 * Holds records against those of a file, which is written where it is not there yet. Errors: USAGE with the first line that differs;
 * `update` writes the file anew instead.
 */
export function matchSnapshot(file: string, records: readonly TestedRecord[], options: { readonly update?: boolean } = {}): void {
  const text = `${JSON.stringify(records, (_key, value: unknown) => sorted(value), 2)}\n`
  if (options.update === true || !existsSync(file)) {
    makeFolder(dirname(file))
    writeFileSync(file, text)
    return
  }
  const [kept, given] = [readText(file).split('\n'), text.split('\n')]
  const at = given.findIndex((line, index) => line !== kept[index])
  if (at === -1 && kept.length === given.length) return
  const line = at === -1 ? given.length : at
  throw new MillraceError(
    'USAGE',
    `${file}:${line + 1} has ${JSON.stringify(kept[line] ?? '')}, the records ${JSON.stringify(given[line] ?? '')}`,
  )
}

function bodyOf({ html, file }: TestedPage): Buffer {
  if ((html === undefined) === (file === undefined)) throw new MillraceError('USAGE', 'a page has either html or file')
  if (html !== undefined) return Buffer.from(html)
  try {
    return readFileSync(file ?? '')
  } catch (cause) {
    throw new MillraceError('USAGE', `can not read the page ${file}: ${errorText(cause)}`, { cause })
  }
}

function readText(file: string): string {
  return readFileSync(file, 'utf8').replaceAll('\r\n', '\n')
}

function sorted(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
}
