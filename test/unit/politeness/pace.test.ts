import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { paceFacts } from '../../../src/control/sites/sites.ts'
import { parseSiteOverride } from '../../../src/message/site-override.ts'
import { effectiveCrawlDelay } from '../../../src/politeness/crawl-delay.ts'
import { createPolicy, type PolicyOptions } from '../../../src/politeness/policy.ts'

describe('the crawl delay of a site', () => {
  it.each([
    ['C134: a short one of the site does not shorten ours', 2_000, 200, { crawlDelayMs: 2_000, source: 'configured', isParked: false }],
    ['a longer one of the site counts', 2_000, 5_000, { crawlDelayMs: 5_000, source: 'robots', isParked: false }],
    ['the longest that is waited for', 0, 30_000, { crawlDelayMs: 30_000, source: 'robots', isParked: false }],
    ['a longer one is kept whole, and parks the site', 0, 30_001, { crawlDelayMs: 30_001, source: 'robots', isParked: true }],
    ['nobody asks for one', 0, undefined, { crawlDelayMs: 0, source: 'none', isParked: false }],
    ['ours alone', 1_000, undefined, { crawlDelayMs: 1_000, source: 'configured', isParked: false }],
    ['ours is as long as we say', 60_000, 10_000, { crawlDelayMs: 60_000, source: 'configured', isParked: false }],
  ] as const)('%s', (_about, configuredMs, robotsMs, expected) => {
    expect(effectiveCrawlDelay(configuredMs, robotsMs, 30_000)).toEqual(expected)
  })

  it('is never shorter than either wish', () => {
    fc.assert(
      fc.property(fc.nat(), fc.option(fc.nat(), { nil: undefined }), fc.nat(), (configuredMs, robotsMs, maxMs) => {
        const { crawlDelayMs } = effectiveCrawlDelay(configuredMs, robotsMs, maxMs)
        expect(crawlDelayMs).toBe(Math.max(configuredMs, robotsMs ?? 0))
      }),
    )
  })
})

