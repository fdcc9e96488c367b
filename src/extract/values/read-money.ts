import { isCurrency } from './currencies.ts'
import { type CurrencyMention, findCurrency, startsWithNamed } from './find-currency.ts'
import { asciiNumbers } from './parse-number.ts'
import { isCounted, mayOwnDigits } from './price-words.ts'

/** An amount of one currency, as a record holds it. */
export interface Money {
  /** Decimal as text, with the digits of the scale: `1299.00`. */
  readonly amount: string
  /** ISO 4217. */
  readonly currency: string
}

/** A number beside a currency, as a number alone. */
export interface Price {
  /** Undefined: several numbers may be the price. */
  readonly amount: string | undefined
  /** ISO 4217; undefined: it has a sign that several currencies have, or none that is known. */
  readonly currency: string | undefined
  /** Whether its sign is one of those with commas between thousands. */
  readonly hasCommaGroups: boolean
}

/**
 * A text taken apart. Shape: `amount` is what is left without the currency, undefined where several numbers may be the price; of a currency
 * that can't be told the problem.
 */
export type MoneyParts = (Price & { readonly currency: string }) | (Price & { readonly currency: undefined; readonly problem: string })

/**
 * Which currency an amount is in: the one that the text names, else the first that was found elsewhere, else the one that the extractor
 * states. A sign that several currencies have (`$`, `kr`) is that of the others, if that has such a sign.
 */
export function moneyParts(text: string, found: readonly (string | undefined)[], stated: string | undefined): MoneyParts {
  const { written, mention } = mentionIn(text)
  const amount = mention !== undefined ? mention.rest : startsWithNamed(written) ? undefined : written
  const hasCommaGroups = mention?.hasCommaGroups === true
  if (mention?.code !== undefined) return { amount, currency: mention.code, hasCommaGroups }
  const elsewhere = found.map((place) => (place === undefined ? undefined : currencyOf(place)))
  const currency = elsewhere.find((code) => code !== undefined) ?? stated
  const why = noCurrency(written, mention, currency)
  if (currency !== undefined && why === undefined) return { amount, currency, hasCommaGroups }
  return { amount, currency: undefined, hasCommaGroups, problem: `${shownText(text)} ${why}` }
}

/**
 * The price in a text that may be of other numbers; `isFirst`: no number stands before it. Behind another number a code alone leaves open
 * which one is meant. Shape: undefined where no number is one.
 */
export function priceIn(text: string): (Price & { readonly isFirst: boolean }) | undefined {
  if (!NAMES_SOMETHING.test(text)) return undefined
  const { mention } = mentionIn(text)
  if (mention === undefined || mention.certainty === 'none') return undefined
  const { code: currency, rest, certainty, isFirst, hasCommaGroups } = mention
  return { amount: isFirst || certainty === 'certain' ? rest : undefined, currency, isFirst, hasCommaGroups }
}

/** Every currency is written with one of these: most texts of numbers need no further look. */
const NAMES_SOMETHING = /[\p{L}\p{Sc}]/u

function mentionIn(text: string): { readonly written: string; readonly mention: CurrencyMention | undefined } {
  const written = withBreaks(withGroups(asciiNumbers(text)))
  return { written, mention: findCurrency(written) }
}

/** Why the number of a text is of no currency that is known. Shape: undefined where it is of the one that is given. */
function noCurrency(text: string, mention: CurrencyMention | undefined, given: string | undefined): string | undefined {
  if (mention === undefined) {
    if (HUNDREDTHS.test(text)) return 'counts hundredths of a currency'
    return given === undefined ? 'names no currency; say its `currency`' : undefined
  }
  if (given !== undefined && mention.codes.includes(given)) return undefined
  const sign = `has the sign ${mention.text}`
  if (mention.codes.length === 0) return `${sign}, which is of no currency that is known`
  if (given !== undefined) return `${sign}, which ${given} has not`
  return mention.codes.length === 1 ? `${sign}; say its \`currency\`` : `${sign}, which several currencies have; say its \`currency\``
}

/** `99 ct`, `99p` */
const HUNDREDTHS = /^\P{Nd}*\p{Nd}[\p{Nd}.,]*(?:\s?(?:cts?|[Cc]ents?|CENTS?)|p)(?![\p{L}\p{N}])/u

/**
 * Digits that a no-break space parts three by three are of one number, as pages write `PlayStation 5 1&nbsp;299 €`; they are grouped here
 * by the mark that does nothing else. Not behind another no-break space, or a name: there every space of the text may be one. Nor before
 * what is counted, which may have the last digits as its number.
 */
function withGroups(text: string): string {
  return text.replace(GROUPED, (number, at: number) =>
    mayOwnDigits(text.slice(0, at)) || isCounted(text.slice(at + number.length)) ? number : number.replace(NO_BREAK, "'"),
  )
}

const NO_BREAK = /[\u00a0\u202f]/g
const GROUPED =
  /(?<![\u00a0\u202f\p{Nd}\p{L}\p{M}#.,'’٬٫_:]|[\p{L}\p{M}#][-._/])(?!0)\p{Nd}{1,3}(?:[\u00a0\u202f]\p{Nd}{3})+(?![\p{Nd}]|[\u00a0\u202f ]\p{Nd})/gu

function withBreaks(text: string): string {
  return text.replace(NO_BREAK, ' ')
}

function shownText(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}

function currencyOf(text: string): string | undefined {
  const code = text.trim().toUpperCase()
  return isCurrency(code) ? code : findCurrency(text)?.code
}
