import { readFile } from 'node:fs/promises'
import { loadBody } from '../blobs/load-body.ts'
import type { Config } from '../config/options.ts'
import { type CheckResult, checkExtractorFile } from '../extract/check.ts'
import { loadExtractor } from '../extract/load-extractors.ts'
import { pageOf, type TestReport, testExtractor } from '../extract/test-extractor.ts'
import { HttpClient } from '../fetch/http-client.ts'
import { readOne } from '../kafka/log-reader.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import type { Page } from '../message/generated/types.ts'
import { createSchemaStore } from '../message/schema-store.ts'
import { envelopeText } from './extraction.ts'
import type { Runtime } from './runtime.ts'
import { httpLimits, userAgentOf } from './stages.ts'

/** What `extractors test` runs on. */
export type TrialTarget =
  | { readonly kind: 'file'; readonly path: string; readonly url: string }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'stored'; readonly partition: number; readonly offset: bigint }

export function checkExtractor(file: string): Promise<CheckResult> {
  return checkExtractorFile(file, envelopeText({ schemaStore: createSchemaStore() }))
}

export interface TrialOptions {
  readonly file: string
  readonly target: TrialTarget
  readonly config: Config
  readonly version: string
  readonly clock: Clock
  /** Opened for a stored page alone. */
  readonly openRuntime: () => Promise<Runtime>
  readonly onOutput: (text: string) => void
  readonly signal: AbortSignal
}

/** Runs an extractor on a saved page, a page fetched once, or a stored one; writes nothing. */
export async function tryExtractor(options: TrialOptions): Promise<TestReport & { readonly url: string }> {
  const { file, target, config, clock, onOutput } = options
  const envelope = envelopeText({ schemaStore: createSchemaStore() })
  const extractor = await loadExtractor(file, envelope)
  const { page, source } = await pageFor(target, options)
  const report = await testExtractor({
    extractor,
    page,
    source,
    envelopeText: envelope,
    pageTimeoutMs: config['extract.pageTimeout'],
    pageMemoryBytes: config['extract.pageMemory'],
    clock,
    onOutput,
  })
  return { ...report, url: page.finalUrl }
}

type Located = { readonly page: Page; readonly source: { readonly topic: string; readonly partition: number; readonly offset: bigint } }

async function pageFor(target: TrialTarget, options: TrialOptions): Promise<Located> {
  const nowhere = { topic: '', partition: 0, offset: 0n }
  switch (target.kind) {
    case 'file':
      return { page: pageOf(await readSaved(target.path), target.url, { fetchedAt: options.clock.now() }), source: nowhere }
    case 'url':
      return { page: await fetchOnce(target.url, options), source: nowhere }
    case 'stored':
      return storedPage(target, options)
  }
}

async function readSaved(path: string): Promise<Buffer> {
  return readFile(path).catch((cause: unknown) => {
    throw new MillraceError('USAGE', `can not read the page ${path}: ${errorText(cause)}`, { cause })
  })
}

/** One request, through the address guard, without robots.txt: a person looks at a page. */
async function fetchOnce(url: string, { config, version, clock, signal }: TrialOptions): Promise<Page> {
  const client = new HttpClient({ resolve: config['fetch.resolve'], allowAddresses: config['fetch.allowAddresses'], clock })
  try {
    const result = await client.request({
      url: new URL(url),
      method: 'GET',
      headers: { 'user-agent': userAgentOf(config, version), accept: 'text/html,*/*;q=0.8', 'accept-encoding': 'gzip, deflate, br' },
      limits: httpLimits(config),
      keepBody: () => true,
      signal,
    })
    if (result.kind === 'failure')
      throw new MillraceError('FETCH_FAILED', `${url} could not be fetched: ${result.detail} (${result.reason})`)
    if (result.status >= 300) throw new MillraceError('FETCH_FAILED', `${url} answered with status ${result.status}`)
    const contentType = result.headers.find(({ name }) => name.toLowerCase() === 'content-type')?.value
    return pageOf(result.decoded, url, { fetchedAt: clock.now(), ...(contentType === undefined ? {} : { contentType }) })
  } finally {
    await client.close()
  }
}

async function storedPage({ partition, offset }: { partition: number; offset: bigint }, options: TrialOptions): Promise<Located> {
  const runtime = await options.openRuntime()
  try {
    const topic = runtime.topics.html
    const message = await readOne(runtime.admin.session, { topic, partition }, offset)
    if (message === undefined) throw new MillraceError('USAGE', `there is no page at ${topic}:${partition}:${offset}`)
    await runtime.codec.ensureSchemas([message.value])
    const page = runtime.codec.decode('Page', message.value)
    const loaded = await loadBody(page, page.bodyRef === null ? undefined : await runtime.blobs())
    if (!loaded.ok) throw new MillraceError(loaded.code, `the page at ${topic}:${partition}:${offset} can not be read: ${loaded.detail}`)
    return { page: loaded.page, source: { topic, partition, offset } }
  } finally {
    await runtime.close()
  }
}
