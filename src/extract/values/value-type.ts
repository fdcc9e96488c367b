import { isDeepStrictEqual } from 'node:util'
import { MAX_LONG, MIN_LONG } from '../../message/avro-value.ts'
import { htmlToMarkdown } from '../sources/markdown.ts'
import { calendarOf, isReadCalendar } from './calendar.ts'
import { hasThreeDecimals } from './currencies.ts'
import { checkLocale } from './known-locale.ts'
import { OptionError } from './option-error.ts'
import { type DecimalDigits, decimalMarksOf, type NoNumber, type NumberFormat, parseNumber } from './parse-number.ts'
import { parseTime, type TimeFormat, timeForms } from './parse-time.ts'
import { type PlainValue, RawMoney } from './raw-value.ts'
import { type Money, moneyParts, type Price, priceIn } from './read-money.ts'
import { collapseNumbers, edgeOf, hasEdges, type NumberPieces, numberPieces, withoutEdges, withSettledEdges } from './split-number.ts'
import { compileFormat } from './time-pattern.ts'
import { compileZone } from './time-zone.ts'

/** Type of a field, as the extractor file says it. */
export type ValueType =
  | { readonly kind: 'string' | 'url' | 'html' | 'markdown' | 'boolean' }
  | { readonly kind: 'int' | 'long' | 'double'; readonly locale?: string }
  | { readonly kind: 'decimal'; readonly scale: number; readonly locale?: string }
  | { readonly kind: 'money'; readonly scale: number; readonly locale?: string /** ISO 4217 */; readonly currency?: string }
  | { readonly kind: 'date' | 'timestamp'; readonly format?: string; readonly zone?: string; readonly locale?: string }

export type ScalarKind = ValueType['kind']

export const SCALAR_KINDS = [
  'string',
  'int',
  'long',
  'double',
  'decimal',
  'money',
  'boolean',
  'date',
  'timestamp',
  'url',
  'html',
  'markdown',
] as const satisfies readonly ScalarKind[]

/** A typed value as `AvroSchema.encode` takes it; `empty`: nothing but white space; `problem`: why it does not have the type. */
export type Converted =
  | { readonly kind: 'value'; readonly value: string | number | boolean | Money }
  | { readonly kind: 'empty' }
  | { readonly kind: 'problem'; readonly problem: string }

/**
 * Shape: machine = written by a program (attributes, JSON-LD, meta), so that `1.299` is little more than one; base = of URLs; currency =
 * found elsewhere, for a money whose text names none.
 */
export type Converter = (raw: PlainValue, machine: boolean, base: string, currency?: string) => Converted

const EMPTY: Converted = { kind: 'empty' }
const YES = new Set(['true', 'yes', 'y', 'on', '1'])
const NO = new Set(['false', 'no', 'n', 'off', '0'])
const INT_MAX = 2_147_483_647n
/** What a JavaScript number and the Avro library hold without loss. */
const LONG_MAX = BigInt(MAX_LONG)
const LONG_MIN = BigInt(MIN_LONG)
const PRECISION = 38

/** Compiles the conversion to one type. Errors: OptionError for a format, zone or locale that is none; checked when the file is read. */
export function compileConverter(type: ValueType): Converter {
  if ('locale' in type && type.locale !== undefined) checkLocale(type.locale)
  switch (type.kind) {
    case 'string':
      return (raw) => text(collapse(String(raw)))
    case 'html':
      return (raw) => text(String(raw).trim())
    case 'markdown':
      return (raw) => text(htmlToMarkdown(String(raw)).trim())
    case 'boolean':
      return toBoolean
    case 'url':
      return toUrl
    case 'int':
    case 'long':
      return numeric(type.locale, 0, integerOf(type.kind), 'first')
    case 'double':
      return numeric(type.locale, Number.POSITIVE_INFINITY, doubleOf)
    case 'decimal':
      return numeric(type.locale, type.scale, decimalOf(type.scale))
    case 'money':
      return toMoney(type)
    case 'date':
    case 'timestamp':
      return timed(type)
  }
}

/** White space of any kind and length as one space, none at the ends. */
export function collapse(value: string): string {
  return value.replace(/\s+/g, ' ').trim()
}

/** How the text of an element is read. */
export interface TextForm {
  readonly collapse: (text: string) => string
  /** What stands at the edges of an element. */
  readonly edgeOf: ((element: string) => string) | undefined
}

export const PLAIN_TEXT: TextForm = { collapse, edgeOf: undefined }
/** With an edge where two elements part two digits. */
export const NUMBER_TEXT: TextForm = { collapse: collapseNumbers, edgeOf }

/** The same of a text of which a pattern picks a part, for a type of numbers: to the pattern every space is the same one. */
export function pickedText(kind: ScalarKind): TextForm {
  const settled = (text: string): string => {
    if (!hasEdges(text)) return text
    const ofMoney = kind === 'money' || priceIn(numberPieces(text, 0, true).joined) !== undefined
    return withSettledEdges(text, ofMoney || kind !== 'double', ofMoney)
  }
  return { collapse: (text) => collapse(settled(collapseNumbers(text))), edgeOf }
}

