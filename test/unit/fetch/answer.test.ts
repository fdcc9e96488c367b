import { describe, expect, it } from 'vitest'
import { readAnswer, resumeChain } from '../../../src/fetch/answer.ts'
import type { FailureReason, HttpResponse } from '../../../src/fetch/http-exchange.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'

const now = Date.parse('Wed, 21 Oct 2026 07:28:00 GMT')
const context = { target: new URL('http://a.example/a/b/c?q=1'), method: 'GET', headers: { cookie: 'x' }, now }

function response(status: number, headers: Record<string, string> = {}, more: Partial<HttpResponse> = {}): HttpResponse {
  return {
    kind: 'response',
    status,
    headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
    contentType: 'text/html',
    body: Buffer.alloc(0),
    encoding: 'identity',
    decoded: Buffer.alloc(0),
    truncated: null,
    wireBytes: 0,
    ttfbMs: 1,
    connectMs: 0,
    totalMs: 1,
    remoteAddress: null,
    ...more,
  }
}

describe('what an answer means', () => {
  it.each([200, 204, 206, 300, 304, 400, 401, 403, 404, 410, 451, 501, 505])('is a page for %d', (status) => {
    expect(readAnswer(response(status), context).kind).toBe('page')
  })

  it.each([408, 425, 429, 500, 502, 503, 504, 520, 530])('is a retry for %d', (status) => {
    expect(readAnswer(response(status), context)).toMatchObject({
      kind: 'retry',
      reason: `http-${status}`,
      backsOff: status === 429 || status === 503,
    })
  })

  it.each<[FailureReason, string]>([
    ['dns-not-found', 'failed'],
    ['tls-failed', 'failed'],
    ['protocol-error', 'failed'],
    ['address-refused', 'refused'],
    ['dns-failed', 'retry'],
    ['connect-refused', 'retry'],
    ['connect-timeout', 'retry'],
    ['connection-reset', 'retry'],
    ['headers-timeout', 'retry'],
    ['body-timeout', 'retry'],
    ['total-timeout', 'retry'],
    ['network-error', 'retry'],
  ])('for the failure %s is %s', (reason, kind) => {
    expect(readAnswer({ kind: 'failure', reason, detail: 'd', totalMs: 1 }, context)).toMatchObject({ kind, reason })
  })

  it('is a retry that keeps what came where the connection ended early, and a page where the body is too large or of another type', () => {
    const cut = response(200, {}, { truncated: 'network' })
    expect(readAnswer(cut, context)).toMatchObject({ kind: 'retry', reason: 'truncated', keep: cut })
    expect(readAnswer(response(200, {}, { truncated: 'size' }), context).kind).toBe('page')
    expect(readAnswer(response(200, {}, { truncated: 'type' }), context).kind).toBe('page')
  })

  it.each([
    ['d', 'http://a.example/a/b/d'],
    ['/caf\xe9', 'http://a.example/caf%E9'],
    ['//b.example/x#frag', 'http://b.example/x'],
    ['?r', 'http://a.example/a/b/c?r'],
  ])('is a hop to the location %j', (location, target) => {
    const answer = readAnswer(response(302, { location }), context)
    expect(answer.kind === 'hop' && [answer.target.href, answer.hop]).toEqual([target, { url: context.target.href, status: 302, location }])
  })

  it.each(['http://\xa0example.test/', 'ftp://a.example/', 'http://user:pass@a.example/', 'javascript:alert(1)'])(
    'is final for the location %j, with the reason',
    (location) => {
      expect(readAnswer(response(301, { location }), context)).toMatchObject({ kind: 'failed', reason: 'bad-redirect' })
    },
  )

  it('is a page for a redirect without a location', () => {
    expect(readAnswer(response(302), context).kind).toBe('page')
    expect(readAnswer(response(302, { location: ' ' }), context).kind).toBe('page')
  })

  it('changes the method as browsers do, and keeps the headers of a task from other origins', () => {
    const post = { ...context, method: 'POST' }
    const method = (status: number, from = post) => {
      const answer = readAnswer(response(status, { location: '/x' }), from)
      return answer.kind === 'hop' ? answer.method : undefined
    }
    expect([301, 302, 303, 307, 308].map((status) => method(status))).toEqual(['GET', 'GET', 'GET', 'POST', 'POST'])
    expect(method(303, { ...context, method: 'HEAD' })).toBe('HEAD')
    expect(readAnswer(response(302, { location: '/x' }), context)).toMatchObject({ headers: { cookie: 'x' } })
    expect(readAnswer(response(302, { location: 'https://a.example/x' }), context)).toMatchObject({ headers: {} })
  })
})

