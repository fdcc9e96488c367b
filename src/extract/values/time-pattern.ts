import { calendarOf, inGregorian, isReadCalendar } from './calendar.ts'
import { MONTHS_IN_ENGLISH, type MonthNames, monthLanguages } from './month-names.ts'
import { OptionError } from './option-error.ts'

/** A form of a time as a regular expression with a group per part. */
export interface TimePattern {
  readonly regex: RegExp
  readonly parts: readonly TimePart[]
  readonly months: MonthNames
}

export type TimePart = 'year' | 'shortYear' | 'month' | 'monthName' | 'day' | 'hour' | 'minute' | 'second' | 'milli' | 'half' | 'zone'

export const ZONE = '(z|utc|gmt|[+-]\\d{2}(?::?\\d{2})?)'

/** The expression of a month's name follows its language; MMM and MMMM both read long and short ones. */
const TOKENS: Readonly<Record<string, readonly [part: TimePart, regex: string]>> = {
  YYYY: ['year', '(\\d{4})'],
  YY: ['shortYear', '(\\d{2})'],
  MMMM: ['monthName', ''],
  MMM: ['monthName', ''],
  MM: ['month', '(\\d{2})'],
  M: ['month', '(\\d{1,2})'],
  DD: ['day', '(\\d{2})'],
  D: ['day', '(\\d{1,2})'],
  HH: ['hour', '(\\d{2})'],
  H: ['hour', '(\\d{1,2})'],
  hh: ['hour', '(\\d{2})'],
  h: ['hour', '(\\d{1,2})'],
  mm: ['minute', '(\\d{2})'],
  ss: ['second', '(\\d{2})'],
  SSS: ['milli', '(\\d{3})'],
  a: ['half', '([ap]m)'],
  Z: ['zone', ZONE],
}

const TOKEN_NAMES = Object.keys(TOKENS).join(', ')

/** What a part is of: a page that says the year in two ways has one year all the same. */
const SAID: Readonly<Record<TimePart, string>> = {
  year: 'year',
  shortYear: 'year',
  month: 'month',
  monthName: 'month',
  day: 'day',
  hour: 'hour',
  minute: 'minute',
  second: 'second',
  milli: 'millisecond',
  half: 'half of the day',
  zone: 'zone',
}

/** Text in single quotes, two of which are one within it and for themselves; letters; and what stands as it is. */
const PIECES = /'((?:[^']|'')*)'|[A-Za-z]+|[^A-Za-z']+|'/g

/**
 * Compiles the `format` of an extractor, for the names of months in each language that is looked at. Shape: tokens, text in single quotes
 * as in the patterns of CLDR, and anything but letters as it stands. Errors: OptionError for letters that are no token, for a part that is
 * there twice (the page would have to say it twice, and alike), where it names no day, for a year of two digits that may be of either of
 * two eras, and for a locale whose calendar is not read; RangeError for a locale that is none.
 */
export function compileFormat(format: string, locale?: string): readonly TimePattern[] {
  const calendar = calendarOf(locale)
  if (locale !== undefined && !isReadCalendar(calendar)) {
    const why = `dates of ${locale} are in the calendar ${calendar}, which is not read`
    throw new OptionError('locale', `${why}; where a page has Gregorian ones in this format, say ${inGregorian(locale)}`)
  }
  const patterns = monthLanguages(locale).map((months) => compileTimePattern(format, months))
  if (locale !== undefined && calendar === 'buddhist' && patterns.some(({ parts }) => parts.includes('shortYear'))) {
    const why = `has a year of two digits, which in ${locale} may be one of the Buddhist era or not`
    throw new OptionError('format', `the format ${JSON.stringify(format)} ${why}; expected YYYY, or the locale ${inGregorian(locale)}`)
  }
  return patterns
}

function compileTimePattern(format: string, months: MonthNames): TimePattern {
  const refused = (why: string): OptionError => new OptionError('format', `the format ${JSON.stringify(format)}${why}`)
  let source = ''
  const parts: TimePart[] = []
  for (const [piece, quoted] of format.trim().matchAll(PIECES)) {
    if (piece === "'") throw refused(' has a single quote that is not closed')
    if (quoted !== undefined || !/^[A-Za-z]/.test(piece)) {
      source += literal(quoted === '' ? "'" : (quoted?.replaceAll("''", "'") ?? piece))
      continue
    }
    for (const [run] of piece.matchAll(/(.)\1*/g)) {
      // As ISO 8601 has it between day and time, and everybody writes it so.
      if (run === 'T') {
        source += literal(run)
        continue
      }
      const token = Object.hasOwn(TOKENS, run) ? TOKENS[run] : undefined
      if (token === undefined) {
        throw refused(
          `: in ${JSON.stringify(piece)} are letters that are no part of a time (${TOKEN_NAMES}); text that stands as it is goes in single quotes`,
        )
      }
      const [part, regex] = token
      if (parts.some((other) => SAID[other] === SAID[part])) {
        throw refused(` has the ${SAID[part]} twice; text that stands as it is goes in single quotes`)
      }
      source += part === 'monthName' ? months.expression : regex
      parts.push(part)
    }
  }
  const said = new Set(parts.map((part) => SAID[part]))
  if (!['year', 'month', 'day'].every((name) => said.has(name))) throw refused(' names no year, month and day')
  return compileParts(source, parts, months)
}

/** Shape: source is a regular expression with a group per part. */
export function compileParts(source: string, parts: readonly TimePart[], months: MonthNames = MONTHS_IN_ENGLISH): TimePattern {
  return { regex: new RegExp(`^${source}$`, 'iu'), parts, months }
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/\s+/g, '\\s+')
}
