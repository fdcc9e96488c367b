/**
 * Which number is the price where a currency stands beside several: `iPhone 15 49,99 €`, `2 299:90 kr`, `€ 5 500 g`. Pages write numbers
 * beside each other with nothing but a space between, and group thousands by the same space, so that some have two readings (`PlayStation 5
 * 549 €`): these are none, since a wrong price is worse than a missing one.
 */
import { EAST_ASIAN_UNIT } from './multipliers.ts'
import {
  beginsWithCents,
  closesPrice,
  EITHER,
  endsPrice,
  isCounted,
  isNamedBefore,
  mayOwnDigits,
  RANGE,
  startsWithCode,
} from './price-words.ts'

/** A number without spaces, or with the colon that Swedish writes before the öre. */
const PART = new RegExp(
  `\\p{Nd}+(?:(?:[.,'’٬٫_]|${EAST_ASIAN_UNIT}\\s?)\\p{Nd}+)*(?:${EAST_ASIAN_UNIT}|e[+-]?\\p{Nd}+|:\\p{Nd}{2}(?![\\p{Nd}:]))?`,
  'giu',
)
/** What a space may group: up to three digits, then three by three, the last ones with a fraction. */
const LEAD = /^\p{Nd}{1,3}$/u
const GROUP = /^\p{Nd}{3}$/u
const LAST_GROUP = /^\p{Nd}{3}(?:[.,:٫]\p{Nd}+)?$/u
/** Of `S24`, `WH-1`, `#5` the number is a part of a name, and begins no other one. */
const GLUED = /[\p{L}\p{M}#][-._/]?$/u
const FRACTION = /[.,:٫]\p{Nd}{1,2}$/u
const TWO_DIGITS = /^\p{Nd}{2}$/u

interface Part {
  readonly start: number
  readonly end: number
  readonly text: string
}

/**
 * What is before a currency with the price at its end, and letters for the digits of all other numbers: `50 ml 12,00` has one. Of a range
 * the first. Shape: undefined where the price has several readings.
 */
export function priceBefore(before: string, behind: string): string | undefined {
  const parts = partsOf(before)
  const last = parts.length - 1
  let [first, end] = [startOfNumber(before, parts, last), last]
  const range = parts[first - 1]
  const between = before.slice(range?.end, parts[first]?.start)
  if (range !== undefined && RANGE.test(between)) {
    end = first - 1
    first = startOfNumber(before, parts, end)
    // `iPhone 15 – 999 €` is a name and a price.
    if (isOwnedBefore(before.slice(0, parts[first]?.start))) return undefined
  } else if (range !== undefined && EITHER.test(between)) return undefined
  const [from, to] = [parts[first], parts[end]]
  if (from === undefined || to === undefined) return before
  const earlier = before.slice(0, from.start)
  if (/\p{Nd}:$/u.test(earlier)) return undefined
  // A name may have the first digits as its number, and so may a number beside them: `S24 256 899 €`.
  if (first < end && (mayOwnDigits(earlier) || (isSpaced(before, parts, first - 1) && !isClear(from, to)))) return undefined
  if (first === end && TWO_DIGITS.test(to.text) && mayHaveCents(before, parts, first - 1)) return undefined
  if (end === last && !FRACTION.test(to.text) && /\p{Nd}\s?$/u.test(before) && beginsWithCents(behind)) return undefined
  if (end === last && !isPriced(to.text) && isOwnedBefore(earlier) && looksPrice(before, behind)) return undefined
  return withoutNumbers(earlier) + decimalColon(before.slice(from.start))
}

/** What is behind a currency, where the price is its first number. Shape: undefined where that has several readings. */
export function priceBehind(behind: string): string | undefined {
  const parts = partsOf(behind)
  let end = 0
  while (LEAD.test(parts[end]?.text ?? '') && isSpaced(behind, parts, end) && LAST_GROUP.test(parts[end + 1]?.text ?? '')) end++
  const to = parts[end]
  if (to === undefined) return behind
  const rest = behind.slice(to.end)
  if (/^:\p{Nd}/u.test(rest)) return undefined
  const isWhole = !FRACTION.test(to.text)
  // What is counted there may have the last digits as its number.
  if (end > 0 && isWhole && isCounted(rest) && !endsPrice(rest)) return undefined
  const next = parts[end + 1]
  const isApart = next !== undefined && isSpaced(behind, parts, end) && TWO_DIGITS.test(next.text)
  if (isApart && isWhole && endsPrice(behind.slice(next.end))) return undefined
  return decimalColon(behind.slice(0, to.end)) + rest
}

/** Whether the digits behind this may be a part of a name: `S24`, `PlayStation 5`. */
export function ownsDigits(earlier: string): boolean {
  return GLUED.test(earlier.slice(-4)) || mayOwnDigits(earlier)
}

/** Letters for digits, so that none of them is read. */
export function withoutNumbers(text: string): string {
  return text.replace(/\p{Nd}/gu, 'x')
}

function partsOf(text: string): Part[] {
  return [...text.matchAll(PART)].map(({ 0: found, index }) => ({ start: index, end: index + found.length, text: found }))
}

/** Index of the part where a number begins whose last part is given: one before each group of three that only a space parts from it. */
function startOfNumber(text: string, parts: readonly Part[], last: number): number {
  let first = last
  for (;;) {
    const lead = parts[first - 1]
    const isGroup = (first === last ? LAST_GROUP : GROUP).test(parts[first]?.text ?? '')
    if (!isGroup || lead === undefined || !LEAD.test(lead.text) || !isSpaced(text, parts, first - 1)) break
    if (GLUED.test(text.slice(Math.max(0, lead.start - 4), lead.start))) break
    first--
  }
  while (first < last && parts[first]?.text.startsWith('0')) first++
  return first
}

function isSpaced(text: string, parts: readonly Part[], at: number): boolean {
  return text.slice(parts[at]?.end, parts[at + 1]?.start) === ' '
}

/** `5 99 €` is said of 5.99 as well, `Size 42 89 €` is not. */
function mayHaveCents(text: string, parts: readonly Part[], at: number): boolean {
  const whole = parts[at]
  if (whole === undefined || !isSpaced(text, parts, at) || FRACTION.test(whole.text)) return false
  return !isOwnedBefore(text.slice(0, whole.start))
}

/** `iPhone 15 € 999`: the sign is as far from both, and the number before may be that of a name. */
function looksPrice(before: string, behind: string): boolean {
  if (!before.endsWith(' ') || !/^\s\p{Nd}/u.test(behind)) return false
  const number = /^\s\p{Nd}+(?:[.,:’'٫ ]\p{Nd}+)*/u.exec(behind)?.[0] ?? ''
  const rest = behind.slice(number.length)
  return closesPrice(rest) || (isPriced(number) && !/^\s?\p{Sc}/u.test(rest) && !startsWithCode(rest))
}

/** A colon may part the numbers of a scale. */
function isPriced(number: string): boolean {
  return /[.,٫]\p{Nd}{2}$/u.test(number)
}

/** Whether the number behind this is a part of a name, or may be. */
function isOwnedBefore(earlier: string): boolean {
  return GLUED.test(earlier.slice(-4)) || isNamedBefore(earlier)
}

/** `16 1 299,00`: the fraction says where it ends, the one digit that nothing before it belongs to it. */
function isClear(from: Part, to: Part): boolean {
  return FRACTION.test(to.text) && from.text.length === 1
}

/** `49:90` with the one mark that means nothing but a fraction. */
function decimalColon(text: string): string {
  return text.replace(/(?<=\p{Nd}):(?=\p{Nd}{2}(?!\p{Nd}))/u, '٫')
}