function text(value: string): Converted {
  return value === '' ? EMPTY : { kind: 'value', value }
}

function problem(raw: PlainValue, expected: string): Converted {
  const text = raw instanceof RawMoney ? String(raw) : raw
  const plain = typeof text === 'string' ? withoutEdges(text) : text
  const shown = typeof plain === 'string' && plain.length > 80 ? `${plain.slice(0, 80)}…` : plain
  return { kind: 'problem', problem: `${JSON.stringify(shown)} is no ${expected}` }
}

/** `checked` and `checked=""` are true, as in HTML; the attribute reader hands them over as true. */
function toBoolean(raw: PlainValue): Converted {
  if (typeof raw === 'boolean') return { kind: 'value', value: raw }
  const word = String(raw).trim().toLowerCase()
  if (word === '') return EMPTY
  if (YES.has(word)) return { kind: 'value', value: true }
  return NO.has(word) ? { kind: 'value', value: false } : problem(raw, 'boolean (true, false, yes, no, on, off, 1, 0)')
}

function toUrl(raw: PlainValue, _machine: boolean, base: string): Converted {
  const reference = String(raw).trim()
  if (reference === '') return EMPTY
  if (!URL.canParse(reference, base)) return problem(raw, 'URL')
  const url = new URL(reference, base)
  return url.protocol === 'http:' || url.protocol === 'https:' ? { kind: 'value', value: url.href } : problem(raw, 'http or https URL')
}

type FromDigits = (digits: DecimalDigits, raw: PlainValue) => Converted

/**
 * A number; one that stands beside a currency is read as a `money` is, and is none where that is none. Where the first of the text is
 * wanted, as of counts (`12 offers from $99`), only if it is that one.
 */
function numeric(locale: string | undefined, scale: number, fromDigits: FromDigits, wanted: 'first' | 'price' = 'price'): Converter {
  const number = numberReader(locale, scale, fromDigits)
  const amount = priceReader(locale, scale, fromDigits)
  return (raw, machine) => {
    if (typeof raw === 'boolean') return problem(raw, 'number')
    if (typeof raw === 'number') return number(raw, String(raw), true)
    const given = collapseNumbers(String(raw))
    if (given === '') return EMPTY
    const pieces = numberPieces(given, scale, true)
    const found = priceIn(pieces.joined)
    if (found === undefined || (wanted === 'first' && !found.isFirst))
      return readPieces(raw, numberPieces(collapse(given), scale, false), (text) => number(raw, text, machine))
    return readPieces(raw, pieces, (text) => {
      const price = text === pieces.joined ? found : priceIn(text)
      return price === undefined ? number(raw, text, machine) : amount(raw, price, machine)
    })
  }
}

function numberReader(
  locale: string | undefined,
  scale: number,
  fromDigits: FromDigits,
): (raw: PlainValue, text: string, machine: boolean) => Converted {
  const decimalMark = locale === undefined ? undefined : decimalMarksOf(locale).ofNumbers
  // A number of JSON has a decimal point in every language.
  return (raw, text, machine) =>
    fromText(raw, text, { machine, decimalMark: typeof raw === 'number' ? undefined : decimalMark, scale, ofMoney: false }, fromDigits)
}

/** `ofMils`: for a currency whose unit has a thousand parts, if not the same. */
function priceReader(
  locale: string | undefined,
  scale: number,
  fromDigits: FromDigits,
  ofMils = fromDigits,
): (raw: PlainValue, price: Price, machine: boolean) => Converted {
  const marks = locale === undefined ? undefined : decimalMarksOf(locale)
  return (raw, { amount, currency, hasCommaGroups }, machine) => {
    if (amount === undefined) return problem(raw, NO_NUMBER.unclear)
    const hasMils = currency !== undefined && hasThreeDecimals(currency)
    const isOfNumbers = marks !== undefined && amount.includes(marks.ofNumbers) && !amount.includes(marks.ofPrices)
    const format = {
      machine: machine || typeof raw === 'number',
      decimalMark: typeof raw === 'number' ? undefined : isOfNumbers ? marks.ofNumbers : marks?.ofPrices,
      scale: hasMils ? Math.max(scale, 3) : scale,
      ofMoney: true,
      hasMils,
      hasCommaGroups,
    }
    return fromText(raw, amount, format, hasMils ? ofMils : fromDigits)
  }
}

function fromText(raw: PlainValue, text: string, format: NumberFormat, fromDigits: FromDigits): Converted {
  const digits = parseNumber(text, format)
  return typeof digits === 'string' ? problem(raw, NO_NUMBER[digits]) : fromDigits(digits, raw)
}

