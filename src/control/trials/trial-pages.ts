import { readFile } from 'node:fs/promises'
import { loadBody } from '../../blobs/load-body.ts'
import { pageKey } from '../../comparison/compare.ts'
import type { Config } from '../../config/options.ts'
import { pageOf } from '../../extract/test-extractor.ts'
import { CookieJars } from '../../fetch/cookie-jars.ts'
import { HttpClient } from '../../fetch/http-client.ts'
import { buildPage } from '../../fetch/page-message.ts'
import { type ChainRequest, MAX_HOPS, redirectOf, sendsOn } from '../../fetch/redirect.ts'
import { requestHeaders } from '../../fetch/request-headers.ts'
import { readOne } from '../../kafka/log-reader.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import { greatestOf, leastOf } from '../../kernel/bigint.ts'
import { type MessagePlace, placeText } from '../../kernel/brand.ts'
import type { Clock } from '../../kernel/clock.ts'
import { errorText, MillraceError } from '../../kernel/errors.ts'
import { silentObserver } from '../../kernel/observe.ts'
import type { Page } from '../../message/generated/types.ts'
import { h } from '../../message/ids.ts'
import { pageSource } from '../../message/put-back.ts'
import { newUrlTask } from '../../message/url-task.ts'
import { canonicalUrl } from '../../url/canonical-url.ts'
import { parseFetchUrl } from '../../url/parse-url.ts'
import { type Runtime, requireTopics } from '../runtime/runtime.ts'
import { httpLimits, httpOptions } from '../sites/fetch-config.ts'
import { userAgentOf } from '../sites/user-agent.ts'
import { pagesOfPlan } from './stored-pages.ts'

/** The URL of a page as a crawl has it. Errors: USAGE for one that can't be fetched. */
export function pageUrl(text: string, option?: string): string {
  const parsed = parseFetchUrl(text)
  if (parsed.ok) return parsed.url.href
  throw new MillraceError('USAGE', `${option === undefined ? '' : `${option}: `}${parsed.detail}`)
}

/** What an extractor is tried on; URLs as of `pageUrl`. */
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
  readonly source: MessagePlace
}

/** What is held in memory, and run through anew at each save. */
const MOST_PAGES = 1_000
const MOST_BYTES = 268_435_456

/**
 * Pages of all targets, in order; one that was put back, or named twice, is there once. Errors: USAGE for one that is not there, or for too
 * many; FETCH_FAILED.
 */
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

/** The way that fetch goes, along redirects and behind the same guard, without robots.txt: a person looks at a page. */
async function fetchOnce(url: string, { config, version, clock, signal }: TrialPageOptions): Promise<Page> {
  const client = new HttpClient({ ...(await httpOptions(config)), clock })
  const cookies = new CookieJars({ keep: 'none', observer: silentObserver })
  const userAgent = userAgentOf(config, version)
  const failed = (text: string): MillraceError => new MillraceError('FETCH_FAILED', text)
  let task = newUrlTask({ url, canonicalUrl: canonicalUrl(url), taskId: h('test', url), dedup: 'none' })
  let walk: ChainRequest = { target: new URL(url), method: task.method, headers: task.headers, body: task.body }
  let totalMs = 0
  try {
    while (true) {
      const { target, method, headers } = walk
      const cookie = cookies.headerFor(task, target, undefined)
      const response = await client.request({
        url: target,
        method,
        headers: { ...requestHeaders(headers, userAgent), ...(cookie === undefined ? {} : { cookie }) },
        limits: httpLimits(config),
        keepBody: (head) => !sendsOn(head),
        signal,
      })
      if (response.kind === 'failure') throw failed(`${target.href} could not be fetched: ${response.detail} (${response.reason})`)
      totalMs += response.totalMs
      const next = redirectOf(response, walk)
      if (next === undefined) {
        if (response.status >= 300) throw failed(`${target.href} answered with status ${response.status}`)
        return await buildPage({ task, finalUrl: target, response, robots: null, policy: null, fetchedAt: clock.now(), totalMs })
      }
      if (next.kind === 'failed') throw failed(next.detail)
      if (task.redirects.length === MAX_HOPS) throw failed(`${url} redirects more than ${MAX_HOPS} times`)
      task = { ...task, redirects: [...task.redirects, next.hop] }
      walk = next
    }
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
    new MillraceError('USAGE', `there is no page at ${placeText({ topic, partition, offset })}${until === undefined ? '' : `..${until}`}`)
  if (until === undefined) {
    const message = await readOne(admin.session, { topic, partition }, offset)
    if (message === undefined) throw none()
    await runtime.codec.ensureSchemas([message.value])
    yield await located(runtime, message, runtime.codec.decode('Page', message.value))
    return
  }
  // What lies beyond the ends of the log would be waited for, or asked for one by one.
  const { low, stableEnd: end } = await admin.logBounds({ topic, partition })
  const range = { partition, from: greatestOf(offset, low), until: leastOf(until + 1n, end) }
  let count = 0
  for await (const { message, page } of pagesOfPlan(runtime, { topic, partitions: [range] }, {}, signal)) {
    // Of a range only pages count: what else lies there, and what retention took, are no places of any.
    if (page === undefined) continue
    count += 1
    yield await located(runtime, message, page)
  }
  if (count === 0) throw none()
}

async function located(runtime: Runtime, message: KafkaMessage, page: Page): Promise<LocatedPage> {
  const { topic, partition, offset } = message
  const loaded = await loadBody(page, page.bodyRef === null ? undefined : await runtime.blobs())
  if (!loaded.ok)
    throw new MillraceError(loaded.code, `the page at ${placeText({ topic, partition, offset })} can not be read: ${loaded.detail}`)
  return { page: loaded.page, source: pageSource(message) }
}
