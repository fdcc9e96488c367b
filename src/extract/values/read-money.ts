import { isCurrency } from './currencies.ts'
import { findCurrency } from './find-currency.ts'
import type { RawScalar } from './value-type.ts'

/** An amount of one currency, as a record holds it. */
export interface Money {
  /** Decimal as text, with the digits of the scale: `1299.00`. */
  readonly amount: string
  /** ISO 4217. */
  readonly currency: string
}

/** An amount and a currency that a page says apart, and not yet read. As text, for `match` and transforms, it is both. */
export class RawMoney {
  readonly amount: RawScalar
  readonly currency: string

  constructor(amount: RawScalar, currency: string) {
    this.amount = amount
    this.currency = currency
  }

  toString(): string {
    return `${this.amount} ${this.currency}`
  }
}

/** A text taken apart. Shape: `amount` is what is left without the currency; `problem` where no currency can be told. */
export type MoneyParts =
  | { readonly kind: 'parts'; readonly amount: string; readonly currency: string }
  | { readonly kind: 'problem'; readonly problem: string }

/**
 * Which currency an amount is in: the one that the text names, else the first that was found elsewhere, else the one that the extractor
 * states. A sign that several currencies have (`$`, `kr`) is that of the others.
 */
export function moneyParts(text: string, found: readonly (string | undefined)[], stated: string | undefined): MoneyParts {
  const mention = findCurrency(text)
  const amount = mention?.rest ?? text
  if (SCALED.test(amount) || CENTS_APART.test(text))
    return { kind: 'problem', problem: `${shownText(text)} has an amount of more than its digits` }
  if (mention?.code !== undefined) return { kind: 'parts', amount, currency: mention.code }
  const elsewhere = found.map((place) => (place === undefined ? undefined : currencyOf(place)))
  const currency = elsewhere.find((code) => code !== undefined) ?? stated
  if (currency !== undefined) return { kind: 'parts', amount, currency }
  const why = mention === undefined ? 'names no currency' : `has the sign ${mention.text}, which several currencies have`
  return { kind: 'problem', problem: `${shownText(text)} ${why}; say its \`currency\`` }
}

function shownText(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}

/** As the first number of an amount is written; a space groups three digits. */
const NUMBER = "(?:\\p{Nd}{1,3}(?:[ \u00a0\u202f]\\p{Nd}{3})+(?:[.,]\\p{Nd}+)?|\\p{Nd}+(?:[.,'’٬٫]\\p{Nd}+)*)(?!\\p{Nd})"
const MONEY_WORD = '(?:[Ee]uros?|[Dd]ollars?|[Dd]ólares|[Pp]esos|[Rr]eais|[Ss]oles|[Kk]r|[Kk]roner|[Kk]ronor|[Ff]ranken|руб)'
const WORDS = inCases(
  'mio mln mrd mld tsd tys million millions millionen milliarde milliarden milliard milliards billion billions trillion trillions thousand millones lakh lakhs crore crores тыс млн млрд',
)
/**
 * What says for certain that an amount is more than its digits. Behind a price anything may stand, most of all names and units, and no price
 * is given up for these: `$ 500.00 M.N.`, `€ 49 m²`, `$24.99 Md`, `€ 99 Mio MiVue`, `¥3,000 万年筆`.
 */
const SCALED = new RegExp(
  `^\\P{Nd}*${NUMBER}(?:${[
    // Words, unless they begin a name: `1.5 Mio.`, `2,5 Millionen Euro`.
    `\\s?(?:${WORDS})(?![\\p{L}\\p{N}'’-]|\\s+(?!${MONEY_WORD})\\p{Lu})`,
    // Short ones that are units, or words of other things, too: `3bn`, `50 mil reais`.
    `\\s?(?:mil|mill|Mill(?=\\.)|bn|Bn)(?=\\.?\\s*(?:$|[¤\\p{Sc}]|${MONEY_WORD}))`,
    // A letter that is written to the number: `12k`, `1.5m`.
    '[kKmM](?![\\p{L}\\p{N}/²³]|\\.\\s?\\p{L})',
    // Or to the sign: `5 M€`.
    '\\s?(?:[kKM]|Mds?)\\p{Sc}',
    // Signs of East Asia, unless a word begins with them.
    '\\s?[万萬億亿만억](?:[円元圆圓원]|(?!\\p{L}))',
  ].join('|')})`,
  'u',
)
/** Two digits as far from the currency as the number before it: its cents, or another number. */
const CENTS_APART = /^\P{Nd}*\p{Nd}+\s\p{Sc}\s\p{Nd}{2}$/u

function currencyOf(text: string): string | undefined {
  const code = text.trim().toUpperCase()
  return isCurrency(code) ? code : findCurrency(text)?.code
}

/** Alternatives of a pattern: each word small, with a capital, and in capitals. */
function inCases(words: string): string {
  return words
    .split(' ')
    .flatMap((word) => [word, word.charAt(0).toUpperCase() + word.slice(1), word.toUpperCase()])
    .join('|')
}
