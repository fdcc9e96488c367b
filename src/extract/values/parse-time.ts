import { gregorianYear } from './calendar.ts'
import { type MonthNames, monthLanguages } from './month-names.ts'
import { compileParts, type TimePart, type TimePattern, ZONE } from './time-pattern.ts'
import { type Zone, zoneMinutes } from './time-zone.ts'

/** A moment or a day, read from text. */
export type ParsedTime = { readonly ok: true; readonly ms: number; readonly date: string } | { readonly ok: false }

export interface TimeFormat {
  /** Tried in order. */
  readonly forms: readonly TimePattern[]
  /** Whether a number may be an epoch. */
  readonly readsEpoch: boolean
  /** Of texts that name none, and of the day of an instant. Undefined: UTC, and the zone that a text names. */
  readonly zone: Zone | undefined
  /** In which its language counts years, named as CLDR names it. */
  readonly calendar: string
}

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

/** `2008年6月3日` and `2008년 6월 3일`: each number says what it counts. */
const COUNTED = [
  ['年', '月', '日'],
  ['년', '월', '일'],
].map(([year, month, day]) =>
  compileParts(`(\\d{4})\\s?${year}\\s?(\\d{1,2})\\s?${month}\\s?(\\d{1,2})\\s?${day}`, ['year', 'month', 'day']),
)

/**
 * Forms that have one meaning: ISO 8601, compact, of East Asia, and those with the name of a month, in English or in the language of the
 * extractor.
 */
export function timeForms(locale: string | undefined): readonly TimePattern[] {
  return [ISO, COMPACT, ...COUNTED, ...monthLanguages(locale).flatMap(namedForms)]
}

/** Behind a year, as Croatian, Russian, Bulgarian and Ukrainian write it. */
const OF_YEAR = '(?:\\.|\\s?[гр]\\.)?'

/** They have the number behind them as their own: `Vol. 3 June 2008` names no day. */
const NUMBERED = '(?:no|nr|num|number|nummer|numéro|número|vol|volume|band|issue|heft|ausgabe|part|chapter|page)(?!\\p{L})'

function namedForms(months: MonthNames): readonly TimePattern[] {
  const name = months.expression
  return [
    compileParts(
      `(?:(?!${NUMBERED})[\\p{L}]{2,14}\\.?,?\\s+)?(\\d{1,2})(?:st|nd|rd|th|er|\\.|º)?\\s+(?:de\\s+)?${name},?\\s+(?:de\\s+)?(\\d{4})${OF_YEAR}(?:,?\\s+(\\d{2}):(\\d{2})(?::(\\d{2}))?\\s*${ZONE}?)?`,
      ['day', 'monthName', 'year', 'hour', 'minute', 'second', 'zone'],
      months,
    ),
    compileParts(`(?:[\\p{L}]{2,14},?\\s+)?${name}\\s+(\\d{1,2})(?:st|nd|rd|th)?,?\\s+(\\d{4})`, ['monthName', 'day', 'year'], months),
    // As Hungarian has it.
    compileParts(`(\\d{4})\\.?\\s+${name}\\s+(\\d{1,2})\\.?`, ['year', 'monthName', 'day'], months),
  ]
}

/**
 * A time in a form that has one meaning: ISO 8601, RFC 2822, `3 June 2008`, `June 3, 2008`, 20080603, or epoch seconds (10 digits)
 * or milliseconds (13). `03/04/2008` has two and is none of them: the extractor says its `format`.
 */
export function parseTime(text: string, format: TimeFormat): ParsedTime {
  const trimmed = text.trim()
  if (format.readsEpoch && /^\d{10}(\d{3})?$/.test(trimmed)) {
    const ms = trimmed.length === 10 ? Number(trimmed) * 1000 : Number(trimmed)
    return moment(ms, format.zone?.ofInstant(ms) ?? 0)
  }
  for (const form of format.forms) {
    const parsed = readParts(trimmed, form, format)
    if (parsed.ok) return parsed
  }
  return { ok: false }
}

function readParts(text: string, { regex, parts, months }: TimePattern, { zone, calendar }: TimeFormat): ParsedTime {
  const match = regex.exec(text)
  if (match === null) return { ok: false }
  const read: Partial<Record<TimePart, string>> = {}
  parts.forEach((part, index) => {
    const value = match[index + 1]
    if (value !== undefined) read[part] = value.toLowerCase()
  })
  const written = read.year === undefined ? fullYear(Number(read.shortYear)) : Number(read.year)
  const year = gregorianYear(written, calendar)
  if (year === undefined) return { ok: false }
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
  const minutes = stated ?? zone?.ofLocal(local) ?? 0
  const ms = local - minutes * 60_000
  const isInstant = stated !== undefined && read.hour !== undefined
  return moment(ms, isInstant ? (zone?.ofInstant(ms) ?? stated) : minutes)
}

/** Source: POSIX strptime, %y. */
function fullYear(short: number): number {
  return short >= 69 ? 1900 + short : 2000 + short
}

function hourOf(text: string | undefined, half: string | undefined): number | undefined {
  const hour = Number(text ?? 0)
  if (half === undefined) return hour
  if (hour < 1 || hour > 12) return undefined
  return (hour % 12) + (half === 'pm' ? 12 : 0)
}

/** Shape: the date is the day at `minutes` east of UTC. */
function moment(ms: number, minutes: number): ParsedTime {
  const local = new Date(ms + minutes * 60_000)
  if (Number.isNaN(local.getTime()) || local.getUTCFullYear() > 9999) return { ok: false }
  return { ok: true, ms, date: local.toISOString().slice(0, 10) }
}
