import { describe, expect, it } from 'vitest'
import { type ChainRequest, redirectOf, resumeChain } from '../../../src/fetch/redirect.ts'
import type { UrlTask } from '../../../src/message/generated/types.ts'
import { chainBefore, nextTarget } from '../../../src/message/redirect-chain.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { httpResponse } from '../../support/http-response.ts'

const from: ChainRequest = { target: new URL('http://a.example/a/b/c?q=1'), method: 'GET', headers: { cookie: 'x' }, body: null }
const to = (location: string, status = 302, request = from) => redirectOf(httpResponse(status, { Location: location }), request)
const headersTo = (location: string, request: ChainRequest) => {
  const answer = to(location, 302, request)
  return answer?.kind === 'hop' ? answer.headers : undefined
}

describe('a redirect', () => {
  it.each([
    ['C045: a relative path', 'd', 'http://a.example/a/b/d'],
    ['a path from the root', '/d', 'http://a.example/d'],
    ['steps upwards', '../../../d', 'http://a.example/d'],
    ['C044: a byte as it was sent', '/caf\xe9', 'http://a.example/caf%E9'],
    ['UTF-8 as it was sent', '/caf\xc3\xa9', 'http://a.example/caf%C3%A9'],
    ['a host in UTF-8', 'http://b\xc3\xbccher.example/', 'http://xn--bcher-kva.example/'],
    ['a path encoded already', '/caf%C3%A9', 'http://a.example/caf%C3%A9'],
    ['another host, without its fragment', '//b.example/x#frag', 'http://b.example/x'],
    ['a query alone', '?r', 'http://a.example/a/b/c?r'],
    ['a fragment alone', '#top', 'http://a.example/a/b/c?q=1'],
    ['white space around', ' \t/d ', 'http://a.example/d'],
    ['a space within', '/d e', 'http://a.example/d%20e'],
  ])('leads on: %s', (_about, location, target) => {
    const answer = to(location)
    expect(answer).toMatchObject({ kind: 'hop', hop: { url: from.target.href, status: 302, location: location.trim() } })
    expect(answer?.kind === 'hop' && answer.target.href).toBe(target)
  })

  it.each([
    ['C055: a host that is none', 'http://\xa0example.test/', '%A0example.test/" can\'t be fetched; expected a valid URL; bytes above 127'],
    ['C055: the same host, written out', 'http://%A0example.test/', 'expected a valid URL'],
    ['a broken host', 'http://[/', 'valid URL'],
    ['another scheme', 'ftp://a.example/', 'http or https'],
    ['a script', 'javascript:alert(1)', 'http or https'],
    ['data', 'data:text/html,x', 'http or https'],
    ['credentials', 'http://user:pass@a.example/', 'no user and password'],
    ['a port that is none', 'http://a.example:99999/', 'valid URL'],
    ['no host', 'http://./', 'a host'],
    ['a target that is too long', `/${'x'.repeat(9_000)}`, 'at most 8192'],
  ])('is bad with %s', (_about, location, says) => {
    const answer = to(location, 301)
    expect(answer).toMatchObject({ kind: 'failed', reason: 'bad-redirect', detail: expect.stringContaining(says) })
    expect(JSON.stringify(answer)).not.toContain('pass@')
  })

  it('is none without a target, and with a status that does not redirect', () => {
    expect(redirectOf(httpResponse(302), from)).toBeUndefined()
    expect(to(' ')).toBeUndefined()
    for (const status of [200, 201, 300, 304, 305, 306, 404, 503]) expect(to('/x', status)).toBeUndefined()
  })

  it('is bad with two targets, and good with one that is said twice', () => {
    const twice = (second: string) =>
      redirectOf(
        httpResponse(301, [
          ['Location', '/x'],
          ['location', second],
        ]),
        from,
      )
    expect(twice('/y')).toMatchObject({ kind: 'failed', detail: expect.stringContaining('"/x" and "/y"') })
    expect(twice('/x')).toMatchObject({ kind: 'hop' })
    expect(twice('')).toMatchObject({ kind: 'hop' })
  })

  it('changes the method as browsers do', () => {
    const method = (status: number, was: string) => {
      const answer = to('/x', status, { ...from, method: was })
      return answer?.kind === 'hop' ? answer.method : undefined
    }
    const statuses = [301, 302, 303, 307, 308]
    expect(statuses.map((status) => method(status, 'POST'))).toEqual(['GET', 'GET', 'GET', 'POST', 'POST'])
    expect(statuses.map((status) => method(status, 'PUT'))).toEqual(['PUT', 'PUT', 'GET', 'PUT', 'PUT'])
    expect(statuses.map((status) => method(status, 'HEAD'))).toEqual(['HEAD', 'HEAD', 'HEAD', 'HEAD', 'HEAD'])
  })

  it('drops what describes a body together with the body', () => {
    const post = { ...from, method: 'POST', headers: { 'Content-Type': 'text/plain', 'content-length': '1', 'x-token': 't' } }
    expect(headersTo('/x', post)).toEqual({ 'x-token': 't' })
    expect(to('/x', 307, post)).toMatchObject({ headers: post.headers })
  })

  it('keeps the body as long as the method stays, and with it to another origin what describes it', () => {
    const body = Buffer.from('a=1')
    const post = { ...from, method: 'POST', headers: { 'content-type': 'text/plain', authorization: 'x' }, body }
    expect([301, 302, 303].map((status) => to('/x', status, post))).toEqual(
      [1, 2, 3].map(() => expect.objectContaining({ method: 'GET', body: null, headers: { authorization: 'x' } })),
    )
    for (const status of [307, 308]) {
      expect(to('/x', status, post)).toMatchObject({ method: 'POST', body, headers: post.headers })
      const away = to('https://b.example/', status, post)
      expect(away).toMatchObject({ method: 'POST', body })
      expect(away?.kind === 'hop' && away.headers).toEqual({ 'content-type': 'text/plain' })
    }
    expect(to('/x', 301, { ...post, method: 'PUT' })).toMatchObject({ method: 'PUT', body })
    expect(to('/x', 303, { ...post, method: 'PUT' })).toMatchObject({ method: 'GET', body: null })
    const resumed = newUrlTask({ url: from.target.href, method: 'post', body, headers: post.headers })
    expect(resumeChain(resumed, from.target)).toEqual({ ...post, target: from.target })
  })

  it('carries the cookies of its answer, within bounds', () => {
    const answer = redirectOf(
      httpResponse(302, [
        ['Location', '/x'],
        ['Set-Cookie', 'a=1; Expires=Wed, 21 Oct 2027 07:28:00 GMT'],
        ['set-cookie', 'b=2'],
        ...Array.from({ length: 100 }, (_, index): [string, string] => ['Set-Cookie', `c${index}=${'x'.repeat(1_000)}`]),
      ]),
      from,
    )
    const carried = answer?.kind === 'hop' ? answer.hop.setCookies : []
    expect(carried.slice(0, 2)).toEqual(['a=1; Expires=Wed, 21 Oct 2027 07:28:00 GMT', 'b=2'])
    expect(carried.length).toBeGreaterThan(10)
    expect(carried.join('').length).toBeLessThan(16_384)
  })

  it.each([
    ['another host', 'http://b.example/'],
    ['a subdomain', 'http://www.a.example/'],
    ['another scheme', 'https://a.example/'],
    ['another port', 'http://a.example:8080/'],
  ])('C190: keeps the headers of a task from %s', (_about, location) => {
    const request = { ...from, headers: { authorization: 'Basic eA==', cookie: 'sid=1', 'x-any': 'y' } }
    expect(headersTo(location, request)).toEqual({})
    expect(headersTo('http://a.example:80/x', request)).toEqual(request.headers)
  })
})

