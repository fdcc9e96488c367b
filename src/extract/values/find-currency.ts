import { isCurrency } from './currencies.ts'
import { SHARED, SIGNS } from './currency-signs.ts'
import { EAST_ASIAN_UNIT } from './multipliers.ts'
import { priceBefore, priceBehind, withoutNumbers } from './price-number.ts'

/**
 * A country and its dollar may stand apart (`US $12.99`, `12,99 $ CA`), but not where its letters are a unit or a state: `75 CL $12.99`. In
 * front of a sign a single letter is a size, or a vitamin, but at the start.
 */
const SOURCES = [...Object.keys(SIGNS), ...Object.keys(SHARED)]
  .toSorted((a, b) => b.length - a.length)
  .map((sign) =>
    sign
      .replace(/[$.]/g, '\\$&')
      .replace(/^(AU|EC|HK|MX|NT|NZ|RD|TT|US)(?=\\\$)/, '$1 ?')
      .replace(/(?<=^\\\$)(?=[A-Z])/, ' ?'),
  )
/** Any sign of money, and what looks like a code, stand for a currency, too, if not for one that is known. */
const ALTERNATIVES = ['^CA? \\$', ...SOURCES, '[A-Z]{1,3}[$¥£]', '[A-Za-z]{3}', '\\p{Sc}'].join('|')
/**
 * A mention that is no part of a word, with the mark that ends an abbreviation: `Rs.450`. In East Asia words are not parted: what is
 * written to the number is its sign, whatever comes next.
 */
const MENTION = new RegExp(
  `(?<![\\p{L}])(${ALTERNATIVES})(?![\\p{L}])(?:(?<=\\p{L})[.,])?|(?<=\\p{Nd}${EAST_ASIAN_UNIT}?)([円元원])|(?<=\\p{Nd}\\s?${EAST_ASIAN_UNIT}\\s?)([円元원])(?!\\p{L})`,
  'gu',
)

const CURRENCY_FIRST = new RegExp(`^\\s?(?:\\p{Sc}|(?:${SOURCES.join('|')}|[A-Z]{3})(?!\\p{L}))`, 'u')

/** Whether the sign of a currency stands first, or letters like a code. */
export function startsWithCurrency(text: string): boolean {
  return CURRENCY_FIRST.test(text)
}

const CURRENCY_LAST = new RegExp(`(?<!\\p{L})(?:\\p{Sc}|${SOURCES.join('|')}|[A-Z]{3})[.,]?\\s?[-−]?$`, 'u')

/** As {@link startsWithCurrency}, at the end. */
export function endsWithCurrency(text: string): boolean {
  return CURRENCY_LAST.test(text.slice(-BESIDE))
}

/**
 * Certain: a sign beside a number, or a code beside one with hundredths. Likely: a code in capitals, apart from its number. None: letters
 * that may be a word or a part of a name (`30 Sek`, `CAD2024`), or no number beside it.
 */
type Certainty = 'certain' | 'likely' | 'none'

export interface CurrencyMention {
  /** Undefined: a sign of several currencies, or of none that is known. */
  readonly code: string | undefined
  /** Which it may be. */
  readonly codes: readonly string[]
  /** How sure it is that it makes a price of a number, where none is looked for. */
  readonly certainty: Certainty
  /** Whether no other number stands before the one beside it. */
  readonly isFirst: boolean
  /** Whether a comma groups in the number beside it. */
  readonly hasCommaGroups: boolean
  /** As it is written. */
  readonly text: string
  /**
   * The text without it, its price the first number; `¤` stands for it between what is before and behind it. Undefined: of several
   * readings.
   */
  readonly rest: string | undefined
}

/**
 * Codes and signs that pages write as words too, as names or as units: `TOP-Angebot`, `GEL 50 ml`, `AMD Ryzen`, `6 Ft Cable`, `Euro 2024`.
 */
const WORDS: ReadonlySet<string> = new Set(
  'ALL AMD ANG BAM BIF BOB COP CUP DOP GEL HUF LAK MAD MOP MUR NAD PEN RON SOS TOP TRY Ft TL Euro euro Euros euros'.split(' '),
)
/** Those of them that have a sign in common with others: `$ 50.000 COP`, `12,50 lei RON`. */
const WORDS_OF_SIGNS: ReadonlySet<string> = new Set(['COP', 'CUP', 'DOP', 'MOP', 'NAD', 'RON'])

/**
 * The currency that a text names, by its code or its sign: the first that stands beside a number, else the first; a code that is a word
 * too only where no other is beside a number. Of `$5 USD`, where a sign of several has a code beside it, the code. Shape: undefined where
 * there is none.
 */
