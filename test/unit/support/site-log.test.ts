import { describe, expect, it } from 'vitest'
import type { SiteRequest } from '../../support/linked-site.ts'
import { msUntilFullSpeedAgain, type PaceOfSite, paceViolations } from '../../support/site-log.ts'

const PACE: PaceOfSite = { ratePerSecond: 5, concurrency: 1, lateArrivals: 1 }

function request(at: number, change: Partial<SiteRequest> = {}): SiteRequest {
  const [sentAt, endedAt] = [at + 50, at + 51]
  const plain = { host: 'a.example', path: `/page/${at}`, agent: 'a', status: 200, retryAfterMs: undefined, answered: true }
  return { at, ...plain, sentAt, endedAt, ...change }
}

const everyMs = (ms: number, count: number): SiteRequest[] => Array.from({ length: count }, (_, index) => request(index * ms))

describe('the count of a pace from the log of a site', () => {
  it('finds a burst, a rate that is a little too high for long, and requests at once', () => {
    expect(paceViolations(everyMs(200, 60), PACE)).toEqual([])
    expect(paceViolations(everyMs(190, 60), PACE)).toEqual([expect.stringContaining('within 10 s')])
    expect(paceViolations([...everyMs(200, 10), ...everyMs(200, 10).map(({ at }) => request(3_000 + at / 4))], PACE)).not.toEqual([])
    expect(paceViolations([request(0, { endedAt: 300 }), request(250)], PACE)).toEqual([expect.stringContaining('2 times at once')])
  })

  it('finds a request too soon after the end of the one before, whoever asked', () => {
    const slow: PaceOfSite = { ...PACE, crawlDelayMsOf: () => 1_000 }
    const [first, second] = [request(0, { sentAt: 400, endedAt: 401 }), request(1_300, { agent: 'b' })]
    expect(paceViolations([first, request(1_400)], slow)).toEqual([])
    expect(paceViolations([first, second], slow)).toEqual(['a.example was asked 900 ms after it had answered, at a crawl delay of 1000'])
    // Whoever was killed may have had its answer at any time.
    expect(paceViolations([first, second], { ...slow, isLost: ({ agent }) => agent === 'a' })).toEqual([])
    expect(paceViolations([request(0), request(800)], { ...slow, isLost: () => true })).toHaveLength(1)
  })

  it('finds a request before a Retry-After has passed, counted from the answer', () => {
    const tooMany = request(0, { status: 429, retryAfterMs: 4_000 })
    expect(paceViolations([tooMany, request(4_060)], PACE)).toEqual([])
    const violation = 'a.example was asked 3850 ms after a 429 with a Retry-After of 4000 ms'
    expect(paceViolations([tooMany, request(3_900)], PACE)).toEqual([violation])
    expect(paceViolations([tooMany, request(3_900)], { ...PACE, isLost: ({ at }) => at === 0 })).toEqual([])
    // With several at once another one may start while the answer is on its way to the store.
    expect(paceViolations([tooMany, request(300)], { ...PACE, concurrency: 2 })).toEqual([])
    // One that had started by then may arrive late, and no more of them than run at once.
    expect(paceViolations([tooMany, request(900)], { ...PACE, concurrency: 2 })).toEqual([])
    expect(paceViolations([tooMany, request(900), request(1_200)], { ...PACE, concurrency: 2 })).toHaveLength(1)
    expect(paceViolations([tooMany, request(2_900)], { ...PACE, concurrency: 2 })).toHaveLength(1)
  })

  it('asks robots.txt for no pace', () => {
    const robots = everyMs(10, 20).map((each) => ({ ...each, path: '/robots.txt' }))
    expect(paceViolations([request(0, { status: 429, retryAfterMs: 4_000 }), ...robots], PACE)).toEqual([])
  })

  it('tells when the sites are asked as often as before a fault', () => {
    const after = everyMs(200, 20).map(({ at }) => request(5_000 + at))
    expect(msUntilFullSpeedAgain([...everyMs(200, 10), ...after], 2_000)).toBe(3_000)
    expect(msUntilFullSpeedAgain(everyMs(200, 10), 2_000)).toBeNull()
  })
})
