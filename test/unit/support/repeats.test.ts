import { describe, expect, it } from 'vitest'
import type { SiteRequest } from '../../support/linked-site.ts'
import { countRepeats, type Ending, type Loss, unheard } from '../../support/repeats.ts'

function request(path: string, at: number, change: Partial<SiteRequest> = {}): SiteRequest {
  const plain = { host: 'a.example', agent: 'a', status: 200, retryAfterMs: undefined, answered: true }
  return { path, at, ...plain, sentAt: at + 50, endedAt: at + 51, ...change }
}

const ending = (path: string, at: number, isRetry = false): Ending => ({ address: `a.example${path}`, at, isRetry })
const kill = (at: number, change: Partial<Loss> = {}): Loss => ({ what: `kill ${at}`, at, ...change })

describe('the count of what was asked for again', () => {
  it('ties a repeat to the loss that took the request before it: without an outcome, or with one that was not settled', () => {
    const requests = [
      request('/page/1', 900),
      request('/page/1', 3_000),
      request('/page/2', 900),
      request('/page/2', 3_000),
      request('/page/3', 900),
    ]
    const endings = [ending('/page/1', 3_060), ending('/page/2', 950), ending('/page/2', 3_060), ending('/page/3', 960)]
    const counted = countRepeats(requests, endings, [kill(1_100)])
    expect(counted).toEqual({ repeats: 2, problems: [], ofEach: [{ what: 'kill 1100', lost: 3, repeats: 2, sentMs: 150 }] })
  })

  it('finds one of what had been settled, though another loss had room for it', () => {
    const spare = [request('/page/2', 2_900), request('/page/3', 2_900)]
    const endings = [ending('/page/1', 60), ending('/page/1', 3_560)]
    const counted = countRepeats([request('/page/1', 0), ...spare, request('/page/1', 3_500)], endings, [kill(1_000), kill(3_000)])
    expect(counted.problems).toEqual([expect.stringContaining('a.example/page/1 was asked for at')])
    expect(counted.ofEach.map(({ lost, repeats }) => [lost, repeats])).toEqual([
      [0, 0],
      [2, 0],
    ])
  })

  it('finds one before its loss, one of another worker, and a second one', () => {
    const [first, again, third] = [request('/page/1', 1_000), request('/page/1', 1_500), request('/page/1', 1_600)]
    const endings = [ending('/page/1', 1_560), ending('/page/1', 1_660)]
    expect(countRepeats([first, again], endings, [kill(2_000)]).problems).toHaveLength(1)
    expect(countRepeats([first, again], endings, [kill(1_100, { agent: 'b' })]).problems).toHaveLength(1)
    expect(countRepeats([first, again, third], endings, [kill(1_100)]).problems).toHaveLength(1)
    expect(countRepeats([first, again], endings, [kill(1_100, { agent: 'a' })]).problems).toEqual([])
  })

  it('counts no other attempt, and ends a redirect with what it led to', () => {
    const flaky = [request('/flaky/1', 0, { status: 503 }), request('/flaky/1', 2_000)]
    const none = { repeats: 0, problems: [], ofEach: [] }
    expect(countRepeats(flaky, [ending('/flaky/1', 60, true), ending('/flaky/1', 2_060)], [])).toEqual(none)
    const moved = [request('/moved/3', 0, { status: 302 }), request('/new/3', 3_900), request('/moved/3', 6_000), request('/new/3', 6_500)]
    expect(countRepeats(moved, [ending('/moved/3', 3_960, true), ending('/moved/3', 6_560)], [])).toEqual(none)
    expect(countRepeats(moved, [ending('/moved/3', 6_560)], [kill(4_000)])).toMatchObject({ repeats: 2, problems: [] })
  })
})

it('lets who was told to end leave nothing but a redirect that was not followed yet', () => {
  const drained = [kill(1_000, { isDrained: true })]
  expect(countRepeats([request('/page/1', 990), request('/page/1', 3_000)], [], drained).problems).toHaveLength(1)
  const moved = [request('/moved/3', 900, { status: 302 }), request('/moved/3', 3_000, { status: 302 }), request('/new/3', 3_200)]
  expect(countRepeats(moved, [ending('/moved/3', 3_260)], drained)).toMatchObject({ repeats: 1, problems: [] })
})

it('gives a busy machine more time to settle', () => {
  const [asked, again] = [request('/page/1', 1_000), request('/page/1', 5_000)]
  const problems = (sentAt: number): number =>
    countRepeats([asked, again], [ending('/page/1', sentAt)], [kill(sentAt + 800)]).problems.length
  expect([problems(1_100), problems(1_550)]).toEqual([1, 0])
})

describe('a request of which nobody knows how it ended', () => {
  it('is one without an outcome, of a process that was killed', () => {
    const [known, unknown, later] = [request('/page/1', 900), request('/page/2', 900), request('/page/3', 2_000)]
    const isUnheard = unheard([known, unknown, later], [ending('/page/1', 950)], [kill(1_000)])
    expect([known, unknown, later].map(isUnheard)).toEqual([false, true, false])
  })
})
