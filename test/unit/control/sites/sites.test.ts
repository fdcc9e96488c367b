import { describe, expect, it } from 'vitest'
import { byHoursText } from '../../../../src/cli/sites-session.ts'
import { beyondSite, existingDomain, siteDomain, siteOrigins } from '../../../../src/control/sites/site-domain.ts'
import { overrideOf } from '../../../../src/control/sites/site-rules.ts'
import { mergedOverride, paceChanges } from '../../../../src/control/sites/sites.ts'
import { newCommand, subject } from '../../../../src/message/command.ts'
import { createPolicy } from '../../../../src/politeness/policy.ts'

describe('the origins whose robots.txt a site has', () => {
  it.each<[string, readonly string[]]>([
    ['shop.example', []],
    ['https://shop.example/a', []],
    ['http://shop.example:80/', []],
    ['http://Shop.example:8080/a?b', ['http://shop.example:8080']],
    ['https://[::1]:8443/', ['https://[::1]:8443']],
    ['shop.example:8080', ['http://shop.example:8080', 'https://shop.example:8080']],
  ])('of %s are %j', (text, origins) => {
    expect(siteOrigins(text)).toEqual(origins)
  })
})

describe('the host that a name means', () => {
  it.each([
    ['Books.Example', 'books.example'],
    ['bücher.example.', 'xn--bcher-kva.example'],
    ['https://www.Books.example:8080/a', 'www.books.example'],
    ['localhost:8080', 'localhost'],
  ])('%s is %s', (text, host) => {
    expect(siteDomain(text)).toBe(host)
  })

  it('is refused where there is none', () => {
    expect(() => siteDomain('two words')).toThrow('is no domain')
    expect(() => existingDomain('*.books.example')).toThrow('write books.example, which covers all hosts below it')
    // An earlier version has paused some by it.
    expect(siteDomain('*.books.example')).toBe('*.books.example')
  })
})

describe('what counts for nothing in the name of a site', () => {
  it.each<[string, string | undefined]>([
    ['shop.example', undefined],
    ['https://shop.example', undefined],
    ['https://shop.example:443/', undefined],
    ['https://shop.example/a/b', '/a/b'],
    ['shop.example/a', '/a'],
    ['shop.example:8080', ':8080'],
    ['http://shop.example:8080/a?b=1#c', ':8080/a?b=1#c'],
  ])('of %s is %s', (text, beyond) => {
    expect(beyondSite(text)).toBe(beyond)
  })
})

describe('the live override of a site', () => {
  const control = (payload: unknown) => {
    const command = newCommand({ clock: { now: () => 1 }, kind: 'set', subject: subject.site('a.test'), payload, by: 'a test' })
    return { get: () => command }
  }
  const said = (payload: unknown) => overrideOf(control(payload), 'a.test')

  it('shows no value that the limiter does not go by', () => {
    expect(said({ ratePerSecond: -1, burst: 2, crawlDelayMs: 1e20, color: 'red' })).toEqual({ burst: 2, crawlDelayMs: 365 * 86_400_000 })
    expect(said({ ratePerSecond: 'fast' })).toBeUndefined()
  })

  it('keeps what a newer release has written there when another value is changed', () => {
    const held = control({ ratePerSecond: 2, quietHours: '22-6', reset: { at: 7, lifted: { allowed: 3 } } })
    const changed = { ratePerSecond: 2, quietHours: '22-6', reset: { at: 7, lifted: { allowed: 3 } }, paused: true }
    expect(mergedOverride(held, 'a.test', { paused: true })).toEqual(changed)
    expect(mergedOverride(control({ burst: 2 }), 'a.test', { burst: undefined })).toBeUndefined()
    expect(mergedOverride(control('rubbish'), 'a.test', { paused: true })).toEqual({ paused: true })
  })

  it('tells what a reset lifted where that was said', () => {
    const lifted = { backOffMs: 5_000, isAsked: true, allowed: null, rateFactor: 0.5, trips: 0, parkedMs: 0 }
    expect(said({ reset: { at: 7, lifted } })).toEqual({ reset: { at: 7, lifted } })
    expect(said({ reset: { at: 7, lifted: { ...lifted, rateFactor: 'half' } } })).toEqual({ reset: { at: 7 } })
  })
})

describe('a change of a pace', () => {
  type Values = { readonly ratePerSecond?: number; readonly crawlDelayMs?: number; readonly isPaused?: boolean }
  const night = { fromMinute: 22 * 60, toMinute: 6 * 60, timezone: 'UTC', text: '22:00-06:00 UTC' }
  const changes = (was: Values, is: Values, hours?: Values, robotsMs?: number) => {
    const policyOf = (values: Values, override?: Values) =>
      createPolicy({
        key: 'host',
        default: { ratePerSecond: 1, burst: 1, concurrency: 1 },
        rules: [{ match: 'a.example', ...values, ...(hours === undefined ? {} : { schedule: [{ ...night, ...hours }] }) }],
        overrideOf: () => override,
        now: () => Date.parse('2026-11-30T12:00:00Z'),
      })
    const rules = { before: policyOf(was), after: policyOf(was, is) }
    return paceChanges(rules, new URL('http://a.example/'), { delayMs: robotsMs, maxMs: 60_000 })
  }

  it.each<[Values, Values, number | undefined, string]>([
    [{ ratePerSecond: 1 }, { ratePerSecond: 2 }, undefined, 'faster'],
    [{ ratePerSecond: 1 }, { ratePerSecond: 1 }, undefined, 'same'],
    [{ ratePerSecond: 2 }, { ratePerSecond: 1 }, undefined, 'slower'],
    [{ ratePerSecond: 1 }, { ratePerSecond: 2 }, 3_000, 'same'],
    [{ crawlDelayMs: 3_000 }, { crawlDelayMs: 0 }, undefined, 'faster'],
  ])(
    'is what becomes of the time between two requests, by whichever of rate and crawl delay counts: %j to %j',
    (was, is, robotsMs, how) => {
      expect(changes(was, is, undefined, robotsMs)).toEqual([{ hours: undefined, is: how }])
    },
  )

  it('is told of each of the hours of a schedule: what is faster than by day may be slower than by night', () => {
    const told = changes({ ratePerSecond: 1 }, { ratePerSecond: 5 }, { ratePerSecond: 10 })
    expect(told).toEqual([
      { hours: undefined, is: 'faster' },
      { hours: '22:00-06:00 UTC', is: 'slower' },
    ])
    expect(byHoursText(told)).toBe('by the schedule of its rule this is faster in the other hours; slower in 22:00-06:00 UTC')
  })

  it('says nothing of hours where it is the same in all of them, or they pause the site', () => {
    expect(byHoursText(changes({ ratePerSecond: 1 }, { ratePerSecond: 20 }, { ratePerSecond: 10 }))).toBeUndefined()
    expect(changes({ ratePerSecond: 1 }, { ratePerSecond: 5 }, { isPaused: true })).toEqual([{ hours: undefined, is: 'faster' }])
  })
})
