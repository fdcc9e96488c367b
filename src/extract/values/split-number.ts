/**
 * Numbers as pages take them apart: cents in an element of their own, a mark on its own line, marks between digits that no language has,
 * and characters that nobody sees. What could be two numbers is none, since a wrong one is worse.
 */
import { endsWithCurrency, startsWithCurrency } from './find-currency.ts'
import { withWholePart } from './number-sign.ts'
import { ownsDigits } from './price-number.ts'
import { closesPrice } from './price-words.ts'

/** Stands where one element ends or another begins, in texts that are read as numbers. Unicode gives it no meaning. */
export const EDGE = '\ufdd0'
/** As {@link EDGE}, where what was deleted meets what was inserted: they are two numbers. */
export const CHANGE = '\ufdd1'
/** Stands where the cents of a price begin, in a text of which a pattern picks a part. */
const CENTS_BEGIN = '\ufdd2'

const CHANGED: ReadonlySet<string> = new Set(['del', 'ins', 's', 'strike'])

/** What stands at the edges of an element; a `<wbr>` is a place where a word may be broken, and parts nothing. */
export function edgeOf(element: string): string {
  if (element === 'wbr') return ''
  return CHANGED.has(element) ? CHANGE : EDGE
}

const EDGES = /[\s\ufdd0\ufdd1]+/g
const ENDS_IN_PRICE = /\p{Nd}(?:\p{Sc}|[.,]?[-–—])?$|\p{Nd}\s*(?:\p{Sc}|\p{L}{2,3}\.?)$/u
const BEGINS_WITH_PRICE = /^(?:(?:\p{Sc}|\p{Lu}{3}|\p{L}{2})\s?)?\p{Nd}/u

/**
 * White space of any kind and length as one space, none at the ends; an edge is left where it parts two digits, and one of a change between
 * two prices. A no-break space that stands alone stays one: in a price it says that the digits beside it are of one number, but not where
 * an element ends or begins.
 */
export function collapseNumbers(text: string): string {
  return text
    .replace(EDGES, (run, at: number) => {
      if (!/[\ufdd0\ufdd1]/.test(run)) return NO_BREAK.test(run) && run.length === 1 ? run : ' '
      const space = /\s/.test(run) ? ' ' : ''
      const behind = withoutEdges(text.slice(at + run.length, at + run.length + NEAR))
      const before = withoutEdges(text.slice(Math.max(0, at - NEAR), at))
      if (run.includes(CHANGE) && ENDS_IN_PRICE.test(before) && BEGINS_WITH_PRICE.test(behind)) return `${space}${CHANGE}`
      return DIGIT.test(before.at(-1) ?? '') && DIGIT.test(behind[0] ?? '') ? `${space}${EDGE}` : space
    })
    .trim()
}

/** Characters to look at on each side of an edge. */
const NEAR = 16
const DIGIT = /\p{Nd}/u
const NO_BREAK = /[\u00a0\u202f]/

