import { afterEach, describe, expect, it, vi } from 'vitest'
import { refuseRange, scopeOf } from '../../../src/cli/replay-scope.ts'
import type { Config } from '../../../src/config/options.ts'
import { isSameFilter } from '../../../src/message/replay-request.ts'

const config = { 'topics.prefix': 'scrape.' } as Config
const scope = (flags: Partial<Parameters<typeof scopeOf>[0]>) => scopeOf({ extractor: 'book', ...flags }, config)

afterEach(() => {
  vi.useRealTimers()
})

describe('the scope of a replay', () => {
  it.each([
    [{ toOffset: '-5' }, '--to-offset: offsets begin at 0, and this is -5'],
    [{ toOffset: '1.5' }, '--to-offset: "1.5" is no whole number'],
    [{ toOffset: 'NaN' }, '--to-offset: "NaN" is no whole number'],
    [{ toOffset: '' }, '--to-offset: "" is no whole number'],
    [{ shiftBy: '1e3' }, '--shift-by: "1e3" is no whole number'],
    [{ byDuration: '-2d' }, '--by-duration: "-2d" is no duration'],
    [{ topic: 'scrape.html:-1' }, '--topic: expected scrape.html:P,P'],
    [{ fetchedFrom: '2026-03-02', fetchedUntil: '2026-03-01' }, '--fetched-until (2026-03-01T00:00:00.000Z) is not after --fetched-from'],
    [{ fetchedFrom: '2026-03-02', fetchedUntil: '2026-03-02' }, 'nothing lies between them'],
    [{ toDatetime: '2026-03-02', until: '2026-03-01' }, '--until (2026-03-01T00:00:00.000Z) is not after --to-datetime'],
    [{ byDuration: '1h', until: '2d' }, 'is not after --by-duration'],
    [{ toOffset: '3', shiftBy: '4' }, 'give one of --to-earliest'],
  ])('%j is refused', (flags, why) => {
    expect(() => scope(flags)).toThrow(expect.objectContaining({ code: 'USAGE', message: expect.stringContaining(why) as string }))
  })

  it('takes what means something', () => {
    expect(scope({ toOffset: '0' }).start).toEqual({ kind: 'offset', offset: 0n })
    expect(scope({ shiftBy: '-4' }).start).toEqual({ kind: 'shift', by: -4n })
    expect(scope({ topic: 'scrape.html:1,3' }).partitions).toEqual([1, 3])
    expect(scope({}).filter.ago).toBeUndefined()
  })

  it('knows a line again that says how long ago, and no other one', () => {
    vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ['Date'] })
    const first = scope({ fetchedFrom: '7d', domain: 'a.example' }).filter
    vi.setSystemTime(1_800_000_060_000)
    const later = scope({ fetchedFrom: '7d', domain: 'a.example' }).filter
    expect(Number(later.fetchedFrom) - Number(first.fetchedFrom)).toBe(60_000)
    expect(isSameFilter(first, later)).toBe(true)
    expect(isSameFilter(first, JSON.parse(JSON.stringify(later)) as typeof later)).toBe(true)
    for (const other of [
      scope({ fetchedFrom: '6d', domain: 'a.example' }).filter,
      scope({ fetchedFrom: '7d' }).filter,
      scope({ fetchedUntil: '7d', domain: 'a.example' }).filter,
      { ...first, ago: undefined },
      { ...first, crawlId: 'c' },
    ])
      expect(isSameFilter(first, other)).toBe(false)
  })
})

describe('a range beside one that is known', () => {
  it('is refused, by its flags; a filter is not', () => {
    const refuse = (flags: object) => () => refuseRange({ extractor: 'book', ...flags }, '--expect replays the range of its preview')
    expect(refuse({ toDatetime: '2026-03-01', until: '2026-03-02', topic: 'scrape.html:0', domain: 'a.example' })).toThrow(
      expect.objectContaining({
        code: 'USAGE',
        message: '--expect replays the range of its preview; leave out --to-datetime, --until, --topic',
      }),
    )
    expect(refuse({ toEarliest: true })).toThrow('leave out --to-earliest')
    expect(refuse({ domain: 'a.example', crawl: 'c', fetchedFrom: '1d' })).not.toThrow()
  })
})
