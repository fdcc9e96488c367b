import { describe, expect, it } from 'vitest'
import { parseAnyDuration, parseMoment } from '../../../src/cli/parse-moment.ts'
import { isMillraceError } from '../../../src/kernel/errors.ts'

const NOW = Date.parse('2026-03-10T12:00:00Z')

describe('a time', () => {
  it.each([
    ['2026-03-01', '2026-03-01T00:00:00.000Z'],
    ['2026-03-01T12:00', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01 12:00:05', '2026-03-01T12:00:05.000Z'],
    ['2026-03-01T12:00:05.1239Z', '2026-03-01T12:00:05.123Z'],
    ['2026-03-01t12:00:05,5z', '2026-03-01T12:00:05.500Z'],
    ['2026-03-01T12:00:00+02:00', '2026-03-01T10:00:00.000Z'],
    ['2026-03-01T12:00:00-0530', '2026-03-01T17:30:00.000Z'],
    ['2026-03-01 12:00+01', '2026-03-01T11:00:00.000Z'],
    ['1772366400000', '2026-03-01T12:00:00.000Z'],
    [' 2h ', '2026-03-10T10:00:00.000Z'],
    ['1d12h', '2026-03-09T00:00:00.000Z'],
  ])('%s is %s', (text, expected) => {
    expect(new Date(parseMoment(text, '--from', NOW)).toISOString()).toBe(expected)
  })

  it('is the same in every zone of the machine', () => {
    const before = process.env.TZ
    try {
      process.env.TZ = 'Pacific/Auckland'
      expect(parseMoment('2026-03-01T12:00', '--from', NOW)).toBe(Date.parse('2026-03-01T12:00:00Z'))
    } finally {
      if (before === undefined) delete process.env.TZ
      else process.env.TZ = before
    }
  })

  it('lies ahead for options about what is to come', () => {
    expect(new Date(parseMoment('2h', '--expires', NOW, 'ahead')).toISOString()).toBe('2026-03-10T14:00:00.000Z')
  })

  it.each([
    'yesterday',
    '',
    '5',
    '2026',
    '20260301120000',
    '2026-02-30',
    '2026-13-01',
    '2026-03-01T25:00',
    '2026-03-01T12:61',
    '2026-03-01T12:00:00+25:00',
    '-2h',
    '03/01/2026',
  ])('%j is refused, naming the option and the forms', (text) => {
    try {
      parseMoment(text, '--from', NOW)
      expect.unreachable()
    } catch (error) {
      expect(isMillraceError(error, 'USAGE')).toBe(true)
      expect(String(error)).toContain(`--from: ${JSON.stringify(text)} is no time; write 2026-03-01T12:00:00Z`)
    }
  })
})

describe('a duration', () => {
  it.each([
    ['36h', 129_600_000],
    ['P1DT12H', 129_600_000],
    ['PT0.5S', 500],
    ['P14D', 1_209_600_000],
  ])('%s is %d ms', (text, ms) => expect(parseAnyDuration(text, '--by-duration')).toBe(ms))

  it.each(['P', 'PT', 'P1DT', '10', 'P1M', 'soon'])('%s is refused', (text) => {
    expect(() => parseAnyDuration(text, '--by-duration')).toThrow(`--by-duration: "${text}" is no duration`)
  })
})