export function findCurrency(text: string): CurrencyMention | undefined {
  const all = [...mentions(text)]
  const best = [0, 1, 2].flatMap((rank) => all.find((mention) => mention.rank === rank) ?? []).at(0)
  if (best === undefined) return undefined
  const { sign, codes, start, end } = best
  const before = text.slice(0, start)
  const behind = text.slice(end)
  const isClear = sign !== '¢' && !all.some((other) => isRival(other, best, text))
  const found = (code: string | undefined, written: string, rest = behind): CurrencyMention => ({
    code,
    codes: code === undefined ? codes : [code],
    text: written,
    certainty: certaintyOf(best, text),
    isFirst: isFirstNumber(best, text),
    hasCommaGroups: best.side === 'after' && COMMA_GROUPS.test(text.slice(start, best.number?.start)),
    rest: isClear ? restOf(best, before, rest) : undefined,
  })
  if (isCertain(best)) return found(codes[0], sign)
  const codeBefore = CODE_BEFORE.exec(before)?.[1] ?? ''
  if (isCodeOfSign(codeBefore)) return found(codeBefore, codeBefore)
  const { 0: match = '', 1: number = '', 2: word = '' } = CODE_BEHIND.exec(behind) ?? []
  const code = sign === '$' ? (SIGNS[`$${word}`] ?? word) : word
  return isCodeOfSign(code) ? found(code, word, joined(number, behind.slice(match.length))) : found(undefined, sign)
}

/** Whether the first number of a text is that of a name, whose letters would be a currency before a space: `AMD-5600`. */
export function startsWithNamed(text: string): boolean {
  const word = /^\P{Nd}*(?<!\p{L})(\p{L}{2,3})[-‑]\p{Nd}/u.exec(text)?.[1]
  return word !== undefined && codesOf(word) !== undefined
}

/** Whether a mention beside a number is no better than the one that was chosen, and says something else. */
function isRival(other: Mention, chosen: Mention, text: string): boolean {
  if (other === chosen || other.rank > chosen.rank || other.number === undefined || chosen.number === undefined) return false
  const [mine, its] = [chosen.number, other.number]
  const isSameCurrency = other.codes.some((code) => chosen.codes.includes(code))
  if (mine.start < its.end && its.start < mine.end) return !isSameCurrency
  if (isSameCurrency) {
    // `EUR 42 €89,99`: written otherwise, and the other one is clearly a price. Two prices written alike are a list, of which the first
    // counts.
    const isWrittenAlike = other.sign === chosen.sign && !(chosen.side === 'after' && CODE.test(chosen.sign))
    return !isWrittenAlike && !PRICED.test(mine.text) && PRICED.test(its.text)
  }
  // One price in two currencies has no words between: `CHF 12.90 / € 13.50`.
  const between = text.slice(Math.min(Math.max(chosen.end, mine.end), other.start), other.start)
  return !PRICED.test(mine.text) || /\p{L}/u.test(between)
}

function certaintyOf({ sign, rank, number, side, start, end }: Mention, text: string): Certainty {
  if (number === undefined || rank > 0) return 'none'
  if (!CODE.test(sign) || PRICED.test(number.text)) return 'certain'
  const isApart = side === 'after' ? !/^[\p{Nd}\p{Pd}]/u.test(text.slice(end)) : !/\p{Nd}$/u.test(text.slice(0, start))
  return isApart ? 'likely' : 'none'
}

function isFirstNumber({ number, start }: Mention, text: string): boolean {
  if (number === undefined) return false
  const before = text.slice(Math.max(0, start - BESIDE), start)
  // `12 €99`: both stand beside it.
  const first = NUMBER_BEFORE.test(before) ? numberBefore(before, start) : undefined
  return !/\p{Nd}/u.test(text.slice(0, Math.min(first?.start ?? start, number.start)))
}

/** Signs of countries that group thousands by commas, before the number: others write their country (`R$`), or the sign behind. */
const COMMA_GROUPS = /(?<![A-Z])(?:US|AU?|CA?|NZ|HK|NT|S)? ?[$£]\s?[-−]?$/
const CODE = /^[A-Z]{3}$/
const PRICED = /[.,٫:]\p{Nd}{2}$/u

function restOf({ sign, side }: Mention, before: string, behind: string): string | undefined {
  if (side === undefined) return joined(before, behind)
  if (side === 'after') {
    // `12 €99`, `4 €99`
    if (/\p{Nd}\s+$/u.test(before) && CENTS.test(behind)) return undefined
    const price = priceBehind(behind)
    return price === undefined ? undefined : joined(withoutNumbers(before), price)
  }
  const isMark = isDecimalMark(sign, before, behind)
  const price = priceBefore(before, isMark ? '' : behind)
  if (price === undefined) return undefined
  return isMark ? `${price}٫${behind}` : joined(price, behind)
}

/** Two digits alone, written to a sign that stands behind another number. */
const CENTS = /^\p{Nd}{2}(?![\p{Nd}:]|[.,]\p{Nd})/u