describe('a page that refreshes', () => {
  const page = (html: string, more: Partial<HttpResponse> = {}) =>
    readAnswer(response(200, { 'content-type': 'text/html' }, { decoded: Buffer.from(html), ...more }), context)
  const meta = (content: string) => `<head><meta http-equiv="Refresh" content="${content}"></head>`

  it.each([
    ['0; URL=\n http://example.test/i.php', 'http://example.test/i.php'],
    ['5;/next', 'http://a.example/next'],
    ["0;url='a b'", 'http://a.example/a/b/a%20b'],
    ['0,url=x', 'http://a.example/a/b/x'],
    ['3 x', 'http://a.example/a/b/x'],
    ['.5;url=x', 'http://a.example/a/b/x'],
    ['10; url=x', 'http://a.example/a/b/x'],
    ['0;url=é', 'http://a.example/a/b/%C3%A9'],
  ])('is a hop for %j', (content, target) => {
    const answer = page(meta(content))
    expect(answer.kind === 'hop' && [answer.target.href, answer.hop.status]).toEqual([target, 200])
  })

  it.each(['5', '', 'x;url=y', '11;url=x', '0;url=', '0;url=javascript:x', '0;url=?q=1', '0; url=#top'])('is a page for %j', (content) => {
    expect(page(meta(content)).kind).toBe('page')
  })

  it('is a page where the refresh stands in a comment, a script, a template or a noscript', () => {
    const hidden = [
      '<!-- <meta http-equiv=refresh content="0;url=/c"> -->',
      `<script>var t='<meta http-equiv=refresh content="0;url=/s">'</script>`,
      '<noscript><meta http-equiv=refresh content="0;url=/n"></noscript>',
      '<template><meta http-equiv=refresh content="0;url=/t"></template>',
    ]
    expect(page(hidden.join('')).kind).toBe('page')
  })

  it('resolves against the base of the page, and says so in the hop', () => {
    const answer = page(`<base href="http://a.example/deep/">${meta('0;url=x')}`)
    expect(answer).toMatchObject({ kind: 'hop', hop: { location: 'http://a.example/deep/x' } })
  })

  it('is a page where it is no HTML, or an error', () => {
    expect(page(meta('0;url=x'), { contentType: 'text/plain' }).kind).toBe('page')
    expect(page(meta('0;url=x'), { status: 404 }).kind).toBe('page')
  })
})

describe('a chain that was written to a topic', () => {
  it('goes on where it stopped, without the headers once it has left the origin', () => {
    const task = newUrlTask({ url: 'http://a.example/1', headers: { cookie: 'x' } })
    const url = new URL(task.url)
    expect(resumeChain(task, url)).toEqual({ target: url, method: 'GET', headers: { cookie: 'x' } })
    const same = { ...task, redirects: [{ url: 'http://a.example/1', status: 302, location: '/2' }] }
    expect(resumeChain(same, url)).toMatchObject({ target: new URL('http://a.example/2'), headers: { cookie: 'x' } })
    const left = {
      ...task,
      redirects: [
        { url: 'http://a.example/1', status: 302, location: 'http://www.a.example/2' },
        { url: 'http://www.a.example/2', status: 302, location: 'http://a.example/3' },
      ],
    }
    expect(resumeChain(left, url)).toMatchObject({ target: new URL('http://a.example/3'), headers: {} })
  })

  it('of its parents does not move a task', () => {
    const task = newUrlTask({
      url: 'http://b.example/',
      redirects: [{ url: 'http://a.example/', status: 302, location: 'http://b.example/' }],
    })
    expect(resumeChain(task, new URL(task.url)).target.href).toBe('http://b.example/')
  })
})
