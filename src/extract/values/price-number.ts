/**
 * Which number is the price where a currency stands beside several: `iPhone 15 49,99 €`, `2 299:90 kr`, `€ 5 500 g`. Pages write numbers beside
 * each other with nothing but a space between, and group thousands by the same space, so that some have two readings (`PlayStation 5 549 €`):
 * these are none, since a wrong price is worse than a missing one.
 */
import { EAST_ASIAN_UNIT } from './multipliers.ts'

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
const RANGE = /^(?:[.,][-–—]{1,2})?(?:\s*[-–—~〜～]\s*|\s+(?:bis|to|till?|tot|à|a|do|до|hasta)\s+)$/iu
const TWO_DIGITS = /^\p{Nd}{2}$/u

/** The last word before a number; `Preis:` is none of it, since a label says what comes. */
const WORD_BEFORE = /(?<![\p{L}\p{M}])((?:partir |lieu |prix )?[\p{L}\p{M}][\p{L}\p{M}'’]*)\.?\s+$/iu
/** A text may be as long as it likes. */
const WORD_LENGTH = 60
/** Words that announce a price, in languages whose thousands are grouped by spaces, or that stand on pages of these. */
const PRICE_WORDS: ReadonlySet<string> = new Set([
  ...'from only now just price was sale total rrp msrp ab nur preis statt uvp von jetzt gesamt ca circa um'.split(' '),
  ...'vanaf nu voor prijs slechts prix dès à seulement soit promo ttc ht env environ desde precio por sólo solo preço apenas só prezzo'.split(
    ' ',
  ),
  ...'från fra pris priset prisen nå kun endast bara ord ordinarie før förr tidigare rek totalt alkaen alk hinta nyt vain norm ovh'.split(
    ' ',
  ),
  ...'od cena cenou cenie za jen pouze celkem už již iba len tylko już razem ár ára csak akár már alates hind no nuo kaina tik tikai'.split(
    ' ',
  ),
  ...'от цена цене за всего итого только ціна від лише само'.split(' '),
  ...['partir de', 'partir da', 'lieu de', 'prix de'],
])
/** Words of prices, whatever is put before or behind them: `Kampanjpris`, `Стоимость`. */
const PRICE_STEM =
  /pri[sx]|preis|^(?:cen|цен|стоимост|сумм|скидк|hint|tilbud|akci|angebot|offer|offre|ofert|brutt|nett|betrag|montant|belopp|beløb|total|sum|rabat|kost|cost|dph|vat|ust|mwst|moms|tva|iva|pdv|pvp)/iu
/** Words in small letters that have a number behind them; all others of their kind are words of a sentence. Names are written large. */
const NUMBERED =
  /^(?:taille|talla|tamanho|taglia|maat|storlek|størrelse|koko|rozmiar|velikost|veľkosť|méret|размер|розмір|size|model\p{L}*|модель|type|typ|тип|version|версия|n[or]|nr|№|art\p{L}*|арт\p{L}*|iphone|ipad|de|di|of|av|af)$/iu
/** What a number counts or measures. */
const COUNTED =
  /^\s?(?:%|[kmµ]?g|[mcd]?l|[cmk]?m|[kmgt]b|k?w|v|m?ah|″|"|zoll|inch|pcs|pieces?|stück|blatt|sheets?|punkte|points?|tab\p{L}*|kaps\p{L}*|caps\p{L}*|left|available|reviews?|ratings?|votes?|stars?|items?|avis|votos|bewertung\p{L}*|sterne?|omdöm\p{L}*|anmeld\p{L}*|arvostel\p{L}*|rese\p{L}*|recen[sz]\p{L}*|opini\p{L}*|отзыв\p{L}*|оцен\p{L}*|artikel|produ[ckt]\p{L}*|x|г|кг|мл|л|шт)(?![\p{L}\p{M}])/iu
/** What stands behind a price, so that two digits before it may be its cents. */
const END =
  '(?=\\s*(?:$|[*/()|]|(?:TTC|HT|inkl?|incl?|exkl?|excl?|zzgl|VAT|MwSt|moms|netto|brutto|each|only|per|par|pro|pm|m\\.?n)(?!\\p{L})))'
const END_OF_PRICE = new RegExp(`^${END}`, 'iu')
const CENTS_BEHIND = new RegExp(`^\\s?\\p{Nd}{2}(?!\\p{Nd})${END}`, 'iu')
const CODE = /^\s?[A-Z]{3}(?!\p{L})/u

interface Part {
  readonly start: number
  readonly end: number
  readonly text: string
}

/**
 * What is before a currency with the price at its end, and letters for the digits of all other numbers: `50 ml 12,00` has one. Of a range the
 * first. Shape: undefined where the price has several readings.
 */
export function priceBefore(before: string, behind: string): string | undefined {
  const parts = partsOf(before)
  const last = parts.length - 1
  let [first, end] = [startOfNumber(before, parts, last), last]
  const range = parts[first - 1]
  if (range !== undefined && RANGE.test(before.slice(range.end, parts[first]?.start))) {
    end = first - 1
    first = startOfNumber(before, parts, end)
    // `iPhone 15 – 999 €` is a name and a price.
    if (isOwnedBefore(before.slice(0, parts[first]?.start))) return undefined
  }
  const [from, to] = [parts[first], parts[end]]
  if (from === undefined || to === undefined) return before
  const earlier = before.slice(0, from.start)
  if (/\p{Nd}:$/u.test(earlier)) return undefined
  // A name may have the first digits as its number, and so may a number beside them: `S24 256 899 €`.
  if (first < end && (mayOwnDigits(earlier) || (isSpaced(before, parts, first - 1) && !isClear(from, to)))) return undefined
  if (first === end && TWO_DIGITS.test(to.text) && mayHaveCents(before, parts, first - 1)) return undefined
  if (end === last && !FRACTION.test(to.text) && /\p{Nd}\s?$/u.test(before) && CENTS_BEHIND.test(behind)) return undefined
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
  if (end > 0 && isWhole && COUNTED.test(rest) && !endsPrice(rest)) return undefined
  const next = parts[end + 1]
  const isApart = next !== undefined && isSpaced(behind, parts, end) && TWO_DIGITS.test(next.text)
  if (isApart && isWhole && endsPrice(behind.slice(next.end))) return undefined
  return decimalColon(behind.slice(0, to.end)) + rest
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
  return END_OF_PRICE.test(rest) || (isPriced(number) && !/^\s?\p{Sc}/u.test(rest) && !CODE.test(rest))
}

/** A colon may part the numbers of a scale. */
function isPriced(number: string): boolean {
  return /[.,٫]\p{Nd}{2}$/u.test(number)
}

/** Whether the number behind this is a part of a name, or may be. */
function isOwnedBefore(earlier: string): boolean {
  return GLUED.test(earlier.slice(-4)) || isNamed(earlier)
}

function endsPrice(behind: string): boolean {
  return END_OF_PRICE.test(behind) || CODE.test(behind)
}

function isNamed(earlier: string): boolean {
  const word = wordBefore(earlier)
  return word !== undefined && !announcesPrice(word)
}

/** A word of a sentence has no number of its own, unless it is one that is known to. */
function mayOwnDigits(earlier: string): boolean {
  const word = wordBefore(earlier)
  if (word === undefined || announcesPrice(word)) return false
  return word !== word.toLowerCase() || NUMBERED.test(word)
}

/** `16 1 299,00`: the fraction says where it ends, the one digit that nothing before it belongs to it. */
function isClear(from: Part, to: Part): boolean {
  return FRACTION.test(to.text) && from.text.length === 1
}

function announcesPrice(word: string): boolean {
  return PRICE_WORDS.has(word.toLowerCase()) || PRICE_STEM.test(word)
}

function wordBefore(earlier: string): string | undefined {
  return WORD_BEFORE.exec(earlier.slice(-WORD_LENGTH))?.[1]
}

/** `49:90` with the one mark that means nothing but a fraction. */
function decimalColon(text: string): string {
  return text.replace(/(?<=\p{Nd}):(?=\p{Nd}{2}(?!\p{Nd}))/u, '٫')
}
