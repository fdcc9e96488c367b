import { readFile } from 'node:fs/promises'
import { loadBody } from '../blobs/load-body.ts'
import type { Config } from '../config/options.ts'
import { pageOf } from '../extract/test-extractor.ts'
import { HttpClient } from '../fetch/http-client.ts'
import { readOne } from '../kafka/log-reader.ts'
import type { KafkaMessage } from '../kafka/message.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import type { Page } from '../message/generated/types.ts'
import { pageSource } from '../message/put-back.ts'
import { pageKey } from '../replay/compare.ts'
import { httpOptions } from './fetch-config.ts'
import { type Runtime, requireTopics } from './runtime.ts'
import { httpLimits } from './stages.ts'
import { pagesOfPlan } from './stored-pages.ts'
import { userAgentOf } from './user-agent.ts'

/** What an extractor is tried on. */
export type TrialTarget =
  | { readonly kind: 'file'; readonly path: string; readonly url: string }
  | { readonly kind: 'url'; readonly url: string }
  /** `until` included; undefined: the one page. */
  | { readonly kind: 'stored'; readonly partition: number; readonly offset: bigint; readonly until?: bigint }

export interface TrialPageOptions {
  readonly config: Config
  readonly version: string
  readonly clock: Clock
  /** Opened for stored pages alone. */
  readonly openRuntime: () => Promise<Runtime>
  readonly signal: AbortSignal
}

/** A page and where fetch has written it; a saved one lies nowhere. */
export type LocatedPage = {
  readonly page: Page
  readonly source: { readonly topic: string; readonly partition: number; readonly offset: bigint }
}

/** What is held in memory, and run through anew at each save. */
const MOST_PAGES = 1_000
const MOST_BYTES = 268_435_456

/** Pages of all targets, in order; one that was put back, or named twice, is there once. Errors: USAGE for one that is not there, or for too many; FETCH_FAILED. */
export async function trialPages(targets: readonly TrialTarget[], options: TrialPageOptions): Promise<readonly LocatedPage[]> {
  const pages: LocatedPage[] = []
  let bytes = 0
  const add = (found: LocatedPage): void => {
    options.signal.throwIfAborted()
    pages.push(found)
    bytes += found.page.body.length
    if (pages.length > MOST_PAGES) throw tooMany(`${MOST_PAGES} pages`)
    if (bytes > MOST_BYTES) throw tooMany(`${MOST_BYTES / 1_048_576} MiB of pages`)
  }
  const seen = new Set<string>()
  let runtime: Runtime | undefined
  try {
    for (const target of targets) {
      options.signal.throwIfAborted()
      if (target.kind === 'file') add({ page: savedPage(await readSaved(target.path), target.url), source: NOWHERE })
      else if (target.kind === 'url') add({ page: await fetchOnce(target.url, options), source: NOWHERE })
      else {
        runtime ??= await options.openRuntime()
        for await (const found of storedPages(runtime, target, options.signal)) {
          const key = pageKey(found.source)
          if (!seen.has(key)) add(found)
          seen.add(key)
        }
      }
    }
    return pages
  } finally {
    await runtime?.close()
  }
}

function tooMany(what: string): MillraceError {
  return new MillraceError(
    'USAGE',
    `these are more than ${what}, which is what is tried at once; \`millrace replay preview --against\` takes whole ranges`,
  )
}

const NOWHERE: LocatedPage['source'] = { topic: '', partition: 0, offset: 0n }

/** Its time does not move, so that a file gives the same records at each run. */
function savedPage(body: Buffer, url: string): Page {
  return pageOf(body, url, { fetchedAt: SAVED_AT })
}

/** 2024-01-01. */
const SAVED_AT = 1_704_067_200_000

async function readSaved(path: string): Promise<Buffer> {
  return readFile(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') throw new MillraceError('USAGE', `there is no page ${path}: no such file`)
    throw new MillraceError('USAGE', `can not read the page ${path}: ${errorText(cause)}`, { cause })
  })
}

/** One request, the way that fetch goes, without robots.txt: a person looks at a page. */
async function fetchOnce(url: string, { config, version, clock, signal }: TrialPageOptions): Promise<Page> {
  const client = new HttpClient({ ...(await httpOptions(config)), clock })
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

/** Pages of one place or of a range. Errors: USAGE where there is none. */
async function* storedPages(
  runtime: Runtime,
  { partition, offset, until }: Extract<TrialTarget, { readonly kind: 'stored' }>,
  signal: AbortSignal,
): AsyncGenerator<LocatedPage> {
  const { topics, admin } = runtime
  const topic = topics.html
  await requireTopics(runtime, [topic])
  const partitions = await admin.partitions(topic)
  if (!partitions.includes(partition))
    throw new MillraceError('USAGE', `${topic} has no partition ${partition}; it has ${partitions.length}`)
  const none = (): MillraceError =>
    new MillraceError('USAGE', `there is no page at ${topic}:${partition}:${offset}${until === undefined ? '' : `..${until}`}`)
  if (until === undefined) {
    const message = await readOne(admin.session, { topic, partition }, offset)
    if (message === undefined) throw none()
    await runtime.codec.ensureSchemas([message.value])
    yield await located(runtime, message, runtime.codec.decode('Page', message.value))
    return
  }
  // What lies beyond the ends of the log would be waited for, or asked for one by one.
  const { low, stableEnd: end } = await admin.logBounds({ topic, partition })
  const range = { partition, from: offset < low ? low : offset, until: until < end ? until + 1n : end }
  let count = 0
  for await (const { message, page } of pagesOfPlan(runtime, { topic, partitions: [range] }, {}, signal)) {
    // Of a range only pages count: what else lies there, and what retention took, are no places of any.
    if (page === undefined) continue
    count += 1
    yield await located(runtime, message, page)
  }
  signal.throwIfAborted()
  if (count === 0) throw none()
}

async function located(runtime: Runtime, message: KafkaMessage, page: Page): Promise<LocatedPage> {
  const { topic, partition, offset } = message
  const loaded = await loadBody(page, page.bodyRef === null ? undefined : await runtime.blobs())
  if (!loaded.ok) throw new MillraceError(loaded.code, `the page at ${topic}:${partition}:${offset} can not be read: ${loaded.detail}`)
  return { page: loaded.page, source: pageSource(message) }
}
