import { eastAsianNumber, isMultiplied } from './multipliers.ts'
import { signBefore } from './number-sign.ts'

/** A decimal number as it was written, without any loss: digits as text. */
export interface DecimalDigits {
  readonly negative: boolean
  /** Without leading zeros; `0` for none. */
  readonly whole: string
  /** As written, trailing zeros included; empty for none. */
  readonly fraction: string
}

export interface NumberFormat {
  /** `1.299` is written by a program: a point is the decimal point. Else it is written for people. */
  readonly machine: boolean
  /**
   * The character before the fraction, where the extractor says the language; undefined: found from the number itself. What a program
   * wrote as a plain number is one all the same, but for `19.990` where the type has no place for three digits.
   */
  readonly decimalMark: string | undefined
  /**
   * Digits behind the mark that the type holds; a single mark before exactly three digits groups thousands where fewer fit, and may do so
   * where they fit.
   */
  readonly scale: number
  /** Of money more stands for a multiplier than of other numbers, where a `5m` is a length. */
  readonly ofMoney: boolean
  /** The unit of its currency has a thousand parts: a point before three digits groups nothing. */
  readonly hasMils?: boolean
  /** Its sign is of countries that group by commas: one before three digits is no decimal mark. */
  readonly hasCommaGroups?: boolean
}

/** Why a text gives no number: it has none, it has one of more than its digits (`12k`), or one with several readings (`3万5`). */
export type NoNumber = 'none' | 'multiplied' | 'unclear'