/** Zero-width characters, soft hyphens and marks of direction. */
const UNSEEN = /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+/g
/** What people type in place of the apostrophe that groups thousands. */
const APOSTROPHE = /(?<=\p{Nd})[´‘′`·ʹʼ‛＇](?=\p{Nd})/gu
const SPACE = '[ \\u00a0\\u202f]'
/** A whole number, perhaps grouped, and two digits in another element. */
const CENTS = new RegExp(
  `(?<![\\p{Nd}.,'’٬٫:${EDGE}]|\\p{Nd}${SPACE})((?:\\p{Nd}{1,3}(?:[.,'’٬]|${SPACE})(?:\\p{Nd}{3}(?:[.,'’٬]|${SPACE}))*\\p{Nd}{3})|\\p{Nd}+)${EDGE}(\\p{Nd}{2})(?![\\p{Nd}.,:${EDGE}])`,
  'gu',
)
const MARK_APART = new RegExp(`(?<=\\p{Nd})${SPACE}(?=[.,]\\p{Nd}{2}(?!\\p{Nd}))`, 'gu')
/** An element for each digit of a price, as where they roll. */
const DIGITS_APART = new RegExp(`(?<![\\p{Nd}.,${EDGE}])\\p{Nd}(?:${EDGE}\\p{Nd})+[.,]\\p{Nd}${EDGE}\\p{Nd}(?![\\p{Nd}.,${EDGE}])`, 'gu')
/** `12. 99` and `1, 299.00`: cents and thousands, or a list. */
const APART = `(?<![\\p{L}\\p{M}\\p{Nd}.,#-])\\p{Nd}{1,3}[.,]${SPACE}(?:\\p{Nd}{2}|\\p{Nd}{3}[.,]\\p{Nd}{2})(?!\\p{Nd}|[.,]\\p{Nd})`
const PRICE_APART = new RegExp(APART, 'gu')
const NUMBER_APART = new RegExp(`^[^\\p{Nd}]*${APART}(?=\\s*(?:$|\\p{Sc}|\\p{Lu}{3}(?!\\p{L})))`, 'gu')
/** `12 . 99`, each on a line of its own. */
const MARK_BETWEEN = new RegExp(`(?<=\\p{Nd})${SPACE}([.,])${SPACE}(?=\\p{Nd}{2}(?!\\p{Nd}|[.,]\\p{Nd}))`, 'gu')
const GAP = new RegExp(`(?<=[.,])${SPACE}(?=\\p{Nd})`, 'u')

/** Two readings of a text; the number in it is clear where it is the same in both. */
export interface NumberPieces {
  readonly apart: string
  /** With all pieces in one that may be. */
  readonly joined: string
}

/** What may be one number in a text. Shape: `scale` as a number is read with, 0 for a whole one, without end for a double. */
export function numberPieces(text: string, scale: number, ofMoney: boolean): NumberPieces {
  const seen = withWholePart(withoutUnseen(text)).replace(APOSTROPHE, "'").replaceAll(CENTS_BEGIN, '٫')
  const rolled = ofMoney ? seen.replace(DIGITS_APART, withoutEdges) : seen
  const apart = (ofMoney || Number.isFinite(scale) ? rolled.replace(CENTS, withCents) : rolled).replace(MARK_APART, '')
  const inPieces = ofMoney ? PRICE_APART : NUMBER_APART
  const joined = withoutEdges(
    ofMoney || scale > 0 ? apart.replace(inPieces, (pieces) => pieces.replace(GAP, '')).replace(MARK_BETWEEN, '$1') : apart,
  )
  return { apart, joined }
}

/**
 * A text whose edges mean the same in whatever part of it a pattern picks: what tells that digits are cents may stand outside of that part.
 * Edges that part two numbers stay, as those of a change.
 */
export function withSettledEdges(text: string, readsCents: boolean, ofMoney: boolean): string {
  const rolled = ofMoney ? text.replace(DIGITS_APART, withoutEdges) : text
  const split = (found: string, whole: string, cents: string, at: number, all: string): string =>
    withCents(found, whole, cents, at, all) === found ? found : `${whole}${CENTS_BEGIN}${cents}`
  return (readsCents ? rolled.replace(CENTS, split) : rolled).replaceAll(EDGE, CHANGE)
}

const MARKS = /[\ufdd0-\ufdd2]/g

/** True where elements part digits of the text. */
export function hasEdges(text: string): boolean {
  return text.search(MARKS) !== -1
}

export function withoutEdges(text: string): string {
  return text.replace(MARKS, '')
}

/** The part of a text with its edges that stands between two places of the text without. */
export function partWithEdges(text: string, [from, to]: readonly [number, number]): string {
  let [seen, start] = [0, text.length]
  for (let at = 0; at < text.length; at += 1) {
    if (hasEdges(text.charAt(at))) continue
    if (seen === from) start = at
    seen += 1
    if (seen === to) return text.slice(start, at + 1)
  }
  return ''
}

/** Two digits in an element of their own may count something; they are cents where the price ends with them. */
function withCents(found: string, whole: string, cents: string, at: number, text: string): string {
  const behind = text.slice(at + found.length)
  const before = text.slice(0, at)
  // Of `Preis 15<sup>10)</sup>` they are a note, and `PlayStation 5` is a name.
  if (/^\s?\)/.test(behind) && !before.includes('(')) return found
  if (!endsWithCurrency(before) && ownsDigits(before)) return found
  return closesPrice(behind) || startsWithCurrency(behind) ? `${whole}٫${cents}` : found
}

/** Within words they may say which letters belong together. */
function withoutUnseen(text: string): string {
  return text.replace(UNSEEN, (run, at: number) =>
    IN_NUMBER.test(text[at - 1] ?? '') || IN_NUMBER.test(text[at + run.length] ?? '') ? '' : run,
  )
}

const IN_NUMBER = /[\p{Nd}.,\p{Sc}−‑–-]/u
