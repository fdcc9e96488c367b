import { isCurrency } from './currencies.ts'
import { EAST_ASIAN_UNIT } from './multipliers.ts'
import { priceBefore, priceBehind, withoutNumbers } from './price-number.ts'

/** Signs that stand for one currency alone, or nearly so on the pages that use them. */
const SIGNS: Readonly<Record<string, string>> = {
  '€': 'EUR',
  '£': 'GBP',
  '₹': 'INR',
  '₽': 'RUB',
  '₺': 'TRY',
  '₩': 'KRW',
  '₪': 'ILS',
  '₫': 'VND',
  '₴': 'UAH',
  '₦': 'NGN',
  '₱': 'PHP',
  '₸': 'KZT',
  '₾': 'GEL',
  '฿': 'THB',
  円: 'JPY',
  元: 'CNY',
  원: 'KRW',
  zł: 'PLN',
  Kč: 'CZK',
  Ft: 'HUF',
  лв: 'BGN',
  US$: 'USD',
  C$: 'CAD',
  CA$: 'CAD',
  A$: 'AUD',
  AU$: 'AUD',
  NZ$: 'NZD',
  HK$: 'HKD',
  NT$: 'TWD',
  MX$: 'MXN',
  S$: 'SGD',
  R$: 'BRL',
}

/** Signs that several currencies have: the extractor says which one it is. */
const SHARED = ['$', '¥', 'kr', 'Kr', 'Fr.', 'lei', 'RM', 'Rp', 'Rs']

const ALTERNATIVES = [...Object.keys(SIGNS), ...SHARED, '[A-Z]{3}']
  .toSorted((a, b) => b.length - a.length)
  .map((sign) => (sign === '[A-Z]{3}' ? sign : sign.replace(/[$.]/g, '\\$&')))
  .join('|')
/**
 * A mention that is no part of a word, with the mark that ends an abbreviation: `Rs.450`. In East Asia words are not parted: what is written
 * to the number is its sign, whatever comes next.
 */
const MENTION = new RegExp(
  `(?<![\\p{L}])(${ALTERNATIVES})(?![\\p{L}])(?:(?<=\\p{L})[.,])?|(?<=\\p{Nd}${EAST_ASIAN_UNIT}?)([円元원])|(?<=\\p{Nd}\\s?${EAST_ASIAN_UNIT}\\s?)([円元원])(?!\\p{L})`,
  'gu',
)

const CURRENCY_FIRST = new RegExp(`^\\s?(?:\\p{Sc}|(?:${ALTERNATIVES})(?!\\p{L}))`, 'u')

/** Whether the sign of a currency stands first, or letters like a code. */
export function startsWithCurrency(text: string): boolean {
  return CURRENCY_FIRST.test(text)
}

export interface CurrencyMention {
  /** Undefined: a sign of several currencies. */
  readonly code: string | undefined
  /** As it is written. */
  readonly text: string
  /** The text without it, its price the first number; `¤` stands for it between what is before and behind it. Undefined: of several readings. */
  readonly rest: string | undefined
}

/** Codes that pages write as words too, or as names: `TOP-Angebot`, `GEL 50 ml`, `AMD Ryzen`. */
const WORDS: ReadonlySet<string> = new Set('ALL AMD ANG BAM BIF BOB COP CUP DOP GEL HUF LAK MAD MOP MUR NAD PEN RON SOS TOP TRY'.split(' '))
/** Those of them that have a sign in common with others: `$ 50.000 COP`, `12,50 lei RON`. */
const WORDS_OF_SIGNS: ReadonlySet<string> = new Set(['COP', 'CUP', 'DOP', 'MOP', 'NAD', 'RON'])

/**
 * The currency that a text names, by its code or its sign: the first that stands beside a number, else the first; a code that is a word
 * too only where no other is beside a number. Of `$5 USD`, where a sign of several has a code beside it, the code. Shape: undefined where
 * there is none.
 */
export function findCurrency(text: string): CurrencyMention | undefined {
  let best: Mention | undefined
  for (const mention of mentions(text)) {
    if (best === undefined || mention.rank < best.rank) best = mention
    if (best.rank === 0) break
  }
  if (best === undefined) return undefined
  const { sign, start, end } = best
  const before = text.slice(0, start)
  const behind = text.slice(end)
  const own = isCurrency(sign) ? sign : SIGNS[sign]
  if (own !== undefined) return { code: own, text: sign, rest: restOf(best, before, behind) }
  const codeBefore = CODE_BEFORE.exec(before)?.[1] ?? ''
  if (isCodeOfSign(codeBefore)) return { code: codeBefore, text: codeBefore, rest: restOf(best, before, behind) }
  const { 0: found = '', 1: number = '', 2: code = '' } = CODE_BEHIND.exec(behind) ?? []
  if (!isCodeOfSign(code)) return { code: undefined, text: sign, rest: restOf(best, before, behind) }
  return { code, text: code, rest: restOf(best, before, joined(number, behind.slice(found.length))) }
}