interface Mention {
  readonly sign: string
  readonly codes: readonly string[]
  readonly start: number
  readonly end: number
  /** Where its number is; undefined: not right beside it. */
  readonly side: 'before' | 'after' | undefined
  readonly number: NumberBeside | undefined
  /** The less, the more likely that it is the currency of the price. */
  readonly rank: number
}

interface NumberBeside {
  readonly start: number
  readonly end: number
  readonly text: string
}

function* mentions(text: string): Iterable<Mention> {
  const hasNumber = /\p{Nd}/u.test(text)
  for (const { 0: found, 1: apart, 2: written, 3: sign = apart ?? written ?? '', index: start } of text.matchAll(MENTION)) {
    const codes = codesOf(sign)
    if (codes === undefined) continue
    const end = start + found.length
    const before = text.slice(Math.max(0, start - BESIDE), start)
    const behind = text.slice(end, end + BESIDE)
    const side = sideOfNumber(sign, before, behind)
    // `AMD-5600` is a name; `CHF-5.00` is how prices below zero are written.
    if (side === 'after' && NAME_BEHIND.test(behind) && /\p{L}$/u.test(found)) continue
    const isSmallCode = /^[A-Za-z]{3}$/.test(sign) && codes[0] === sign.toUpperCase() && codes[0] !== sign
    const isWord = WORDS.has(sign) || isSmallCode
    // A word that is far from every number is a word.
    if (isWord && side === undefined && (hasNumber || isSmallCode)) continue
    const number = side === 'before' ? numberBefore(before, start) : side === 'after' ? numberAfter(behind, end) : undefined
    yield { sign, codes, start, end, side, number, rank: side === undefined ? 2 : isWord ? 1 : 0 }
  }
}

/** Shape: one where the sign is of that alone, none for a sign that is not known; undefined: letters that are no currency. */
function codesOf(sign: string): readonly string[] | undefined {
  const own = SIGNS[sign.replace(' ', '')]
  if (own !== undefined) return [own]
  const shared = SHARED[sign]
  if (shared !== undefined) return shared
  const letters = /^[A-Za-z]{3}/.exec(sign)?.[0] ?? ''
  if (isCurrency(letters)) return [letters]
  // In small letters only a code that is no word: `12 eur`.
  const code = letters.toUpperCase()
  if (sign === letters) return isCurrency(code) && !WORDS.has(code) ? [code] : undefined
  // `NOW$12`
  return letters === '' ? [] : SHARED[sign.slice(letters.length)]
}

/** Whether it is written as that currency alone is written. */
function isCertain({ sign, codes }: Mention): boolean {
  return codes.length === 1 && SHARED[sign] === undefined && (sign.startsWith(codes[0] ?? '') || SIGNS[sign.replace(' ', '')] !== undefined)
}

function numberBefore(before: string, start: number): NumberBeside | undefined {
  const { 0: found = '', 1: text = '' } = LAST_NUMBER.exec(before) ?? []
  const from = start - found.length
  return text === '' ? undefined : { start: from, end: from + text.length, text }
}

function numberAfter(behind: string, end: number): NumberBeside | undefined {
  const [found = ''] = NUMBER_AFTER.exec(behind) ?? []
  const at = found.search(/[.,]?\p{Nd}/u)
  const text = found.slice(at).replace(/[.,]+$/, '')
  return at === -1 ? undefined : { start: end + at, end: end + at + text.length, text }
}

const LAST_NUMBER = /(\p{Nd}+(?:[.,:'’٬٫]\p{Nd}+| \p{Nd}{3}(?!\p{Nd}))*)[^\p{Nd}]*$/u
/** Characters to look at on each side: a text may hold as many signs as it likes. */
const BESIDE = 40
/**
 * With one on both sides the one before, whatever comes next on the page without a space: `49,99 €59,99 €`, `1299 €-5%`. But for a sign
 * that is written to the number behind it: `iPhone 15 €999`, where the number before looks like no price.
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

const NAME_BEHIND = /^[-‑](?!\p{Nd}[\p{Nd}.,'’]*[.,]\p{Nd}{2}(?!\p{Nd}))\p{Nd}/u
const NUMBER_BEFORE = new RegExp(`\\p{Nd}(?:\\s?${EAST_ASIAN_UNIT}|[.,]?[-–—−]{0,2})[\\s(]*$`, 'u')
const NUMBER_AFTER = /^[\s:=)]*(?:\p{Sc}\s*)?[-−‑–]?\s*(?:\p{Sc}\s*)?[.,]?\p{Nd}[\p{Nd}.,'’]*/u

/** Which currency a sign of several is: a code before it, or one behind it and one number. */
const CODE_BEFORE = /(?<!\p{L})([A-Z]{3})\s*$/u
const CODE_BEHIND = /^(\s*[\p{Nd}.,'’٫\s-]*)([A-Z]{2,3})(?!\p{L}|-\p{Nd})/u

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