describe('a chain that was written to a topic', () => {
  const nextOf = (task: UrlTask): string | undefined => {
    const next = nextTarget(task)
    expect(next).toEqual(resumeChain(task, new URL(task.url)).target)
    return next?.href
  }

  it('goes on where it stopped, without the headers once it has left the origin', () => {
    const task = newUrlTask({ url: 'http://a.example/1', headers: { cookie: 'x' } })
    const url = new URL(task.url)
    expect(resumeChain(task, url)).toEqual({ target: url, method: 'GET', headers: { cookie: 'x' }, body: null })
    const same = { ...task, redirects: [{ url: 'http://a.example/1', status: 302, location: '/2', setCookies: [] }] }
    expect(resumeChain(same, url)).toEqual({ target: new URL('http://a.example/2'), method: 'GET', headers: { cookie: 'x' }, body: null })
    const left = {
      ...task,
      redirects: [
        { url: 'http://a.example/1', status: 302, location: 'http://www.a.example/2', setCookies: [] },
        { url: 'http://www.a.example/2', status: 302, location: 'http://a.example/3', setCookies: [] },
      ],
    }
    expect(resumeChain(left, url)).toEqual({ target: new URL('http://a.example/3'), method: 'GET', headers: {}, body: null })
  })

  it('of its parents does not move a task', () => {
    const task = newUrlTask({
      url: 'http://b.example/',
      redirects: [{ url: 'http://a.example/', status: 302, location: 'http://b.example/', setCookies: [] }],
    })
    expect(nextOf(task)).toBe('http://b.example/')
  })

  it('goes over pages that refresh and bytes outside ASCII as it did at first', () => {
    const task = newUrlTask({
      url: 'http://a.example/1',
      redirects: [
        { url: 'http://a.example/1', status: 302, location: '/caf\xe9', setCookies: [] },
        { url: 'http://a.example/caf%E9', status: 200, location: '/caf\xe9', setCookies: [] },
      ],
    })
    expect(nextOf(task)).toBe('http://a.example/caf%C3%A9')
  })

  it('stops where a hop can no longer be read', () => {
    const task = newUrlTask({
      url: 'http://a.example/1',
      redirects: [{ url: 'http://a.example/1', status: 302, location: 'http://[', setCookies: [] }],
    })
    expect(nextOf(task)).toBe('http://a.example/1')
  })

  it('ends its walk where it changes the domain, also where it comes back to the URL of its task', () => {
    const hop = (url: string, location: string) => ({ url, status: 302, location, setCookies: [] })
    const [away, back] = [hop('http://a.example/', '//id.test/check?x'), hop('http://id.test/check?x', 'http://a.example/')]
    const own = [hop('http://a.example/', '/home'), hop('http://a.example/home', 'http://www.a.example/')]
    const task = newUrlTask({ url: 'http://a.example/', headers: { 'x-any': 'y' } })
    const begins = (redirects: UrlTask['redirects'], url = task.url) => chainBefore({ url, redirects })
    expect(begins([away, back])).toEqual([away, back])
    expect(begins([away, back, ...own])).toEqual([away, back])
    expect(begins([away, back, away, back])).toEqual([away, back, away, back])
    expect(begins([away], 'http://id.test/check?x')).toEqual([away])
    // Within a domain a walk goes in circles by itself.
    expect(begins([...own, hop('http://www.a.example/', 'http://a.example/')])).toEqual([])
    expect(begins([hop('nonsense', '/'), hop('http://a.example/', 'http://[')])).toEqual([hop('nonsense', '/')])
    expect(resumeChain({ ...task, redirects: [away, back] }, new URL(task.url))).toMatchObject({ headers: task.headers })
    expect(nextOf({ ...task, redirects: [away, back, ...own] })).toBe('http://www.a.example/')
  })
})
