import { MONTHS_IN_ENGLISH, type MonthNames, monthNames } from './month-names.ts'
import { type ZoneOffset, zoneMinutes } from './time-zone.ts'

/** A moment or a day, read from text. */
export type ParsedTime = { readonly ok: true; readonly ms: number; readonly date: string } | { readonly ok: false }

export interface TimeFormat {
  /** Compiled from the extractor's `format`; undefined: the unambiguous forms. */
  readonly pattern: TimePattern | undefined
  readonly forms: readonly TimePattern[]
  /** For texts that name no zone. */
  readonly offset: ZoneOffset
}

export interface TimePattern {
  readonly regex: RegExp
  readonly parts: readonly Part[]
  readonly months: MonthNames
}

type Part = 'year' | 'shortYear' | 'month' | 'monthName' | 'day' | 'hour' | 'minute' | 'second' | 'milli' | 'half' | 'zone'

const ZONE = '(z|utc|gmt|[+-]\\d{2}(?::?\\d{2})?)'

/** The expression of a month's name follows its language. */
const TOKENS: readonly (readonly [token: string, part: Part, regex: string])[] = [
  ['YYYY', 'year', '(\\d{4})'],
  ['YY', 'shortYear', '(\\d{2})'],
  ['MMM', 'monthName', ''],
  ['MM', 'month', '(\\d{2})'],
  ['M', 'month', '(\\d{1,2})'],
  ['DD', 'day', '(\\d{2})'],
  ['D', 'day', '(\\d{1,2})'],
  ['HH', 'hour', '(\\d{2})'],
  ['H', 'hour', '(\\d{1,2})'],
  ['hh', 'hour', '(\\d{2})'],
  ['h', 'hour', '(\\d{1,2})'],
  ['mm', 'minute', '(\\d{2})'],
  ['ss', 'second', '(\\d{2})'],
  ['SSS', 'milli', '(\\d{3})'],
  ['a', 'half', '([ap]m)'],
  ['Z', 'zone', ZONE],
]

/** What stands in `format`; for messages. */
export const TIME_TOKENS: readonly string[] = TOKENS.map(([token]) => token)

const ISO = compileParts(`(\\d{4})-(\\d{2})-(\\d{2})(?:[t ](\\d{2}):(\\d{2})(?::(\\d{2})(?:[.,](\\d{1,9}))?)?\\s?${ZONE}?)?`, [
  'year',
  'month',
  'day',
  'hour',
  'minute',
  'second',
  'milli',
  'zone',
])
const COMPACT = compileParts(`(\\d{4})(\\d{2})(\\d{2})(?:t(\\d{2})(\\d{2})(\\d{2})?${ZONE}?)?`, [
  'year',
  'month',
  'day',
  'hour',
  'minute',
  'second',
  'zone',
])

/** Forms that have one meaning: ISO 8601, compact, and those with the name of a month, in English or in the language of the extractor. */
export function timeForms(locale: string | undefined): readonly TimePattern[] {
  const english = namedForms(MONTHS_IN_ENGLISH)
  return locale === undefined ? [ISO, COMPACT, ...english] : [ISO, COMPACT, ...namedForms(monthNames(locale)), ...english]
}

function namedForms(months: MonthNames): readonly TimePattern[] {
  const name = months.expression
  return [
    compileParts(
      `(?:[\\p{L}]{2,14}\\.?,?\\s+)?(\\d{1,2})(?:st|nd|rd|th|er|\\.|º)?\\s+(?:de\\s+)?${name},?\\s+(?:de\\s+)?(\\d{4})(?:,?\\s+(\\d{2}):(\\d{2})(?::(\\d{2}))?\\s*${ZONE}?)?`,
      ['day', 'monthName', 'year', 'hour', 'minute', 'second', 'zone'],
      months,
    ),
    compileParts(`(?:[\\p{L}]{2,14},?\\s+)?${name}\\s+(\\d{1,2})(?:st|nd|rd|th)?,?\\s+(\\d{4})`, ['monthName', 'day', 'year'], months),
  ]
}