describe('the pace of a site', () => {
  const overrides = new Map<string, unknown>()
  const options: PolicyOptions = {
    key: 'host',
    default: { ratePerSecond: 1, burst: 1, concurrency: 1 },
    rules: [
      { match: 'www.example.com', ratePerSecond: 2 },
      { match: '*.example.com', ratePerSecond: 5, concurrency: 4, crawlDelayMs: 100 },
    ],
    overrideOf: (domain) => parseSiteOverride(overrides.get(domain)),
    now: () => 0,
  }
  const { paceOf, explain } = createPolicy(options)
  const of = (url: string, withOverrides: Record<string, unknown> = {}) => {
    overrides.clear()
    for (const [domain, payload] of Object.entries(withOverrides)) overrides.set(domain, payload)
    return paceOf(new URL(url))
  }

  it('is that of the first rule that matches, and the default where none does or the rule is silent', () => {
    expect(of('http://www.example.com/')).toMatchObject({ ratePerSecond: 2, concurrency: 1, burst: 1, crawlDelayMs: 0 })
    expect(of('http://shop.example.com/')).toMatchObject({ ratePerSecond: 5, concurrency: 4, crawlDelayMs: 100 })
    expect(of('http://example.com/')).toMatchObject({ ratePerSecond: 5 })
    expect(of('http://badexample.com/')).toMatchObject({ ratePerSecond: 1 })
    expect(of('http://other.test/')).toMatchObject({ ratePerSecond: 1, isPaused: false })
  })

  it('is what an override says as long as there is one, however often it was asked for before', () => {
    const paused = { 'example.com': { paused: true } }
    const asked = [{}, {}, paused, paused, {}].map((overrides) => of('http://www.example.com/', overrides).isPaused)
    expect(asked).toEqual([false, false, true, true, false])
  })

  it('C140: has one key for all spellings of a host', () => {
    const keys = ['http://Example.TEST/', 'http://example.test./', 'https://example.test:8443/x'].map((url) => of(url).key)
    expect(new Set(keys)).toEqual(new Set(['example.test']))
    const idn = ['http://bücher.example.test/', 'http://xn--bcher-kva.example.test/'].map((url) => of(url).key)
    expect(new Set(idn)).toEqual(new Set(['xn--bcher-kva.example.test']))
  })

  it('has the registrable domain for its key where that is asked for', () => {
    expect(createPolicy({ ...options, key: 'domain' }).paceOf(new URL('http://a.b.example.co.uk/')).key).toBe('example.co.uk')
  })

  it('is overridden by host before domain, value by value', () => {
    expect(of('http://a.test.com/', { 'test.com': { ratePerSecond: 0.5 } })).toMatchObject({ ratePerSecond: 0.5, concurrency: 1 })
    const both = { 'test.com': { paused: true, ratePerSecond: 0.5 }, 'a.test.com': { ratePerSecond: 3 } }
    expect(of('http://a.test.com/', both)).toMatchObject({ isPaused: true, ratePerSecond: 3 })
    expect(of('http://a.test.com/', { ...both, 'a.test.com': { paused: false } })).toMatchObject({ isPaused: false, ratePerSecond: 0.5 })
    expect(of('http://b.test.com/', { 'a.test.com': { paused: true } })).toMatchObject({ isPaused: false })
    expect(of('http://www.example.com/', { 'example.com': { ratePerSecond: 9 } })).toMatchObject({ ratePerSecond: 9 })
    const between = { 'b.test.com': { burst: 7, crawlDelayMs: 3_000 } }
    expect(of('http://a.b.test.com/', between)).toMatchObject({ burst: 7, crawlDelayMs: 3_000 })
    expect(of('http://c.test.com/', between)).toMatchObject({ burst: 1, crawlDelayMs: 0 })
  })

  it('says where each value comes from, the strongest last', () => {
    overrides.clear()
    overrides.set('example.com', { paused: true })
    overrides.set('www.example.com', { concurrency: 3 })
    const { policy, layers } = explain(new URL('http://www.example.com/'))
    expect(layers).toEqual([
      { source: 'default', name: '', values: { ratePerSecond: 1, burst: 1, concurrency: 1, crawlDelayMs: 0, isPaused: false } },
      { source: 'rule', name: 'www.example.com', values: { ratePerSecond: 2 } },
      { source: 'override', name: 'example.com', values: { isPaused: true } },
      { source: 'override', name: 'www.example.com', values: { concurrency: 3 } },
    ])
    expect(policy).toMatchObject({ isPaused: true, ratePerSecond: 2, concurrency: 3 })
    const facts = paceFacts({ policy, layers }, 9_000, 30_000)
    expect(facts).toEqual({
      paused: { value: true, from: 'override example.com' },
      ratePerSecond: { value: 2, from: 'rule www.example.com' },
      burst: { value: 1, from: 'default' },
      concurrency: { value: 3, from: 'override www.example.com' },
      crawlDelayMs: { value: 9_000, from: 'robots.txt' },
    })
  })

  it('has its own values at the hours of a schedule, which an override still beats', () => {
    let now = Date.parse('2026-11-28T20:59:00Z')
    const night = { fromMinute: 22 * 60, toMinute: 6 * 60, timezone: 'Europe/Berlin', text: '22:00-06:00 Europe/Berlin', ratePerSecond: 9 }
    const scheduled = createPolicy({
      ...options,
      rules: [{ match: 'www.example.com', ratePerSecond: 2, concurrency: 2, schedule: [night] }],
      now: () => now,
    })
    overrides.clear()
    const url = new URL('http://www.example.com/')
    expect(scheduled.paceOf(url)).toMatchObject({ ratePerSecond: 2, concurrency: 2 })
    now += 60_000
    expect(scheduled.paceOf(url)).toMatchObject({ ratePerSecond: 9, concurrency: 2 })
    expect(scheduled.explain(url).layers.at(-1)).toEqual({ source: 'schedule', name: night.text, values: { ratePerSecond: 9 } })
    overrides.set('www.example.com', { ratePerSecond: 0.1 })
    expect(scheduled.paceOf(url)).toMatchObject({ ratePerSecond: 0.1 })
  })

  it('was reset when the last of its names was, and a reset changes nothing else', () => {
    const reset = { reset: { at: 500 } }
    expect(of('http://www.a.test/', {})).toMatchObject({ resetAt: 0 })
    expect(of('http://www.a.test/', { 'a.test': reset })).toEqual({ ...of('http://www.a.test/', {}), resetAt: 500 })
    expect(of('http://www.a.test/', { 'a.test': reset, 'www.a.test': { reset: { at: 400 }, ratePerSecond: 3 } })).toMatchObject({
      resetAt: 500,
      ratePerSecond: 3,
    })
    expect(of('http://a.test/', { 'www.a.test': reset })).toMatchObject({ resetAt: 0 })
  })

  it('was resumed when the last of its names was, and that changes nothing else', () => {
    const resumed = { resumed: { at: 500 } }
    expect(of('http://www.a.test/', { 'a.test': resumed, 'www.a.test': { resumed: { at: 400 } } })).toEqual({
      ...of('http://www.a.test/', {}),
      resumedAt: 500,
    })
  })

  it('became faster when the last of its names did, and that changes nothing else', () => {
    const faster = { faster: { at: 500 } }
    expect(of('http://www.a.test/', { 'a.test': faster })).toEqual({ ...of('http://www.a.test/', {}), fasterAt: 500 })
    expect(of('http://www.a.test/', { 'a.test': faster, 'www.a.test': { faster: { at: 400 } } })).toMatchObject({
      fasterAt: 500,
      resetAt: 0,
    })
  })

  it.each([
    undefined,
    null,
    'fast',
    7,
    [],
    { ratePerSecond: 0 },
    { ratePerSecond: -1 },
    { ratePerSecond: Number.POSITIVE_INFINITY },
    { ratePerSecond: '9' },
    { concurrency: 0 },
    { concurrency: 1.5 },
    { paused: 'no' },
    { burst: 0.5 },
    { crawlDelayMs: -1 },
    { reset: 5 },
    { reset: { at: 'now' } },
    { reset: null },
    { faster: 5 },
    { faster: { at: -1 } },
    { resumed: { at: 'now' } },
  ])('is not changed by %j on control', (payload) => {
    expect(parseSiteOverride(payload)).toBeUndefined()
    expect(of('http://a.test/', { 'a.test': payload })).toEqual(of('http://a.test/'))
  })
})

