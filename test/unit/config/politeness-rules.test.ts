import { describe, expect, it } from 'vitest'
import { parsePolitenessRules } from '../../../src/config/politeness-rules.ts'

const first = (rule: unknown) => {
  const parsed = parsePolitenessRules([rule])
  return parsed.ok ? parsed.value[0] : parsed.expected
}

describe('politeness.rules', () => {
  it('may be none', () => {
    expect(parsePolitenessRules('')).toEqual({ ok: true, value: [] })
  })

  it('give durations in ms, hours in minutes and days as numbers', () => {
    const schedule = [
      { hours: '22:00-06:00', timezone: 'Europe/Berlin', ratePerSecond: 5, crawlDelay: '500ms' },
      { hours: '9:30 - 24:00', days: 'fri-mon, wed', paused: true },
    ]
    expect(first({ match: '*.a.test', key: 'domain', crawlDelay: '2s', schedule })).toEqual({
      match: '*.a.test',
      key: 'domain',
      crawlDelayMs: 2_000,
      schedule: [
        {
          fromMinute: 1_320,
          toMinute: 360,
          timezone: 'Europe/Berlin',
          text: '22:00-06:00 Europe/Berlin',
          ratePerSecond: 5,
          crawlDelayMs: 500,
        },
        { fromMinute: 570, toMinute: 1_440, days: [0, 1, 3, 5, 6], timezone: 'UTC', text: '9:30 - 24:00 UTC', isPaused: true },
      ],
    })
  })

  it.each([
    ['*.Shop.Example', '*.shop.example'],
    ['shop.example.', 'shop.example'],
    ['*.bücher.example', '*.xn--bcher-kva.example'],
    ['10.*.*.7', '10.*.*.7'],
    ['my_shop.example', 'my_shop.example'],
    ['[::1]', '[::1]'],
    ['*', '*'],
  ])('compare %j as hosts of URLs are written: %j', (match, host) => {
    expect(first({ match })).toEqual({ match: host })
  })

  it.each(['http://shop.example/', 'shop.example/', 'shop.example:8080', 'a.example, b.example', 'shop example', ' '])(
    'refuse %j, which no host could match',
    (match) => {
      expect(first({ match })).toBe(
        `rule 1: match is a host without scheme, port and path, like *.example.com, and not ${JSON.stringify(match)}`,
      )
    },
  )

  it.each([
    ['fast', 'rule 1: Invalid input: expected object, received string'],
    [{}, 'rule 1: match Invalid input: expected string, received undefined'],
    [{ match: 'a', ratePerSecond: 1e-18 }, 'rule 1: ratePerSecond Too small: expected number to be >=0.0001'],
    [{ match: 'a', crawlDelay: '366d' }, 'rule 1: crawlDelay is at most 365d'],
    [{ match: 'a', crawlDelay: '2' }, 'rule 1: crawlDelay "2" is not a duration with its unit, like 30s'],
    [{ match: 'a', crawlDelay: 5 }, 'rule 1: crawlDelay 5 is not a duration with its unit, like 30s'],
    [{ match: 'a', ratePerSecnd: 2 }, 'rule 1: unknown key "ratePerSecnd"; did you mean ratePerSecond?'],
    [{ match: 'a', schedule: [{ hours: '1:00-2:00', dais: 'mon' }] }, 'rule 1: schedule.0 unknown key "dais"; did you mean days?'],
    [{ match: 'a', schedule: [] }, 'rule 1: schedule Too small: expected array to have >=1 items'],
    [{ match: 'a', schedule: [{ hours: 'night' }] }, 'rule 1: schedule.0.hours are two times, like 22:00-06:00, and not "night"'],
    [
      { match: 'a', schedule: [{ hours: '25:00-06:00' }] },
      'rule 1: schedule.0.hours are two times, like 22:00-06:00, and not "25:00-06:00"',
    ],
    [
      { match: 'a', schedule: [{ hours: '06:00-06:00' }] },
      'rule 1: schedule.0.hours are two times, like 22:00-06:00, and not "06:00-06:00"',
    ],
    [
      { match: 'a', schedule: [{ hours: '06:60-07:00' }] },
      'rule 1: schedule.0.hours are two times, like 22:00-06:00, and not "06:60-07:00"',
    ],
    [
      { match: 'a', schedule: [{ hours: '06:00-07:00', timezone: 'Berlin' }] },
      'rule 1: schedule.0.timezone is a name of the time zone database, like Europe/Berlin, and not "Berlin"',
    ],
    [
      { match: 'a', schedule: [{ hours: '06:00-07:00', days: 'monday' }] },
      'rule 1: schedule.0.days are like mon-fri or sat,sun, and not "monday"',
    ],
    [
      { match: 'a', schedule: [{ hours: '06:00-07:00', ratePerSecond: 0 }] },
      'rule 1: schedule.0.ratePerSecond Too small: expected number to be >=0.0001',
    ],
  ])('%j is refused: %s', (rule, expected) => {
    expect(first(rule)).toBe(expected)
  })

  it('name the rule that is wrong', () => {
    expect(parsePolitenessRules([{ match: 'a' }, { match: '' }])).toMatchObject({
      ok: false,
      expected: expect.stringMatching(/^rule 2: match /),
    })
  })
})
