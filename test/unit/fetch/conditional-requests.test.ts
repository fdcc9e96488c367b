import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { ConditionalRequests } from '../../../src/fetch/conditional-requests.ts'
import type { HttpResponse } from '../../../src/fetch/http-exchange.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { StoreGate } from '../../../src/fetch/store-gate.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import type { Page } from '../../../src/message/generated/types.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import type { Validators } from '../../../src/state/state-store.ts'
import { httpResponse } from '../../support/http-response.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const UNCHANGED_MS = 1_000_000
const URL_TEXT = 'http://a.example/page'

function open() {
  const clock = new ManualClock()
  const known = new Map<string, Validators>()
  const state = {
    readValidators: async (url: string) => known.get(url),
    writeValidators: async (url: string, validators: Validators | undefined, ttlMs: number) => {
      expect(validators === undefined || ttlMs > 0).toBe(true)
      if (validators === undefined) known.delete(url)
      else known.set(url, validators)
    },
  }
  const kept = { since: 0 }
  const gate = new StoreGate({ clock, observer: silentObserver, signal: new AbortController().signal })
  const keptSince = async (): Promise<number> => kept.since
  return { clock, known, kept, requests: new ConditionalRequests({ state, gate, unchangedMs: UNCHANGED_MS, keptSince, clock }) }
}

interface Visit {
  readonly ifChanged?: boolean
  readonly target?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly sitemapLevel?: number
}

function queued({ ifChanged = true, target = URL_TEXT, headers = {}, method = 'GET', sitemapLevel = 0 }: Visit = {}): QueuedTask {
  const task = newUrlTask({ url: URL_TEXT, canonicalUrl: URL_TEXT, ifChanged, sitemapLevel })
  const walk = { hops: 0, startedAt: undefined, requestMs: 0, method, headers, body: null }
  return { task, target: new URL(target), walk } as QueuedTask
}

const body = (text: string): Partial<HttpResponse> => ({ decoded: Buffer.from(text) })
const answer = (status: number, headers: Readonly<Record<string, string>>, text = ''): HttpResponse =>
  httpResponse(status, headers, body(text))

/** One visit as fetch makes it: what was asked, and what came of it. */
async function visit(parts: ReturnType<typeof open>, response: HttpResponse, about: Visit = {}) {
  const one = queued(about)
  const condition = await parts.requests.before(one)
  const unchanged = parts.requests.isUnchanged(condition, response)
  const bodySha256 = createHash('sha256').update(response.decoded).digest('hex')
  if (unchanged) await parts.requests.confirm(one.task, condition, response)
  else await parts.requests.remember(one, response, { bodySha256, fetchedAt: parts.clock.now() } as Page)
  return { asked: condition?.headers, unchanged }
}