function restOf({ sign, side }: Mention, before: string, behind: string): string | undefined {
  if (side === undefined) return joined(before, behind)
  if (side === 'after') {
    const price = priceBehind(behind)
    return price === undefined ? undefined : joined(withoutNumbers(before), price)
  }
  const isMark = isDecimalMark(sign, before, behind)
  const price = priceBefore(before, isMark ? '' : behind)
  if (price === undefined) return undefined
  return isMark ? `${price}٫${behind}` : joined(price, behind)
}

interface Mention {
  readonly sign: string
  readonly start: number
  readonly end: number
  /** Where its number is; undefined: not right beside it. */
  readonly side: 'before' | 'after' | undefined
  /** The less, the more likely that it is the currency of the price. */
  readonly rank: number
}

function* mentions(text: string): Iterable<Mention> {
  const hasNumber = /\p{Nd}/u.test(text)
  for (const { 0: found, 1: apart, 2: written, 3: sign = apart ?? written ?? '', index: start } of text.matchAll(MENTION)) {
    const isCode = /^[A-Z]{3}$/.test(sign)
    if (isCode && !isCurrency(sign)) continue
    const end = start + found.length
    const side = sideOfNumber(sign, text.slice(Math.max(0, start - BESIDE), start), text.slice(end, end + BESIDE))
    const isWord = isCode && WORDS.has(sign)
    // A word that is far from every number is a word.
    if (isWord && side === undefined && hasNumber) continue
    yield { sign, start, end, side, rank: side === undefined ? 2 : isWord ? 1 : 0 }
  }
}

/** Characters to look at on each side: a text may hold as many signs as it likes. */
const BESIDE = 40

/**
 * With one on both sides the one before, whatever comes next on the page without a space: `49,99 €59,99 €`, `1299 €-5%`. But for a sign that
 * is written to the number behind it: `iPhone 15 €999`, where the number before looks like no price.
 */
function sideOfNumber(sign: string, before: string, behind: string): Mention['side'] {
  const isBefore = NUMBER_BEFORE.test(before)
  const [number] = NUMBER_AFTER.exec(behind) ?? []
  if (number === undefined) return isBefore ? 'before' : undefined
  const isGlued = /\s$/.test(before) && /^\p{Nd}/u.test(behind)
  const next = behind.slice(number.length).trimStart()
  const looksPriced = /\p{Nd}[.,٫](?:\p{Nd}{1,2}|[-–—]+)\s$/u.test(before) || next.startsWith(sign)
  return isBefore && !(isGlued && !looksPriced) ? 'before' : 'after'
}

const NUMBER_BEFORE = new RegExp(`\\p{Nd}(?:\\s?${EAST_ASIAN_UNIT}|[.,]?[-–—−]{0,2})[\\s(]*$`, 'u')
const NUMBER_AFTER = /^[\s:=)]*(?:\p{Sc}\s*)?[-−‑–]?\s*(?:\p{Sc}\s*)?[.,]?\p{Nd}[\p{Nd}.,'’]*/u

/** Which currency a sign of several is: a code before it, or one behind it and one number. */
const CODE_BEFORE = /(?<!\p{L})([A-Z]{3})\s*$/u
const CODE_BEHIND = /^(\s*[\p{Nd}.,'’٫\s-]*)([A-Z]{3})(?!\p{L})/u

/** In French the sign may be the decimal mark: `499€95`. */
function isDecimalMark(sign: string, before: string, behind: string): boolean {
  return (
    sign === '€' &&
    /\p{Nd}$/u.test(before) &&
    /^\p{Nd}{2}(?!\s*[%\p{Sc}]|[\p{Nd}\p{L}.,]|\s*(?:mois|ans?|jours?|nuits?|heures?|min|kg|g|ml|cl|cm|mm)(?!\p{L}))/u.test(behind)
  )
}

function isCodeOfSign(code: string): boolean {
  return isCurrency(code) && (!WORDS.has(code) || WORDS_OF_SIGNS.has(code))
}

/** Two numbers with a currency between them must not become one, nor a sign before it be lost: `100 € 200 €`, `-$5`, `tips - $5`. */
function joined(before: string, behind: string): string {
  const [start, end] = [before.trimStart(), behind.trimEnd()]
  return start === '' || end === '' ? `${start}${end}`.trim() : `${start}¤${end}`
}
