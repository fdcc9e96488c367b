import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { endOf, WallClock, windowAt, windowsOfWeek } from '../../../src/politeness/schedule.ts'

const minutes = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3))
const window = (hours: string, timezone: string, days?: readonly number[]) => ({
  fromMinute: minutes(hours.slice(0, 5)),
  toMinute: minutes(hours.slice(6)),
  timezone,
  ...(days === undefined ? {} : { days }),
})
const holds = (one: ReturnType<typeof window>, at: string): boolean => windowAt([one], Date.parse(at), new WallClock()) === one

describe('a window of the day', () => {
  it.each([
    ['08:00-17:00', '2026-11-28T07:59:59Z', false],
    ['08:00-17:00', '2026-11-28T08:00:00Z', true],
    ['08:00-17:00', '2026-11-28T16:59:59Z', true],
    ['08:00-17:00', '2026-11-28T17:00:00Z', false],
    ['22:00-06:00', '2026-11-28T22:00:00Z', true],
    ['22:00-06:00', '2026-11-29T05:59:59Z', true],
    ['22:00-06:00', '2026-11-29T06:00:00Z', false],
    ['00:00-24:00', '2026-11-29T00:00:00Z', true],
    ['22:00-00:00', '2026-11-29T23:59:00Z', true],
    ['22:00-00:00', '2026-11-30T00:00:00Z', false],
  ] as const)('%s holds %s: %s', (hours, at, expected) => {
    expect(holds(window(hours, 'UTC'), at)).toBe(expected)
  })

  it('is by the clock of its own zone, half hours included', () => {
    expect(holds(window('09:00-10:00', 'Asia/Kolkata'), '2026-11-28T03:29:00Z')).toBe(false)
    expect(holds(window('09:00-10:00', 'Asia/Kolkata'), '2026-11-28T03:30:00Z')).toBe(true)
    expect(holds(window('22:00-06:00', 'America/New_York'), '2026-11-29T03:00:00Z')).toBe(true)
  })

  it('keeps its hours on the wall when clocks are put forward: an hour of it is left out', () => {
    // Berlin, 29 March 2026: 01:59 CET is followed by 03:00 CEST.
    const early = window('02:00-03:00', 'Europe/Berlin')
    expect(holds(early, '2026-03-29T00:59:00Z')).toBe(false)
    expect(holds(early, '2026-03-29T01:00:00Z')).toBe(false)
    expect(holds(early, '2026-03-28T01:30:00Z')).toBe(true)
    const night = window('22:00-06:00', 'Europe/Berlin')
    expect(holds(night, '2026-03-29T03:59:00Z')).toBe(true)
    expect(holds(night, '2026-03-29T04:00:00Z')).toBe(false)
  })

  it('keeps its hours on the wall when clocks are put back: an hour of it comes twice', () => {
    // Berlin, 25 October 2026: 02:59 CEST is followed by 02:00 CET.
    const early = window('02:00-03:00', 'Europe/Berlin')
    expect(holds(early, '2026-10-25T00:30:00Z')).toBe(true)
    expect(holds(early, '2026-10-25T01:30:00Z')).toBe(true)
    expect(holds(early, '2026-10-25T02:00:00Z')).toBe(false)
  })

  it('belongs over midnight to the day on which it begins', () => {
    const fridays = window('22:00-06:00', 'UTC', [5])
    expect(holds(fridays, '2026-11-27T23:00:00Z')).toBe(true)
    expect(holds(fridays, '2026-11-28T05:00:00Z')).toBe(true)
    expect(holds(fridays, '2026-11-28T23:00:00Z')).toBe(false)
    expect(holds(fridays, '2026-11-27T05:00:00Z')).toBe(false)
    expect(holds(window('22:00-06:00', 'UTC', [6]), '2026-11-29T05:00:00Z')).toBe(true)
  })

  it('is the first that holds the moment, and none where none does', () => {
    const [day, all] = [window('08:00-17:00', 'UTC'), window('00:00-24:00', 'UTC')]
    const clock = new WallClock()
    expect(windowAt([day, all], Date.parse('2026-11-28T09:00:00Z'), clock)).toBe(day)
    expect(windowAt([day, all], Date.parse('2026-11-28T18:00:00Z'), clock)).toBe(all)
    expect(windowAt([day], Date.parse('2026-11-28T18:00:00Z'), clock)).toBeUndefined()
    expect(windowAt([], 0, clock)).toBeUndefined()
  })
})