const MACHINE = /^\s*([+-]?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?\s*$/i
/** With an exponent a number has one reading, whoever wrote it. */
const SCIENTIFIC = /^\s*[+-]?\d+(?:\.\d+)?e[+-]?\d+\s*$/i
/** Digits with grouping or decimal marks between them, or a fraction without its zero: the dot of `Rs.450` is that of the word. */
const WRITTEN = /\d+(?:[.,'’٬٫ ]\d+)*|(?<![\p{L}\p{M}])[.,]\d+/u
/** Of a number within a text; a part of it would be another number. */
const EXPONENT = /^e[+-]?\d/i
/** A price without its whole part behind a hyphen: less than nothing, or as the Swiss write `-.95`. */
const DASH_OR_MINUS = /[-–—]\.\d+$/
/** `1.299,-`: where a dash stands for the cents, the other mark groups. */
const WHOLE_PRICE = /(?<![\d.,])\d{1,3}(?:(?:\.\d{3})+,|(?:,\d{3})+\.)[-–—]{1,2}(?!\d)/g
const GROUP_ONLY = /['’٬ ]/

/**
 * The first number in a text, in whatever way it is grouped: `1.299,00`, `1,299.00`, `1 299,00`, `1'299.00`, `$-5`, `.99`.
 * Units of East Asia are part of it: `3万5000`. Shape: none for one with an exponent among other text. With both marks the last one is the
 * decimal mark; one that occurs twice groups.
 */
export function parseNumber(given: string, format: NumberFormat): DecimalDigits | NoNumber {
  const text = asciiNumbers(given).replace(WHOLE_PRICE, (price) => price.replace(/\D/g, ''))
  if (SCIENTIFIC.test(text) || (format.machine && (format.decimalMark === undefined || format.scale >= 3))) {
    const number = machineNumber(text)
    if (number !== undefined || SCIENTIFIC.test(text)) return number ?? 'none'
  }
  const written = writtenNumber(text, format)
  return written === 'none' && format.machine ? (machineNumber(text) ?? 'none') : written
}

/** Shape: undefined for anything but a plain number, and for an exponent beyond three digits. */
function machineNumber(text: string): DecimalDigits | undefined {
  const match = MACHINE.exec(text)
  if (match === null) return undefined
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  return shifted(sign === '-', whole, fraction, Number(exponent))
}

/** Moves the decimal point by `places` to the right. */
function shifted(negative: boolean, whole: string, fraction: string, places: number): DecimalDigits {
  const all = `${'0'.repeat(Math.max(0, -places))}${whole}${fraction}${'0'.repeat(Math.max(0, places))}`
  const point = Math.max(0, -places) + whole.length + places
  return digits(negative, all.slice(0, point), all.slice(point))
}

/** Digits of other scripts as 0 to 9, and what is written beside them without its full width: `￥１，２９９`. */
export function asciiNumbers(text: string): string {
  return text.replace(OTHER_DIGITS, (character) => {
    const code = character.codePointAt(0) ?? 0
    const zero = ZEROS.find((first) => code >= first && code <= first + 9)
    if (zero !== undefined) return String(code - zero)
    return WIDE[character] ?? character
  })
}

/** First digit of Arabic, Persian, Devanagari, Bengali, Thai and full width digits. */
const ZEROS = [0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10]
const WIDE: Readonly<Record<string, string>> = { '．': '.', '，': ',', '＄': '$', '￥': '¥', '￡': '£', '￦': '₩', '－': '-', '﹣': '-' }
const OTHER_DIGITS = /[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59\uff10-\uff19．，＄￥￡￦－﹣]/g

function writtenNumber(text: string, format: NumberFormat): DecimalDigits | NoNumber {
  const match = WRITTEN.exec(text)
  if (match === null) return 'none'
  const sign = signBefore(text.slice(0, match.index), format.ofMoney)
  if (sign === 'unclear' || (format.ofMoney && DASH_OR_MINUS.test(text.slice(0, match.index) + match[0]))) return 'unclear'
  const negative = sign === 'minus'
  const eastAsian = eastAsianNumber(text, match.index)
  if (eastAsian === 'unclear') return eastAsian
  if (eastAsian !== 'none') return shifted(negative, eastAsian.whole, eastAsian.fraction, eastAsian.power)
  const written = withoutLooseGroups(match[0])
  const behind = text.slice(match.index + written.length)
  if (EXPONENT.test(behind)) return 'none'
  if (isMultiplied(behind, format.ofMoney)) return 'multiplied'
  const mark = certainMark(written) ?? format.decimalMark ?? decimalMarkOf(written, format)
  if (mark === 'unclear') return mark
  const at = mark === undefined ? -1 : written.lastIndexOf(mark)
  const whole = at === -1 ? written : written.slice(0, at)
  const fraction = at === -1 ? '' : written.slice(at + 1)
  // "1.2.3" with a point as the decimal mark is a version, not a number; "12,34" where a comma groups is none either.
  if (/\D/.test(fraction) || !isGrouped(whole, mark)) return 'none'
  return digits(negative, whole.replace(/\D/g, ''), fraction)
}

/** Characters before the fraction in a language; prices may have one of their own, as in French in Switzerland. */
export interface DecimalMarks {
  readonly ofNumbers: string
  readonly ofPrices: string
}

export function decimalMarksOf(locale: string): DecimalMarks {
  const markOf = (format: Intl.NumberFormat): string => format.formatToParts(1.5).find(({ type }) => type === 'decimal')?.value ?? '.'
  return {
    ofNumbers: markOf(new Intl.NumberFormat(locale)),
    ofPrices: markOf(new Intl.NumberFormat(locale, { style: 'currency', currency: 'EUR' })),
  }
}

function digits(negative: boolean, whole: string, fraction: string): DecimalDigits {
  const trimmed = whole.replace(/^0+(?=\d)/, '')
  return { negative, whole: trimmed === '' ? '0' : trimmed, fraction }
}

/** A space groups only between one to three digits and groups of exactly three: `13 128` does, `2 packs of 5` never comes here. */
function withoutLooseGroups(written: string): string {
  const parts = written.split(' ')
  let kept = parts[0] ?? ''
  if (!/^[1-9]\d{0,2}$/.test(kept)) return kept
  for (const part of parts.slice(1)) {
    if (!/^\d{3}(?!\d)/.test(part)) break
    kept += ` ${part}`
    // A part with a decimal mark ends the number.
    if (!/^\d{3}$/.test(part)) break
  }
  return kept
}

/** In every language: no thousands begin with a 0. */
function certainMark(written: string): string | undefined {
  return written.includes('٫') ? '٫' : /^0([.,])\d+$/.exec(written)?.[1]
}

/** Shape: one character; undefined: nothing parts a fraction. */
function decimalMarkOf(written: string, { scale, machine, hasMils, hasCommaGroups }: NumberFormat): string | undefined | 'unclear' {
  const point = written.lastIndexOf('.')
  const comma = written.lastIndexOf(',')
  if (point === -1 && comma === -1) return undefined
  if (point !== -1 && comma !== -1) return point > comma ? '.' : ','
  const mark = point === -1 ? ',' : '.'
  const first = written.indexOf(mark)
  if (first !== Math.max(point, comma)) return undefined
  // Other marks group already, so this one does not.
  if (GROUP_ONLY.test(written)) return mark
  const looksGrouped = /^[1-9]\d{0,2}[.,]\d{3}$/.test(written)
  if (!looksGrouped) return mark
  if (mark === ',' && hasCommaGroups === true) return undefined
  if (mark === '.' && (machine || hasMils === true)) return mark
  return hasMils === true || (scale >= 3 && !machine) ? 'unclear' : undefined
}

/** Groups of three digits; before the last one also of two, as in India: `1,23,456`. */
function isGrouped(whole: string, mark: string | undefined): boolean {
  if (mark !== undefined && whole.includes(mark)) return false
  const groups = whole.split(/\D/)
  if (groups.length === 1) return true
  if (!/^[1-9]\d{0,2}$/.test(groups[0] ?? '') || groups.at(-1)?.length !== 3) return false
  return groups.slice(1, -1).every((group) => group.length === 3 || (group.length === 2 && whole.includes(',')))
}