/** What a text gives whether the pieces in it are one number or several, since a wrong one is worse than none. */
function readPieces(raw: PlainValue, { apart, joined }: NumberPieces, read: (text: string) => Converted): Converted {
  const value = read(joined)
  if (apart === joined || value.kind !== 'value') return value
  return isDeepStrictEqual(read(apart), value) ? value : problem(raw, NO_NUMBER.unclear)
}

const NO_NUMBER = {
  none: 'number',
  multiplied: 'number of its digits alone: what stands behind them makes it more',
  unclear: 'number with one reading',
} as const satisfies Record<NoNumber, string>

function integerOf(kind: 'int' | 'long'): FromDigits {
  const [min, max] = kind === 'int' ? [-INT_MAX - 1n, INT_MAX] : [LONG_MIN, LONG_MAX]
  const wanted = `${kind} from ${min} to ${max}; a ${kind === 'int' ? 'long' : 'string'} holds more`
  return ({ negative, whole, fraction }, raw) => {
    if (/[1-9]/.test(fraction)) return problem(raw, 'whole number')
    // Longer than any long: the text is no number that BigInt should be asked to make.
    if (whole.length > 19) return problem(raw, wanted)
    const value = negative ? -BigInt(whole) : BigInt(whole)
    return value > max || value < min ? problem(raw, wanted) : { kind: 'value', value: Number(value) }
  }
}

function doubleOf({ negative, whole, fraction }: DecimalDigits, raw: PlainValue): Converted {
  const value = Number(`${negative ? '-' : ''}${whole}.${fraction}0`)
  return Number.isFinite(value) ? { kind: 'value', value } : problem(raw, 'double')
}

/** Never rounded: what does not fit the scale is not that number. Trailing zeros are none. */
function decimalOf(scale: number, hint = ''): FromDigits {
  return ({ negative, whole, fraction }, raw) => {
    const kept = fraction.slice(0, scale).padEnd(scale, '0')
    if (/[1-9]/.test(fraction.slice(scale))) return problem(raw, `decimal with ${scale} digits behind the point${hint}`)
    if (whole.length + scale > PRECISION + (whole === '0' ? 1 : 0)) return problem(raw, `decimal of ${PRECISION} digits`)
    const zero = whole === '0' && !/[1-9]/.test(kept)
    return { kind: 'value', value: `${negative && !zero ? '-' : ''}${whole}${scale === 0 ? '' : `.${kept}`}` }
  }
}

function toMoney(type: Extract<ValueType, { kind: 'money' }>): Converter {
  const { scale, locale, currency: stated } = type
  const hint = scale < 3 ? '; its currency has three: say `scale: 3`' : ''
  const amountOf = priceReader(locale, scale, decimalOf(scale), decimalOf(scale, hint))
  return (raw, machine, _base, found) => {
    const { amount: given, currency: own } = raw instanceof RawMoney ? raw : { amount: raw, currency: undefined }
    const written = collapseNumbers(String(given))
    if (written === '' || typeof given === 'boolean') return written === '' ? EMPTY : problem(raw, 'money')
    const read = (price: string): Converted => {
      const parts = moneyParts(price, [own, found], stated)
      if (parts.amount === '') return problem(raw, 'money')
      // A number of JSON stays one.
      const amount = amountOf(given, typeof given === 'number' ? { ...parts, amount: written } : parts, machine)
      if (amount.kind !== 'value') return amount
      if (parts.currency === undefined) return { kind: 'problem', problem: parts.problem }
      return { kind: 'value', value: { amount: String(amount.value), currency: parts.currency } }
    }
    return typeof given === 'number' ? read(written) : readPieces(raw, numberPieces(written, scale, true), read)
  }
}

function timed(type: Extract<ValueType, { kind: 'date' | 'timestamp' }>): Converter {
  const format = timeFormat(type)
  const calendar = calendarOf(type.locale)
  // A format would be refused.
  const advice = isReadCalendar(calendar) ? 'say its `format`' : `the calendar ${calendar} is not read`
  const expected = `${type.kind} ${type.format === undefined ? `in a form that has one meaning; ${advice}` : `in the format ${type.format}`}`
  return (raw) => {
    const written = collapse(String(raw))
    if (written === '') return EMPTY
    const parsed = parseTime(written, format)
    if (!parsed.ok) return problem(raw, expected)
    return { kind: 'value', value: type.kind === 'date' ? parsed.date : parsed.ms }
  }
}

function timeFormat({ format, zone, locale }: { readonly format?: string; readonly zone?: string; readonly locale?: string }): TimeFormat {
  const forms = format === undefined ? timeForms(locale) : compileFormat(format, locale)
  const compiled = zone === undefined ? undefined : compileZone(zone)
  if (zone !== undefined && compiled === undefined) {
    throw new OptionError(
      'zone',
      `${JSON.stringify(zone)} is no zone; expected UTC, an offset such as +02:00, or a name such as Europe/Berlin`,
    )
  }
  return { forms, readsEpoch: format === undefined, zone: compiled, calendar: calendarOf(locale) }
}