describe('the end of what windows say', () => {
  const paused = (hours: string, timezone = 'UTC', days?: readonly number[]) => ({ ...window(hours, timezone, days), isPaused: true })
  const end = (windows: readonly ReturnType<typeof paused>[], from: string): string | undefined => {
    const at = endOf(windows, Date.parse(from), (each) => each?.isPaused === true)
    return at === undefined ? undefined : new Date(at).toISOString()
  }

  it.each([
    ['09:00-12:00', '2026-11-28T09:30:20Z', '2026-11-28T12:00:00.000Z'],
    ['22:00-06:00', '2026-11-28T23:59:59Z', '2026-11-29T06:00:00.000Z'],
    ['08:00-00:00', '2026-11-28T08:00:00Z', '2026-11-29T00:00:00.000Z'],
  ] as const)('of %s at %s is %s', (hours, from, expected) => {
    expect(end([paused(hours)], from)).toBe(expected)
  })

  it('is that of the last of windows that follow each other, by the clock on the wall', () => {
    expect(end([paused('09:00-12:00'), paused('12:00-14:00')], '2026-11-28T10:00:00Z')).toBe('2026-11-28T14:00:00.000Z')
    expect(end([paused('00:00-24:00', 'UTC', [6, 0])], '2026-11-28T10:00:00Z')).toBe('2026-11-30T00:00:00.000Z')
    // Clocks are put back at 03:00: the night is an hour longer.
    expect(end([paused('22:00-06:00', 'Europe/Berlin')], '2026-10-24T22:00:00Z')).toBe('2026-10-25T05:00:00.000Z')
  })

  it('is none where they hold all week', () => {
    expect(end([paused('00:00-24:00')], '2026-11-28T10:00:00Z')).toBeUndefined()
  })

  it('is found without a look at each minute, wherever clocks are put forward or back', () => {
    const minute = fc.integer({ min: 0, max: 1_439 })
    const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe')
    const days = fc.option(fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { minLength: 1 }), { nil: undefined })
    const windows = fc.array(
      fc
        .record({ fromMinute: minute, toMinute: minute.map((value) => value + 1), timezone: zone, days, isPaused: fc.boolean() })
        .map(({ days, ...rest }) => (days === undefined ? rest : { ...rest, days })),
      { minLength: 1, maxLength: 3 },
    )
    const weeks = ['2026-03-06', '2026-03-27', '2026-04-03', '2026-10-23', '2026-10-30', '2026-07-01'].map((day) => Date.parse(day))
    const from = fc.tuple(fc.constantFrom(...weeks), fc.nat(4 * 86_400_000)).map(([week, ms]) => week + ms)
    fc.assert(
      fc.property(windows, from, (given, now) => {
        const isPaused = (window: { isPaused: boolean } | undefined): boolean => window?.isPaused === true
        const found = endOf(given, now, isPaused)
        const reader = new WallClock()
        const first = now - (now % 60_000) + 60_000
        for (let at = first; at < Math.min(found ?? Number.POSITIVE_INFINITY, first + 3 * 86_400_000); at += 60_000)
          if (!isPaused(windowAt(given, at, reader))) throw new Error(`ends at ${new Date(at).toISOString()}`)
        if (found !== undefined) expect(isPaused(windowAt(given, found, reader))).toBe(false)
      }),
      { numRuns: 60 },
    )
  })
})

describe('the windows of a week', () => {
  it('are those that hold at some time of it, that of now first, and what lies beside them; not one that others hide', () => {
    const [day, sunday, hidden] = [window('08:00-17:00', 'UTC'), window('00:00-24:00', 'UTC', [0]), window('09:00-10:00', 'UTC')]
    const found = windowsOfWeek([day, sunday, hidden], Date.parse('2026-11-30T12:34:56Z'))
    expect([...found].map(([of, at]) => [of, new Date(at).toISOString()])).toEqual([
      [day, '2026-11-30T12:34:56.000Z'],
      [undefined, '2026-11-30T17:00:00.000Z'],
      [sunday, '2026-12-06T00:00:00.000Z'],
    ])
    expect([...windowsOfWeek([], 7)]).toEqual([[undefined, 7]])
  })
})
