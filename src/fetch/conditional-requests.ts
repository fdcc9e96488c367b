import { createHash } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import type { Page, UrlTask } from '../message/generated/types.ts'
import { h } from '../message/ids.ts'
import type { StateStore, Validators } from '../state/state-store.ts'
import { type HttpResponse, headerValues } from './http-exchange.ts'
import type { QueuedTask } from './queued-task.ts'
import type { StoreGate } from './store-gate.ts'

export interface ConditionalRequestsOptions {
  readonly state: Pick<StateStore, 'readValidators' | 'writeValidators'>
  readonly gate: StoreGate
  /** A stored page counts for so long after it was fetched. */
  readonly unchangedMs: number
  /** Epoch ms of the oldest page that html still holds where those of a canonical URL lie; infinity: not known. */
  readonly keptSince: (canonicalUrl: string) => Promise<number>
  readonly clock: Clock
}

/** What a request asks beside its page. */
export interface Condition {
  /** Headers that are added to the request; none where the task brought its own. */
  readonly headers: Readonly<Record<string, string>>
  /** The stored page that the answer is compared with. */
  readonly stored: Validators | undefined
}

/** Longer ones are kept by nobody who means them. */
const MAX_VALIDATOR = 1_024
/** With these a task asks its own question (RFC 9110 section 13.1). */
const CONDITIONS = ['if-none-match', 'if-modified-since', 'if-match', 'if-unmodified-since', 'if-range'] as const

/**
 * "Give it to me if it has changed." For a task with `ifChanged`, and only while the stored page lies in html and stays there for long
 * enough, the request carries the validators of that page; 304, or a 200 with the same bytes, then means that nothing is written but an
 * outcome.
 *
 * Validators hold for the same request alone: URL that answered, and headers. They are remembered of every whole 200 page that has any,
 * so that the first visit need not know of the second; of a page without any its sha256 is remembered where the task asked. Any other
 * page of the URL (an error, one that was cut) makes them void: the newest page in html is no longer the one they are of.
 */
export class ConditionalRequests {
  readonly #options: ConditionalRequestsOptions

  constructor(options: ConditionalRequestsOptions) {
    this.#options = options
  }

  /** Undefined: the request is not conditional. */
  async before({ task, target, walk }: QueuedTask): Promise<Condition | undefined> {
    const names = Object.keys(walk.headers).map((name) => name.toLowerCase())
    if (CONDITIONS.some((name) => names.includes(name))) return { headers: {}, stored: undefined }
    if (!task.ifChanged || task.sitemapLevel > 0 || !isRead(walk)) return undefined
    const { state, gate, clock, unchangedMs, keptSince } = this.#options
    const stored = await gate.run(() => state.readValidators(task.canonicalUrl))
    if (stored === undefined || stored.requestHash !== requestHash(target, walk.headers)) return undefined
    if (stored.fetchedAt + unchangedMs <= clock.now()) return undefined
    // Retention goes by size as well.
    if (stored.fetchedAt < (await keptSince(task.canonicalUrl))) return undefined
    const headers = {
      ...(stored.etag === null ? {} : { 'if-none-match': stored.etag }),
      ...(stored.lastModified === null ? {} : { 'if-modified-since': stored.lastModified }),
    }
    return { headers, stored }
  }

  /** Nothing is to be written but the outcome. A 304 that nobody asked for is a page like any other. */
  isUnchanged(condition: Condition | undefined, { status, truncated, decoded }: HttpResponse): boolean {
    if (condition === undefined) return false
    if (status === 304) return condition.stored === undefined || Object.keys(condition.headers).length > 0
    if (status !== 200 || truncated !== null || condition.stored === undefined) return false
    return createHash('sha256').update(decoded).digest('hex') === condition.stored.bodySha256
  }

  /** The site said that the stored page is still the same. A 304 need not repeat the validators: those it leaves out stay. */
  async confirm({ canonicalUrl }: UrlTask, condition: Condition | undefined, response: HttpResponse): Promise<void> {
    const { state, gate, clock, unchangedMs } = this.#options
    const stored = condition?.stored
    if (stored === undefined) return
    const now = clock.now()
    const { etag, lastModified } = validatorsIn(response)
    const kept = { ...stored, etag: etag ?? stored.etag, lastModified: lastModified ?? stored.lastModified, checkedAt: now }
    const leftMs = stored.fetchedAt + unchangedMs - now
    await gate.run(() => state.writeValidators(canonicalUrl, leftMs > 0 ? kept : undefined, leftMs))
  }

  /** Called once the page is acknowledged: before, a 304 could stand for a page that was never stored. */
  async remember({ task, target, walk }: QueuedTask, response: HttpResponse, page: Page): Promise<void> {
    // Of a sitemap no extractor has read the page: whoever asks for the page of that URL is not to be told that it is unchanged.
    if (task.sitemapLevel > 0 || !isRead(walk)) return
    const { state, gate, unchangedMs } = this.#options
    const { etag, lastModified } = validatorsIn(response)
    const isWhole = response.status === 200 && response.truncated === null
    const isKept = isWhole && (etag !== null || lastModified !== null || task.ifChanged)
    const { bodySha256, fetchedAt } = page
    const hash = requestHash(target, walk.headers)
    const known = isKept ? { requestHash: hash, etag, lastModified, bodySha256, fetchedAt, checkedAt: fetchedAt } : undefined
    await gate.run(() => state.writeValidators(task.canonicalUrl, known, unchangedMs))
  }
}

function isRead({ method, body }: Pick<QueuedTask['walk'], 'method' | 'body'>): boolean {
  return method === 'GET' && body === null
}

function requestHash(target: URL, headers: Readonly<Record<string, string>>): string {
  const own = Object.entries(headers).map(([name, value]) => `${name.toLowerCase()}: ${value}`)
  return h('request', target.href, ...own.sort())
}

function validatorsIn(response: HttpResponse): { readonly etag: string | null; readonly lastModified: string | null } {
  const lastOf = (name: string): string | null => {
    const value = headerValues(response, name).at(-1)?.trim() ?? ''
    return value === '' || value.length > MAX_VALIDATOR ? null : value
  }
  return { etag: lastOf('etag'), lastModified: lastOf('last-modified') }
}