/**
 * A time in a form that has one meaning: ISO 8601, RFC 2822, `3 June 2008`, `June 3, 2008`, 20080603, or epoch seconds (10 digits)
 * or milliseconds (13). `03/04/2008` has two and is none of them: the extractor says its `format`.
 */
export function parseTime(text: string, format: TimeFormat): ParsedTime {
  const trimmed = text.trim()
  if (format.pattern !== undefined) return readParts(trimmed, format.pattern, format.offset)
  if (/^\d{10}$/.test(trimmed)) return moment(Number(trimmed) * 1000, 0)
  if (/^\d{13}$/.test(trimmed)) return moment(Number(trimmed), 0)
  for (const form of format.forms) {
    const parsed = readParts(trimmed, form, format.offset)
    if (parsed.ok) return parsed
  }
  return { ok: false }
}

/** Shape: tokens of TIME_TOKENS and anything else as it stands; undefined where it names no year, month and day. */
export function compileTimePattern(format: string, locale?: string): TimePattern | undefined {
  const months = locale === undefined ? MONTHS_IN_ENGLISH : monthNames(locale)
  let source = ''
  const parts: Part[] = []
  for (let at = 0; at < format.length; ) {
    const token = TOKENS.find(([name]) => format.startsWith(name, at))
    if (token === undefined) {
      const character = format[at] ?? ''
      source += /\s/.test(character) ? '\\s+' : character.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
      at += 1
      continue
    }
    source += token[1] === 'monthName' ? months.expression : token[2]
    parts.push(token[1])
    at += token[0].length
  }
  const has = (...names: Part[]): boolean => names.some((name) => parts.includes(name))
  return has('year', 'shortYear') && has('month', 'monthName') && has('day') ? compileParts(source, parts, months) : undefined
}

function compileParts(source: string, parts: readonly Part[], months: MonthNames = MONTHS_IN_ENGLISH): TimePattern {
  return { regex: new RegExp(`^${source}$`, 'iu'), parts, months }
}

function readParts(text: string, { regex, parts, months }: TimePattern, offset: ZoneOffset): ParsedTime {
  const match = regex.exec(text)
  if (match === null) return { ok: false }
  const read: Partial<Record<Part, string>> = {}
  parts.forEach((part, index) => {
    const value = match[index + 1]
    if (value !== undefined) read[part] = value.toLowerCase()
  })
  const year = read.year === undefined ? 2000 + Number(read.shortYear) : Number(read.year)
  const month = read.monthName === undefined ? Number(read.month) : months.numberOf(read.monthName)
  const day = Number(read.day)
  const hour = hourOf(read.hour, read.half)
  const [minute, second] = [Number(read.minute ?? 0), Number(read.second ?? 0)]
  const milli = Number((read.milli ?? '0').padEnd(3, '0').slice(0, 3))
  const stated = read.zone === undefined ? undefined : zoneMinutes(read.zone)
  if (hour === undefined || (read.zone !== undefined && stated === undefined) || hour > 23 || minute > 59 || second > 59)
    return { ok: false }
  const local = Date.UTC(year, month - 1, day, hour, minute, second, milli)
  const back = new Date(local)
  // 31 June rolls over: no such day. Date.UTC takes the year 50 for 1950.
  if (back.getUTCMonth() !== month - 1 || back.getUTCDate() !== day || year < 100) return { ok: false }
  const zone = stated ?? offset(local)
  return moment(local - zone * 60_000, zone)
}

function hourOf(text: string | undefined, half: string | undefined): number | undefined {
  const hour = Number(text ?? 0)
  if (half === undefined) return hour
  if (hour < 1 || hour > 12) return undefined
  return (hour % 12) + (half === 'pm' ? 12 : 0)
}

/** The date is the day in the zone of the text, not in UTC. */
function moment(ms: number, zone: number): ParsedTime {
  const local = new Date(ms + zone * 60_000)
  if (Number.isNaN(local.getTime()) || local.getUTCFullYear() > 9999) return { ok: false }
  return { ok: true, ms, date: local.toISOString().slice(0, 10) }
}
