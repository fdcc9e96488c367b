import { isCurrency } from './currencies.ts'
import { findCurrency } from './find-currency.ts'
import { asciiNumbers } from './parse-number.ts'
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

/** A text taken apart. Shape: `amount` is what is left without the currency; of a currency that can't be told the problem. */
export type MoneyParts =
  | { readonly amount: string; readonly currency: string }
  | { readonly amount: string; readonly currency: undefined; readonly problem: string }

/**
 * Which currency an amount is in: the one that the text names, else the first that was found elsewhere, else the one that the extractor
 * states. A sign that several currencies have (`$`, `kr`) is that of the others.
 */
export function moneyParts(text: string, found: readonly (string | undefined)[], stated: string | undefined): MoneyParts {
  const mention = findCurrency(asciiNumbers(text))
  const amount = mention?.rest ?? text
  if (mention?.code !== undefined) return { amount, currency: mention.code }
  const elsewhere = found.map((place) => (place === undefined ? undefined : currencyOf(place)))
  const currency = elsewhere.find((code) => code !== undefined) ?? stated
  if (currency !== undefined) return { amount, currency }
  const why = mention === undefined ? 'names no currency' : `has the sign ${mention.text}, which several currencies have`
  return { amount, currency, problem: `${shownText(text)} ${why}; say its \`currency\`` }
}

/** Two digits as far from the currency as the number before it: its cents, or another number. */
export function hasCentsApart(text: string): boolean {
  return /^\P{Nd}*\p{Nd}+\s\p{Sc}\s\p{Nd}{2}$/u.test(text)
}

function shownText(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}

function currencyOf(text: string): string | undefined {
  const code = text.trim().toUpperCase()
  return isCurrency(code) ? code : findCurrency(text)?.code
}