it('a pace on control that no store can count is the slowest there is', () => {
  expect(parseSiteOverride({ ratePerSecond: 1e-18, crawlDelayMs: 1e20 })).toEqual({ ratePerSecond: 0.0001, crawlDelayMs: 365 * 86_400_000 })
})

describe('the hours of a rule that pause a site', () => {
  const at = (text: string): number => Date.parse(`2026-11-28T${text}Z`)
  const hours = { timezone: 'UTC', fromMinute: 480, toMinute: 1_200, text: '08:00-20:00 UTC', isPaused: true }
  const night = { ...hours, fromMinute: 1_200, toMinute: 480, text: '20:00-08:00 UTC', isPaused: false, ratePerSecond: 9 }
  let now = at('09:00:30')
  const overrides = new Map<string, unknown>()
  const policy = createPolicy({
    key: 'host',
    default: { ratePerSecond: 1, burst: 1, concurrency: 1 },
    rules: [
      { match: 'day.test', schedule: [hours, night] },
      { match: 'week.test', schedule: [{ ...hours, fromMinute: 0, toMinute: 1_440 }] },
    ],
    overrideOf: (domain) => parseSiteOverride(overrides.get(domain)),
    now: () => now,
  })
  const day = new URL('http://day.test/')

  it('say until when', () => {
    expect(policy.paceOf(day)).toMatchObject({ isPaused: true, pausedUntil: at('20:00:00') })
    now = at('20:00:00')
    expect(policy.paceOf(day)).toMatchObject({ isPaused: false, ratePerSecond: 9 })
    expect(policy.paceOf(day)).not.toHaveProperty('pausedUntil')
    now = at('19:59:59')
    expect(policy.paceOf(day)).toMatchObject({ isPaused: true, pausedUntil: at('20:00:00') })
  })

  it('do not where they pause it all week, or an operator does', () => {
    expect(policy.paceOf(new URL('http://week.test/'))).not.toHaveProperty('pausedUntil')
    overrides.set('day.test', { paused: true })
    expect(policy.paceOf(day)).toMatchObject({ isPaused: true })
    expect(policy.paceOf(day)).not.toHaveProperty('pausedUntil')
    overrides.clear()
  })

  it('are those of another moment where that is asked for', () => {
    now = at('09:00:00')
    expect(policy.paceOf(day, at('20:00:00'))).toMatchObject({ isPaused: false, ratePerSecond: 9 })
    expect(policy.paceOf(day)).toMatchObject({ isPaused: true, ratePerSecond: 1 })
  })
})
