import { describe, expect, it } from 'vitest'
import { type AnswerContext, readAnswer } from '../../../src/fetch/answer.ts'
import type { HttpResponse } from '../../../src/fetch/http-exchange.ts'
import { httpResponse as response } from '../../support/http-response.ts'

const now = Date.parse('Wed, 21 Oct 2026 07:28:00 GMT')
const context: AnswerContext = {
  target: new URL('http://a.example/a/b/c?q=1'),
  method: 'GET',
  headers: { cookie: 'x' },
  body: null,
  chain: [],
  now,
}

describe('what an answer means', () => {
  it.each([200, 204, 206, 300, 304, 400, 401, 403, 404, 410, 451, 501, 505])('is a page for %d', (status) => {
    const got = response(status)
    expect(readAnswer(got, context)).toEqual({ kind: 'page', response: got })
  })

  it.each([408, 425, 429, 500, 502, 503, 504, 520, 530])('is a retry for %d', (status) => {
    expect(readAnswer(response(status), context)).toEqual({
      kind: 'retry',
      reason: `http-${status}`,
      detail: `http://a.example/a/b/c?q=1 answered with status ${status}`,
      retryAfterMs: undefined,
      factor: status === 429 ? 6 : 1,
      backsOff: status === 429 || status === 503,
    })
  })

  it('C143: says for how long, by the longest wish and the clock of the site', () => {
    const wished = (...headers: (readonly [string, string])[]) => readAnswer(response(429, headers), context)
    expect(wished(['Retry-After', '2'])).toMatchObject({ retryAfterMs: 2_000 })
    expect(wished(['Retry-After', '2'], ['retry-after', '3'])).toMatchObject({ retryAfterMs: 3_000 })
    const clock = 'Tue, 21 Oct 2025 07:28:00 GMT'
    expect(wished(['Date', clock], ['Retry-After', clock.replace('28', '29')])).toMatchObject({ retryAfterMs: 60_000 })
  })

  it('is what its reason says where there is none', () => {
    const failure = (reason: 'dns-not-found' | 'connection-reset' | 'address-refused') =>
      readAnswer({ kind: 'failure', reason, detail: 'd', totalMs: 1 }, context)
    expect(failure('dns-not-found')).toEqual({ kind: 'failed', reason: 'dns-not-found', detail: 'd' })
    expect(failure('address-refused')).toEqual({ kind: 'refused', reason: 'address-refused' })
    expect(failure('connection-reset')).toEqual({
      kind: 'retry',
      reason: 'connection-reset',
      detail: 'd',
      retryAfterMs: undefined,
      backsOff: false,
    })
  })

  it('is a retry that keeps what came where the connection ended early, and a page where the body is too large or of another type', () => {
    const cut = response(200, {}, { truncated: 'network' })
    expect(readAnswer(cut, context)).toMatchObject({ kind: 'retry', reason: 'truncated', keep: cut })
    expect(readAnswer(response(200, {}, { truncated: 'size' }), context).kind).toBe('page')
    expect(readAnswer(response(200, {}, { truncated: 'type' }), context).kind).toBe('page')
  })

  it('is a redirect whatever became of its body', () => {
    const cut = response(302, { location: '/x' }, { truncated: 'network' })
    expect(readAnswer(cut, context)).toMatchObject({ kind: 'hop', target: new URL('http://a.example/x') })
    expect(readAnswer(response(302, { location: 'http://[' }), context)).toMatchObject({ kind: 'failed', reason: 'bad-redirect' })
    expect(readAnswer(response(302), context).kind).toBe('page')
  })
})

describe('a page that refreshes', () => {
  const meta = (content: string) => `<head><meta http-equiv="Refresh" content="${content}"></head>`
  const page = (content: string, more: Partial<HttpResponse> = {}, chain: AnswerContext['chain'] = []) =>
    readAnswer(response(200, { 'content-type': 'text/html' }, { decoded: Buffer.from(meta(content)), ...more }), {
      ...context,
      chain,
    })

  it.each([
    ['0; URL=\n http://example.test/i.php', 'http://example.test/i.php'],
    ["0;url='a b'", 'http://a.example/a/b/a%20b'],
    ['10; url=x', 'http://a.example/a/b/x'],
    ['0;url=é', 'http://a.example/a/b/%C3%A9'],
  ])('is a hop for %j', (content, target) => {
    const answer = page(content)
    expect(answer.kind === 'hop' && [answer.target.href, answer.hop.status, answer.method]).toEqual([target, 200, 'GET'])
  })

  it.each(['5', '11;url=x', '0;url=javascript:x', '0;url=?q=1', '0; url=#top', '0;url=http://['])('is a page for %j', (content) => {
    expect(page(content).kind).toBe('page')
  })

  it('is a page where it is no HTML, an error, or a body that is not kept', () => {
    expect(page('0;url=x', { contentType: 'text/plain' }).kind).toBe('page')
    expect(page('0;url=x', { contentType: null }).kind).toBe('page')
    expect(page('0;url=x', { status: 404 }).kind).toBe('page')
    expect(page('0;url=x', { decoded: Buffer.alloc(0), truncated: 'type' }).kind).toBe('page')
    expect(page('0;url=x', { status: 503 }).kind).toBe('retry')
    expect(page('0;url=x', { truncated: 'network' }).kind).toBe('retry')
  })

  it('is a page where it leads back into its own chain, or the chain is at its end', () => {
    const hop = (path: string) => ({ url: `http://a.example/${path}`, status: 200, location: 'y', setCookies: [] })
    expect(page('0;url=/1', {}, [hop('1')]).kind).toBe('page')
    expect(page('0;url=/2', {}, [hop('1')]).kind).toBe('hop')
    expect(
      page(
        '0;url=/x',
        {},
        Array.from({ length: 10 }, (_, i) => hop(String(i))),
      ).kind,
    ).toBe('page')
  })

  it('is read in the encoding of the page, and resolved against its base', () => {
    const decoded = Buffer.from(`<meta charset=windows-1252><base href="/deep/">${meta('0;url=caf\xe9')}`, 'latin1')
    expect(page('', { decoded })).toMatchObject({ kind: 'hop', hop: { location: 'http://a.example/deep/caf%C3%A9' } })
  })

  it('takes no headers of the task to another origin', () => {
    expect(page('0;url=http://b.example/')).toMatchObject({ kind: 'hop', headers: {} })
    expect(page('0;url=/x')).toMatchObject({ kind: 'hop', headers: { cookie: 'x' } })
  })
})