describe('a conditional request', () => {
  it('C057: carries the validators of the stored page, and keeps them over a 304 that repeats none', async () => {
    const parts = open()
    const last = 'Wed, 21 Oct 2026 07:28:00 GMT'
    expect(await visit(parts, answer(200, { ETag: 'W/"v1"', 'Last-Modified': last }, 'A'), { ifChanged: false })).toEqual({
      asked: undefined,
      unchanged: false,
    })
    const expected = { 'if-none-match': 'W/"v1"', 'if-modified-since': last }
    for (const headers of [{}, {}]) {
      await parts.clock.advance(1_000)
      expect(await visit(parts, answer(304, headers))).toEqual({ asked: expected, unchanged: true })
    }
    expect(parts.known.get(URL_TEXT)?.checkedAt).toBe(parts.clock.now())
    await visit(parts, answer(304, { ETag: '"v2"' }))
    expect((await visit(parts, answer(304, {}))).asked).toEqual({ ...expected, 'if-none-match': '"v2"' })
  })

  it('is not made of a sitemap, which leaves what is known of the page of its URL as it is', async () => {
    const parts = open()
    const sitemap = { sitemapLevel: 1 }
    expect(await visit(parts, answer(200, { ETag: '"s1"' }, 'A'), sitemap)).toEqual({ asked: undefined, unchanged: false })
    expect(await visit(parts, answer(200, { ETag: '"v1"' }, 'A'))).toEqual({ asked: undefined, unchanged: false })
    expect(await visit(parts, answer(200, { ETag: '"s2"' }, 'B'), sitemap)).toEqual({ asked: undefined, unchanged: false })
    expect(await visit(parts, answer(304, {}))).toEqual({ asked: { 'if-none-match': '"v1"' }, unchanged: true })
  })

  it('is not made without ifChanged, for another method, or where nothing is stored', async () => {
    const parts = open()
    expect((await visit(parts, answer(200, { ETag: '"v1"' }, 'A'))).asked).toBeUndefined()
    expect((await visit(parts, answer(200, { ETag: '"v1"' }, 'A'), { ifChanged: false })).asked).toBeUndefined()
    expect((await visit(parts, answer(200, {}), { method: 'HEAD' })).asked).toBeUndefined()
    expect((await visit(parts, answer(304, {}))).asked).toEqual({ 'if-none-match': '"v1"' })
  })

  it('is not made once the stored page would not stay long enough, however often it was confirmed', async () => {
    const parts = open()
    await visit(parts, answer(200, { ETag: '"v1"' }, 'A'))
    await parts.clock.advance(UNCHANGED_MS - 1)
    expect((await visit(parts, answer(304, {}))).unchanged).toBe(true)
    await parts.clock.advance(1)
    expect(await visit(parts, answer(304, {}))).toEqual({ asked: undefined, unchanged: false })
  })

  it('is not made of a page that retention has deleted, by size or by hand', async () => {
    const parts = open()
    await visit(parts, answer(200, { ETag: '"v1"' }, 'A'))
    parts.kept.since = parts.clock.now()
    expect((await visit(parts, answer(304, {}))).asked).toEqual({ 'if-none-match': '"v1"' })
    parts.kept.since += 1
    expect(await visit(parts, answer(304, {}))).toEqual({ asked: undefined, unchanged: false })
  })

  it('goes to the URL that answered alone, and with the same headers alone', async () => {
    const parts = open()
    await visit(parts, answer(200, { ETag: '"v1"' }, 'A'), { target: 'http://a.example/final', headers: { Accept: 'x' } })
    for (const other of [{}, { target: 'http://a.example/final' }, { headers: { accept: 'x' } }]) {
      expect((await parts.requests.before(queued(other)))?.headers).toBeUndefined()
    }
    const same = queued({ target: 'http://a.example/final', headers: { accept: 'x' } })
    expect((await parts.requests.before(same))?.headers).toEqual({ 'if-none-match': '"v1"' })
  })

  it('ends unchanged with the same bytes as well, with validators and without', async () => {
    for (const headers of [{ ETag: '"new each time"' }, {}]) {
      const parts = open()
      await visit(parts, answer(200, headers, 'A'))
      expect((await visit(parts, answer(200, headers, 'A'))).unchanged).toBe(true)
      expect((await visit(parts, answer(200, headers, 'B'))).unchanged).toBe(false)
      expect((await visit(parts, answer(200, headers, 'A'))).unchanged).toBe(false)
      expect((await visit(parts, { ...answer(200, headers, 'A'), truncated: 'size' })).unchanged).toBe(false)
    }
  })

  it('remembers nothing of a page without validators unless the task asked', async () => {
    const parts = open()
    await visit(parts, answer(200, {}, 'A'), { ifChanged: false })
    expect(parts.known.size).toBe(0)
    await visit(parts, answer(200, { ETag: '"v1"' }, 'A'), { ifChanged: false })
    await visit(parts, answer(200, {}, 'B'), { ifChanged: false })
    expect(parts.known.size).toBe(0)
  })

  it.each([
    ['an error', answer(404, { ETag: '"v1"' }, 'gone')],
    ['a page that was cut', { ...answer(200, { ETag: '"v1"' }, 'A'), truncated: 'size' as const }],
    ['a 304 that nobody asked for', answer(304, { ETag: '"v1"' })],
  ])('forgets what it knows after %s', async (_about, response) => {
    const parts = open()
    await visit(parts, answer(200, { ETag: '"v1"' }, 'A'))
    await visit(parts, response, { ifChanged: false })
    expect(parts.known.size).toBe(0)
  })

  it('leaves a task its own question: a 304 is the answer to that', async () => {
    const parts = open()
    await visit(parts, answer(200, { ETag: '"v1"' }, 'A'))
    const own = { headers: { 'If-None-Match': '"mine"' }, ifChanged: false }
    expect(await visit(parts, answer(304, {}), own)).toEqual({ asked: {}, unchanged: true })
    expect((await visit(parts, answer(200, {}, 'B'), own)).unchanged).toBe(false)
  })

  it('takes no validator that is too long to be meant', async () => {
    const parts = open()
    await visit(parts, answer(200, { ETag: `"${'x'.repeat(2_000)}"`, 'Last-Modified': ' ' }, 'A'))
    expect(parts.known.get(URL_TEXT)).toMatchObject({ etag: null, lastModified: null })
  })
})
