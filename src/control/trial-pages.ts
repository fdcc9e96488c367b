import { readFile } from 'node:fs/promises'
import { loadBody } from '../blobs/load-body.ts'
import type { Config } from '../config/options.ts'
import { pageOf } from '../extract/test-extractor.ts'
import { HttpClient } from '../fetch/http-client.ts'
import { readOne } from '../kafka/log-reader.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import type { Page } from '../message/generated/types.ts'
import type { Runtime } from './runtime.ts'
import { httpLimits } from './stages.ts'
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

/** A page and where it lies; a saved one lies nowhere. */
export type LocatedPage = {
  readonly page: Page
  readonly source: { readonly topic: string; readonly partition: number; readonly offset: bigint }
}

/** Pages of all targets, in order. Errors: USAGE for one that is not there, FETCH_FAILED. */
export async function trialPages(targets: readonly TrialTarget[], options: TrialPageOptions): Promise<readonly LocatedPage[]> {
  const pages: LocatedPage[] = []
  let runtime: Runtime | undefined
  try {
    for (const target of targets) {
      if (target.kind === 'file') pages.push({ page: savedPage(await readSaved(target.path), target.url), source: NOWHERE })
      else if (target.kind === 'url') pages.push({ page: await fetchOnce(target.url, options), source: NOWHERE })
      else {
        runtime ??= await options.openRuntime()
        const { partition, offset } = target
        for (let at = offset; at <= (target.until ?? offset); at += 1n) {
          const found = await storedPage(runtime, partition, at)
          if (found !== undefined) pages.push(found)
          // Of a range only pages count: markers of transactions and what retention took are no places of any.
          else if (target.until === undefined)
            throw new MillraceError('USAGE', `there is no page at ${runtime.topics.html}:${partition}:${at}`)
        }
      }
    }
    return pages
  } finally {
    await runtime?.close()
  }
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

/** One request, through the address guard, without robots.txt: a person looks at a page. */
async function fetchOnce(url: string, { config, version, clock, signal }: TrialPageOptions): Promise<Page> {
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

async function storedPage(runtime: Runtime, partition: number, offset: bigint): Promise<LocatedPage | undefined> {
  const topic = runtime.topics.html
  const message = await readOne(runtime.admin.session, { topic, partition }, offset)
  if (message === undefined) return undefined
  await runtime.codec.ensureSchemas([message.value])
  const page = runtime.codec.decode('Page', message.value)
  const loaded = await loadBody(page, page.bodyRef === null ? undefined : await runtime.blobs())
  if (!loaded.ok) throw new MillraceError(loaded.code, `the page at ${topic}:${partition}:${offset} can not be read: ${loaded.detail}`)
  return { page: loaded.page, source: { topic, partition, offset } }
}
